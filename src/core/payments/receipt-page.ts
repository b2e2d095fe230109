/** Receipts and credit notes as pages made for printing: one file, without scripts. */
import { printCredits } from '../../../schemas/money.ts'
import type { Receipt } from '../../../schemas/payments/payment.ts'
import { escapeHtml } from '../html-text.ts'
import { printPrice } from './price.ts'

const TITLES = { receipt: 'Receipt / 收据', credit_note: 'Credit note / 贷项通知单' } as const

/** The margins of the page are those of the body, so that a browser prints no address or date of its own in them. */
const STYLE = `
@page { size: A4; margin: 0 }
body { margin: 0 auto; max-width: 210mm; box-sizing: border-box; padding: 20mm; color: #111; background: #fff;
  font: 11pt/1.5 system-ui, "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif }
header { text-align: right; font-size: 9pt; white-space: pre-line }
h1 { margin: 14mm 0 8mm; font-size: 20pt; font-weight: 600 }
th, td { padding: 1.5mm 0; text-align: left; vertical-align: top; white-space: pre-line; overflow-wrap: anywhere }
th { padding-right: 8mm; font-weight: 400; color: #555; white-space: nowrap }
tr:last-child td { font-weight: 600 }`

/** Numbers have at least six digits, so that they line up. */
const printNumber = (number: bigint): string => number.toString().padStart(6, '0')

function listRows(receipt: Receipt): [label: string, value: string][] {
  const { kind, number, issuedAt, accountName, accountId, paymentId, reversalId, credits, currency } = receipt
  const sign = kind === 'credit_note' ? '-' : ''
  return [
    ['Number / 编号', printNumber(number)],
    ['Date / 日期', `${issuedAt.toISOString().slice(0, 10)} (UTC)`],
    ['Account / 账户', `${accountName}\n${accountId}`],
    ['Payment / 付款', paymentId],
    ...(reversalId === null ? [] : ([['Refund / 退款', reversalId]] as [string, string][])),
    ['Credits / 点数', `${sign}${printCredits(credits)}`],
    ['Amount / 金额', `${sign}${printPrice(receipt)} ${currency.toUpperCase()}`],
  ]
}

/**
 * Writes the page of a receipt, HTML text.
 * @param seller the lines at its top: name and address
 */
export function writeReceiptPage(receipt: Receipt, seller: readonly string[]): string {
  const title = TITLES[receipt.kind]
  const rows = listRows(receipt).map(
    ([label, value]) => `<tr><th scope="row">${label}</th><td>${escapeHtml(value)}</td></tr>`,
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} ${printNumber(receipt.number)}</title>
<style>${STYLE}
</style>
</head>
<body>
<header>${escapeHtml(seller.join('\n'))}</header>
<h1>${title}</h1>
<table>
${rows.join('\n')}
</table>
</body>
</html>
`
}
