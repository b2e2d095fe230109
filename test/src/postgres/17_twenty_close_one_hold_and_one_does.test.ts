// Failures, money: "two pollers settle or refund one task twice".
import t from 'tap'
import { newId } from '../../../src/core/ids.ts'
import { newAccount, startDatabase } from './support.ts'

const POLLERS = 20
const { database, sql } = await startDatabase(t)

t.test(
  'twenty that settle, refund and release one hold at once: one does, and the books show one ending',
  async (t) => {
    const accountId = await newAccount(database)
    const ref = newId('vid')
    await database.placeHold({ ref, accountId, amount: 500n })
    const endings = Array.from({ length: POLLERS }, (_, i) => {
      if (i % 3 === 0) return database.settleHold(ref, 320n)
      return database.releaseHold(ref, i % 3 === 1 ? 'refund' : 'release')
    })
    const outcomes = (await Promise.allSettled(endings)).map((ending) =>
      ending.status === 'fulfilled' ? ending.value.outcome : (ending.reason as { code: string }).code,
    )
    t.equal(outcomes.filter((outcome) => outcome === 'closed').length, 1)
    // The same ending again changes nothing; another one is told that it came too late.
    t.ok(
      outcomes.every((outcome) => ['closed', 'duplicate', 'hold_conflict'].includes(outcome)),
      outcomes.join(' '),
    )

    const rows = await sql<{ kind: string; amount: bigint }[]>`
    SELECT kind, amount FROM ledger_entries WHERE ref = ${ref} AND kind <> 'hold'`
    const returned = rows.filter(({ kind }) => kind === 'release' || kind === 'refund')
    t.same(
      returned.map(({ amount }) => amount),
      [500n],
      'the hold comes back once',
    )
    t.ok(rows.filter(({ kind }) => kind === 'charge').length <= 1)
    t.ok((await database.verifyWallets()).ok)
  },
)
