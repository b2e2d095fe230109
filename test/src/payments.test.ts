/** Receipts, and reports of refunds. */
import { inflateSync } from 'node:zlib'
import type Stripe from 'stripe'
import t from 'tap'
import type { Receipt } from '../../schemas/payments/payment.ts'
import { disputeNotice, refundNotice } from '../../src/payments/notices.ts'
import { drawReceipt } from '../../src/payments/receipt-page.ts'

t.test('receipts lose no name', async (t) => {
  // A receipt has every character of a name, whatever its script.
  const receipt = (accountName: string, more: Partial<Receipt> = {}): Receipt => ({
    number: 7n,
    kind: 'receipt',
    paymentId: 'pay_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
    reversalId: null,
    accountId: 'acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
    accountName,
    amount: 500n,
    currency: 'usd',
    credits: 50_000_000_000n,
    issuedAt: new Date('2026-11-24T12:00:00Z'),
    ...more,
  })

  /** Returns the characters that the embedded fonts of a PDF show, by their tables of Unicode. */
  function shownIn(pdf: Buffer): string {
    const text = pdf.toString('latin1')
    return [...text.matchAll(/stream\n([\s\S]*?)\nendstream/g)]
      .map(([, stream = '']) => {
        try {
          const table = inflateSync(Buffer.from(stream, 'latin1')).toString('latin1')
          const [, ranges = ''] = /beginbfrange([\s\S]*)endbfrange/.exec(table) ?? []
          return [...ranges.matchAll(/<([0-9a-f]+)>/g)]
            .map(([, hex = '']) => Buffer.from(hex, 'hex').swap16().toString('utf16le'))
            .join('')
        } catch {
          return ''
        }
      })
      .join('')
  }

  const NAMES = {
    latin: 'Acme & Søns GmbH',
    european: 'Michał Dvořák, Işık Đặng',
    chinese: '北京示例科技有限公司',
    traditional: '臺灣範例股份有限公司',
    japanese: 'サンプル株式会社',
    korean: '주식회사 김철수',
    mixed: '김철수 & Michał, 北京',
  } as const

  t.test('each script has a font', async (t) => {
    for (const [script, name] of Object.entries(NAMES)) {
      const shown = shownIn(await drawReceipt({ receipt: receipt(name), seller: ['Tollgate Inc.'] }))
      t.same(
        [...name].filter((character) => !shown.includes(character)),
        [],
        script,
      )
    }
  })

  t.test('a character that no font has is named by its code point', async (t) => {
    const pdf = await drawReceipt({ receipt: receipt('ก😀'), seller: [] })
    const shown = shownIn(pdf)
    for (const character of '[U+0E01][U+1F600]') t.ok(shown.includes(character), character)
  })

  t.test('a decomposed name is composed', async (t) => {
    const shown = shownIn(await drawReceipt({ receipt: receipt('김é'.normalize('NFD')), seller: [] }))
    for (const character of '김é') t.ok(shown.includes(character), character)
  })

  t.test('a font that is not needed is not embedded, and one that is, is reduced', async (t) => {
    const plain = await drawReceipt({ receipt: receipt(NAMES.latin), seller: [] })
    t.notOk(plain.includes('NotoSansKR'))
    const all = await drawReceipt({ receipt: receipt(NAMES.mixed), seller: Object.values(NAMES) })
    t.ok(all.includes('NotoSansKR'))
    t.ok(all.length < 200_000)
  })
})

t.test('reports of refunds are read', async (t) => {
  // Refunds and disputes take money when they are made, whatever they wait for, until they fail or are won.
  const REFUNDS = {
    pending: 'took',
    requires_action: 'took',
    succeeded: 'took',
    failed: 'gave_back',
    canceled: 'gave_back',
  } as const

  for (const [status, event] of Object.entries(REFUNDS))
    t.test(`refund ${status}: ${event}`, async (t) => {
      const refund = { id: 're_1', payment_intent: 'pi_1', amount: 200, currency: 'usd', status }
      t.same(refundNotice(refund as unknown as Stripe.Refund), {
        about: 'reversal',
        event,
        kind: 'refund',
        id: 're_1',
        intentId: 'pi_1',
        amount: 200n,
        currency: 'usd',
      })
    })

  /** With what moved of the balance, and without. */
  const DISPUTES = {
    warning_needs_response: [null, null],
    needs_response: ['took', 'took'],
    under_review: ['took', 'took'],
    lost: ['took', 'took'],
    won: ['gave_back', 'gave_back'],
    prevented: ['took', null],
  } as const

  for (const [status, events] of Object.entries(DISPUTES))
    t.test(`dispute ${status}: ${events.map((event) => event ?? 'nothing').join(', ')}`, async (t) => {
      const dispute = { id: 'dp_1', payment_intent: 'pi_1', amount: 200, currency: 'usd', status }
      for (const [index, balance_transactions] of [[{ id: 'txn_1', net: -200 }], []].entries()) {
        const notice = disputeNotice({ ...dispute, balance_transactions } as unknown as Stripe.Dispute)
        t.equal(notice?.event ?? null, events[index])
      }
    })
})
