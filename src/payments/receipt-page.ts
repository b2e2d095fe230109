/** Receipts and credit notes as PDF. Their fonts are embedded, reduced to what is used. */
import PDFDocument from 'pdfkit'
import { printCredits } from '../../schemas/money.ts'
import type { Receipt } from '../../schemas/payments/payment.ts'
import { printPrice } from '../core/payments/price.ts'
import { MAIN_FONT, splitRuns } from './receipt-fonts.ts'

const MARGIN_POINTS = 56
const LABEL_POINTS = 140
const TITLE_SIZE = 22
const TEXT_SIZE = 11
const SMALL_SIZE = 9
/** Height of the main font above the line of writing, in parts of its size: all fonts of a line have one. */
const ASCENT = 0.88

const TITLES = { receipt: 'Receipt / 收据', credit_note: 'Credit note / 贷项通知单' } as const

export interface ReceiptPage {
  readonly receipt: Receipt
  /** The lines at the top: name and address. */
  readonly seller: readonly string[]
}

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

const hasGlyph = (document: PDFKit.PDFDocument, font: string, character: string): boolean => {
  document.font(font)
  // The library says nowhere else what a font has.
  const { _font: opened } = document as unknown as { _font: { font: Glyphs } }
  return opened.font.hasGlyphForCodePoint(character.codePointAt(0)!)
}

interface Glyphs {
  hasGlyphForCodePoint(point: number): boolean
}

interface Place {
  readonly size: number
  /** The beginning of lines. Absent: they end at the right margin. */
  readonly x?: number
}

/** Writes lines one below the other, each in fonts that have its characters. */
function write(document: PDFKit.PDFDocument, lines: readonly string[], { size, x }: Place): void {
  document.fontSize(size)
  for (const line of lines) {
    const runs = splitRuns(line, (font, character) => hasGlyph(document, font, character))
    // By hand: the library aligns each run of a line by itself.
    const width = runs.reduce((sum, { text, font }) => sum + document.font(font).widthOfString(text), 0)
    document.x = x ?? Math.max(MARGIN_POINTS, document.page.width - MARGIN_POINTS - width)
    for (const [index, { text, font }] of runs.entries())
      document.font(font).text(text, { continued: index < runs.length - 1, baseline: -ASCENT * size })
  }
  document.font(MAIN_FONT)
}

/** Draws a receipt. Reading the font and reducing it takes a while: a separate thread does it. */
export function drawReceipt({ receipt, seller }: ReceiptPage): Promise<Buffer> {
  const title = TITLES[receipt.kind]
  const document = new PDFDocument({
    size: 'A4',
    margin: MARGIN_POINTS,
    font: MAIN_FONT,
    // The same receipt gives the same file.
    info: { Title: `${title} ${printNumber(receipt.number)}`, CreationDate: receipt.issuedAt },
  })
  const chunks: Buffer[] = []
  const printed = new Promise<Buffer>((resolve, reject) => {
    document.on('data', (chunk: Buffer) => chunks.push(chunk))
    document.once('end', () => resolve(Buffer.concat(chunks)))
    document.once('error', reject)
  })
  write(document, seller, { size: SMALL_SIZE })
  document.x = MARGIN_POINTS
  document.moveDown(2)
  document.fontSize(TITLE_SIZE).text(title).moveDown(1)
  document.fontSize(TEXT_SIZE)
  for (const [label, value] of listRows(receipt)) {
    const top = document.y
    document.text(label, MARGIN_POINTS, top, { width: LABEL_POINTS })
    const below = document.y
    document.y = top
    write(document, value.split('\n'), { x: MARGIN_POINTS + LABEL_POINTS, size: TEXT_SIZE })
    document.y = Math.max(below, document.y)
    document.moveDown(0.5)
  }
  document.end()
  return printed
}
