/** The page of notifications has every type of event, and the fields that events have when they are recorded. */
import t from 'tap'
import { ONE_CREDIT } from '../../schemas/money.ts'
import { EVENT_TYPES, TEST_EVENT } from '../../schemas/notifications/event.ts'
import { newId } from '../../src/core/keys/ids.ts'
import { newPayment, paymentNotice } from '../src/postgres/payments/support.ts'
import { newAccount, settlement, startDatabase } from '../src/postgres/support.ts'
import { hold, settle } from '../src/postgres/tasks/support.ts'
import { readText } from '../support/source-files.ts'

const namesIn = (cell: string): string[] =>
  [...cell.replace(/\([^)]*\)/g, '').matchAll(/`([\w.]+)`/g)].map(([, name = '']) => name)

/** Fields by type, as the page has them. */
const FIELDS = new Map(
  readText('docs/notifications.md')
    .split('\n## Webhooks')[0]!
    .split('\n')
    .filter((line) => /^\| `\w+\.\w+`/.test(line))
    .flatMap((line) => {
      const [types = '', , data = ''] = line.slice(2, -2).split(' | ')
      return namesIn(types).map((type) => [type, namesIn(data).sort()] as const)
    }),
)

t.test('the page and the code have the same types', async (t) => {
  t.same([...FIELDS.keys()].sort(), [...EVENT_TYPES, TEST_EVENT].sort())
})

t.test('each event has the fields of the page', async (t) => {
  const { database, sql } = await startDatabase(t)
  const accountId = await newAccount(database, 100n)
  await database.setLowBalance(accountId, 50n * ONE_CREDIT)
  await database.putBudget({
    accountId,
    scope: 'account',
    subjectId: accountId,
    amount: 100n * ONE_CREDIT,
    period: 'day',
    timezone: 'UTC',
  })
  const made = await hold(database, accountId, 100n)
  await settle(database, made, 40n)
  const spent = { request_id: newId('req'), cost: String(200n * ONE_CREDIT), submitted_at: Date.now() }
  await database.bookSettlements([settlement(accountId, spent)])

  const paid = await newPayment(database, accountId)
  await database.takeNotice(paymentNotice(paid))
  const failed = await newPayment(database, accountId)
  await database.takeNotice(paymentNotice(failed, { event: 'failed', failureCode: 'card_declined' }))
  const confirming = await newPayment(database, accountId)
  await database.takeNotice(paymentNotice(confirming, { event: 'confirmation_needed' }))

  const { key } = await database.createKey({
    accountId,
    name: 'a key',
    expiresAt: new Date(Date.now() + 12 * 60 * 60 * 1000),
  })
  await sql`UPDATE api_keys SET created_at = created_at - interval '30 days' WHERE id = ${key.id}`
  await database.recordExpiringKeys()
  await database.revokeKey(key.id)

  const breaker = (isOpen: boolean) => database.recordBreakers([{ channelId: 'primary', isOpen }])
  await breaker(true)
  await breaker(false)
  await sql`UPDATE channel_breakers SET closed_since = closed_since - interval '2 minutes'`
  await breaker(false)
  await sql`
    INSERT INTO journals (id, node, directory, seen_at)
    VALUES ('journal-1', 'node-1', '/data/journal', now() - interval '1 hour')`
  await database.recordSilentJournals()

  const url = 'https://receiver.example.com/hook'
  const { endpoint } = await database.createEndpoint({
    kind: 'webhook',
    accountId,
    url,
    description: '',
    events: null,
  })
  const { id } = await database.testEndpoint({ id: endpoint.id, accountId })
  await sql`UPDATE webhook_endpoints SET failing_since = now() - interval '6 days' WHERE id = ${endpoint.id}`
  const deliveries = await database.readDeliveries([id])
  const attempt = {
    at: new Date().toISOString(),
    duration_ms: 1,
    status: 500,
    error: 'The receiver answered 500.',
    headers: null,
    answer: null,
  }
  await database.endAttempts(
    deliveries.map((delivery) => ({ delivery, attempt, state: 'failed' as const, pauseMs: 0 })),
  )

  const rows = await sql<{ type: string; fields: string[] }[]>`
    SELECT type, array_agg(DISTINCT field) AS fields FROM events, jsonb_object_keys(data) AS field GROUP BY type`
  const recorded = new Map(rows.map(({ type, fields }) => [type, fields.sort()]))
  for (const [type, fields] of FIELDS) {
    // The end of a task has the same fields, however it ended.
    const found = recorded.get(type === 'task.failed' ? 'task.succeeded' : type) ?? []
    if (type !== 'topup.failed') t.same(found, fields, type)
    else
      t.same(
        found.filter((field) => !fields.includes(field)),
        [],
        `${type} has no other fields`,
      )
    t.ok(found.length > 0, `${type} was recorded`)
  }
})
