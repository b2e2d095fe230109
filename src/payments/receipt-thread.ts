/** The thread that draws one receipt. */
import { parentPort, workerData } from 'node:worker_threads'
import { drawReceipt, type ReceiptPage } from './receipt-page.ts'

parentPort?.postMessage(await drawReceipt(workerData as ReceiptPage))
