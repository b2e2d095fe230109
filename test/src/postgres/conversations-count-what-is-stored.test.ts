/** What PostgreSQL counts in a conversation: what was reported, what was added since, and what calls under way may add. */
import t from 'tap'
import { newAccount, startDatabase } from './support.ts'

const { database, sql } = await startDatabase(t)

interface End {
  readonly reported?: number
  readonly isStored?: boolean
}

async function newConversation(tokens: number) {
  const accountId = await newAccount(database)
  const id = `conv_${accountId}`
  await database.storedResponses.storeConversation({ accountId, id, channelId: 'c', tokens })
  let serial = 0
  return {
    accountId,
    id,
    add: (count: number) => database.storedResponses.addToConversation(accountId, id, count),
    /** Begins a call; returns what it reads, and its end. */
    async call(own: number) {
      const requestId = `r${serial++}`
      const begun = await database.storedResponses.beginConversationCall({
        accountId,
        id,
        requestId,
        tokens: own,
        hours: 2,
      })
      const end = ({ reported, isStored = true }: End = {}) =>
        database.storedResponses.storeResponse({
          ...{ accountId, id: null, channelId: 'c', tokens: null, days: 0 },
          conversation: { id, requestId, reported: reported ?? null, isStored },
        })
      return { reads: begun?.tokens, end, requestId }
    },
    async held(): Promise<number | null> {
      const [row] = await sql<{ tokens: bigint | null }[]>`
        SELECT tokens FROM stored_conversations WHERE account_id = ${accountId} AND id = ${id}`
      return row!.tokens === null ? null : Number(row!.tokens)
    },
  }
}

t.test('a report replaces the estimate, and what was added since stays', async (t) => {
  const conversation = await newConversation(1000)
  const call = await conversation.call(500)
  t.equal(call.reads, 1000)
  await conversation.add(70)
  await call.end({ reported: 300 })
  t.equal(await conversation.held(), 370)
  await call.end({ reported: 5 })
  t.equal(await conversation.held(), 370, 'an end that comes twice changes nothing')
})

t.test('without a report the estimate of the call counts', async (t) => {
  const conversation = await newConversation(1000)
  const left = await conversation.call(500)
  await left.end()
  t.equal(await conversation.held(), 1500)
  t.equal((await conversation.call(1)).reads, 1500)
})

t.test('a refused call has added nothing', async (t) => {
  const conversation = await newConversation(1000)
  const refused = await conversation.call(500)
  await refused.end({ isStored: false })
  t.equal(await conversation.held(), 1000)
  t.equal((await conversation.call(1)).reads, 1000)
})

t.test('calls under way count for those that begin meanwhile, and after the report of another', async (t) => {
  const conversation = await newConversation(1000)
  const slow = await conversation.call(500)
  const quick = await conversation.call(30)
  t.equal(quick.reads, 1500)
  await quick.end({ reported: 1020 })
  const third = await conversation.call(1)
  t.equal(third.reads, 1520, 'the slow one still counts')
  await slow.end({ reported: 1400 })
  t.equal(await conversation.held(), 1430, 'its report, and what the quick one added since it began')
  await third.end({ reported: 1427 })
  t.equal(await conversation.held(), 1427 + 500)
})

t.test('many calls at once never count less than one of them reported', async (t) => {
  const conversation = await newConversation(100_000)
  const calls = await Promise.all(Array.from({ length: 8 }, () => conversation.call(10)))
  for (const call of calls) await call.end({ reported: 2000 })
  t.ok((await conversation.held())! >= 2000)
})

t.test('an unknown count stays unknown until a report', async (t) => {
  const conversation = await newConversation(0)
  await sql`UPDATE stored_conversations SET tokens = NULL WHERE id = ${conversation.id}`
  const first = await conversation.call(500)
  t.equal(first.reads, null)
  await first.end()
  t.equal(await conversation.held(), null)
  const second = await conversation.call(5)
  await second.end({ reported: 900 })
  t.equal(await conversation.held(), 900)
})

t.test('a call that never ends counts for its hours, and is removed then', async (t) => {
  const conversation = await newConversation(10)
  const killed = await conversation.call(500)
  t.equal((await conversation.call(0)).reads, 510)
  await sql`UPDATE conversation_calls SET expires_at = now() WHERE request_id = ${killed.requestId}
    AND account_id = ${conversation.accountId}`
  t.equal((await conversation.call(0)).reads, 10)
  t.ok((await database.storedResponses.purgeConversationCalls()) >= 1)
})

t.test('items that were refused are taken out again, and none is negative', async (t) => {
  const conversation = await newConversation(10)
  await conversation.add(5)
  await conversation.add(-5)
  t.equal(await conversation.held(), 10)
  await conversation.add(-50)
  t.equal(await conversation.held(), 0)
})

t.test('a conversation of nobody begins no call, and a deleted one leaves none', async (t) => {
  const { accountId, id, call } = await newConversation(10)
  const unknown = { accountId, id: 'conv_none', requestId: 'r', tokens: 1, hours: 2 }
  t.equal(await database.storedResponses.beginConversationCall(unknown), null)
  await call(5)
  await database.storedResponses.forgetConversation(accountId, id)
  t.same(await sql`SELECT 1 FROM conversation_calls WHERE account_id = ${accountId}`, [])
})
