/** How the calls of a window were metered, by account, model and channel, and whose balance is negative. */
import t from 'tap'
import { newAccount, openFresh, settlement, startDatabase } from '../support.ts'

const { engines } = await startDatabase(t)
const NOW = Date.now()

t.test('only groups with something to tell, and negative balances, are named', async (t) => {
  const { database } = await openFresh(t, engines)
  const [one, other] = [await newAccount(database), await newAccount(database)]
  const call = {
    submitted_at: NOW,
    created_at: NOW,
    channel_id: 'primary',
    usage_source: 'upstream',
    detail: '{"prompt_bytes":7}',
  } as const
  await database.bookings.book([
    settlement(one, call),
    settlement(one, { ...call, usage_source: 'estimate' }),
    settlement(one, {
      ...call,
      detail: '{"prompt_bytes":7,"usage_suspect":"output 9 > 8","answered_by_other_model":1}',
    }),
    // Text of the client's own is no mark.
    settlement(one, {
      ...call,
      detail: JSON.stringify({ prompt_bytes: 7, tools: ',"usage_suspect":"x,"answered_by_other_model":1' }),
    }),
    settlement(one, { ...call, usage_source: 'estimate', created_at: NOW - 5_000 }),
    settlement(one, { ...call, usage_source: 'none', cost: '0' }),
    settlement(other, call),
  ])
  t.same(await database.audits.reportMetering(NOW - 1_000), {
    groups: [
      {
        account_id: one,
        model: settlement(one).model,
        channel_id: 'primary',
        calls: 4,
        estimated: 1,
        suspect: 1,
        otherModel: 1,
      },
    ],
    negative: [],
  })
  t.equal(await database.audits.countNegativeBalances(), 0)
  await database.wallets.adjust(other, -2_000_00000000n, { reason: 'a test' })
  const { negative } = await database.audits.reportMetering(NOW + 1)
  t.match(negative, [{ account_id: other }])
  t.ok(negative[0]!.balance < 0n)
  t.equal(await database.audits.countNegativeBalances(), 1)
})
