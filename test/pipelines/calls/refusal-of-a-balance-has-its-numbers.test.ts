/** A 402 says what the call may cost and what the account has, to keys that may read the balance. */
import t from 'tap'
import { insufficientBalance } from '../../../pipelines/calls/balance.ts'
import type { KeyKind } from '../../../schemas/accounts/key.ts'
import { parseCredits } from '../../../schemas/money.ts'

const messageOf = (kind: KeyKind, balance: string, amount: string | null) => {
  const known = { key: { kind }, view: { balance: parseCredits(balance) } }
  return insufficientBalance(known as never, amount === null ? null : parseCredits(amount)).message
}

t.test('the refusal of a balance', async (t) => {
  const start = 'The account balance is insufficient for this call'
  const end = 'Please top up and try again'
  for (const kind of ['console', 'employee'] as const) {
    t.equal(
      messageOf(kind, '0.5', '0.655'),
      `${start}: it may cost up to 0.655 credits, and the balance is 0.5 credits. ${end}, or ask for less.`,
    )
    t.equal(
      messageOf(kind, '10', '4'),
      `${start}: it may cost up to 4 credits, and the balance is 10 credits, part of which calls under way reserve. ${end}, or ask for less.`,
    )
    t.equal(messageOf(kind, '-0.2', null), `${start}: it is -0.2 credits. ${end}.`)
  }
  t.equal(messageOf('agent', '0.5', '0.655'), `${start}. ${end}.`, 'no more than its holder may know')
  t.equal(messageOf('agent', '0', null), `${start}. ${end}.`)
})
