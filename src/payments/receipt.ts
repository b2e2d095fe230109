/** Prints receipts beside the thread that serves calls. */
import { Worker } from 'node:worker_threads'
import type { Receipt } from '../../schemas/payments/payment.ts'
import type { ReceiptPage } from './receipt-page.ts'

const THREAD = new URL('./receipt-thread.ts', import.meta.url)

/**
 * Prints a receipt as PDF.
 * @param seller the lines at its top: name and address
 */
export function printReceipt(receipt: Receipt, seller: readonly string[]): Promise<Buffer> {
  const workerData: ReceiptPage = { receipt, seller }
  return new Promise((resolve, reject) => {
    const thread = new Worker(THREAD, { workerData })
    thread.once('message', (pdf: Uint8Array) => resolve(Buffer.from(pdf)))
    thread.once('error', reject)
    thread.once('exit', () => reject(new Error('The receipt was not printed')))
  })
}
