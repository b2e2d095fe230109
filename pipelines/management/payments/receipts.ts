/** The operation that downloads a receipt. */
import { downloadReceipt } from '../../../schemas/management/payments/payments.ts'
import type { Receipt } from '../../../schemas/payments/payment.ts'
import { implementWith } from '../operation.ts'

export interface ReceiptDeps {
  readonly config: () => { readonly payments: { readonly seller: readonly string[] } | null }
  /** Prints a receipt as PDF. `seller` is the name and the address at its top. */
  readonly printReceipt: (receipt: Receipt, seller: readonly string[]) => Promise<Buffer>
}

const FILE_NAMES = { receipt: 'receipt', credit_note: 'credit-note' } as const

const implement = implementWith<ReceiptDeps>()

export const receiptOperations = [
  implement(
    downloadReceipt,
    async (database, { number }) => (await database.payments.showReceipt(BigInt(number))).accountId,
    async ({ database, config, printReceipt }, { number }) => {
      const receipt = await database.payments.showReceipt(BigInt(number))
      const pdf = await printReceipt(receipt, config().payments?.seller ?? [])
      return {
        name: `${FILE_NAMES[receipt.kind]}-${number}.pdf`,
        content_type: 'application/pdf',
        base64: pdf.toString('base64'),
      }
    },
  ),
]
