/** `tollgate webhook …`, by the acts of the management API, on a real PostgreSQL. */
import t from 'tap'
import { actOf, runAct } from '../../../pipelines/management/act.ts'
import { commandCaller } from '../../../pipelines/management/caller.ts'
import { deliveryActs } from '../../../pipelines/management/notifications/deliveries.ts'
import { cursorAfter } from '../../../pipelines/management/page.ts'
import { listDeliveries } from '../../../schemas/management/notifications/deliveries.ts'
import { newAccount, startDatabase } from '../postgres/support.ts'
import { command, commandsOn, wiringOn } from './support.ts'

const { database } = await startDatabase(t)
const wiring = wiringOn(database, { webhooks: { private_addresses: true } })
const { json, refused, text } = commandsOn(wiring)
const URL_OF = 'http://127.0.0.1:9/hook'
const SECRET = /^whsec_[\w+/=]{32,}$/

t.test('an endpoint is created, changed, rotated, and deleted', async (t) => {
  const account = await newAccount(database)
  const created = await json(
    'webhook',
    'create',
    '--account',
    account,
    '--url',
    URL_OF,
    '--events',
    'balance.low',
  )
  t.match(created, { url: URL_OF, events: ['balance.low'], enabled: true, secret: SECRET })
  t.match(await json('webhook', 'list', '--account', account), [{ id: created.id }])
  const shown = await json('webhook', 'show', created.id)
  t.notOk('secret' in shown, 'it is shown once')
  await json('webhook', 'update', created.id, '--events', 'all')
  t.match(await text('webhook', 'show', created.id), /^events +all$/m)
  t.match(await text('webhook', 'list', '--account', account), / all +true/)
  const rotated = await json('webhook', 'rotate', created.id)
  t.match(rotated, { secret: SECRET, former_secret_until: String })
  t.not(rotated.secret, created.secret)
  const update = (...words: string[]) => json('webhook', 'update', created.id, ...words)
  t.match(await update('--events', 'all', '--disable'), { events: null, enabled: false })
  t.match(await refused('webhook', 'test', created.id), /switched off/)
  t.match(await update('--enable', '--url', `${URL_OF}/2`), { enabled: true, url: `${URL_OF}/2` })
  t.match(await json('webhook', 'delete', created.id), { deleted: true })
  t.match(await refused('webhook', 'show', created.id), created.id)
  const acts = await database.auditRecord.list({ subjectId: created.id, limit: 20 })
  t.ok(acts.length >= 4)
  t.ok(acts.every(({ actor }) => actor === 'operator:test'))
  t.notMatch(JSON.stringify(acts.map(({ before, after }) => [before, after])), 'whsec_')
})

t.test('deliveries are listed, shown and sent again', async (t) => {
  const account = await newAccount(database)
  const { id } = await json('webhook', 'create', '--account', account, '--url', URL_OF)
  const test = await json('webhook', 'test', id)
  t.match(test, { endpoint_id: id, type: 'webhook.test', state: 'waiting' })
  const listed = (...words: string[]) => json('webhook', 'deliveries', '--account', account, ...words)
  t.match(await listed(), [{ id: test.id }])
  t.match(await listed('--endpoint', id, '--state', 'waiting'), [{ id: test.id }])
  t.same(await listed('--state', 'failed'), [])
  t.match(JSON.parse((await json('webhook', 'delivery', test.id)).body), { type: 'webhook.test' })
  t.match(await json('webhook', 'replay', test.id), { state: 'waiting' })
  t.match(await json('webhook', 'replay-failed', id, '--since', '2026-01-01'), { replayed: 0 })
})

t.test('a cursor of another list is refused: it does not begin the deliveries again', async (t) => {
  const act = actOf<object, typeof listDeliveries>(deliveryActs, listDeliveries)
  const input = { account_id: await newAccount(database), cursor: cursorAfter('dlv_x') }
  const options = { database, deps: {}, caller: commandCaller('operator:test', null), now: Date.now() }
  await t.rejects(runAct(act, input, options), { code: 'invalid_request' })
})

t.test('the secret of callbacks is shown and rotated', async (t) => {
  const account = await newAccount(database)
  const { secret } = await json('webhook', 'callback-secret', account)
  t.match(secret, SECRET)
  t.equal((await json('webhook', 'callback-secret', account)).secret, secret)
  const rotated = await json('webhook', 'rotate-callback-secret', account)
  t.match(rotated.secret, SECRET)
  t.not(rotated.secret, secret)
  t.equal((await json('webhook', 'callback-secret', account)).secret, rotated.secret)
  t.match(await refused('webhook', 'callback-secret', 'acc_x'), /acc_x/)
})

t.test('wrong addresses, events and options are refused', async (t) => {
  const account = await newAccount(database)
  const create = ['webhook', 'create', '--account', account, '--url']
  t.match(await refused(...create, 'ftp://example.com'), /http/)
  const { refused: refusedPublic } = commandsOn(wiringOn(database, {}))
  t.match(await refusedPublic(...create, URL_OF), /public/)
  const code = async (...words: string[]) => (await command(words, wiring)).code
  t.equal(await code(...create, URL_OF, '--events', 'moon.full'), 2)
  t.equal(await code('webhook', 'update', 'whe_x', '--enable', '--disable'), 2)
  t.equal(await code('webhook', 'deliveries', '--account', account, '--state', 'odd'), 2)
  t.match(await refused(...create, URL_OF, '--events', 'channel.opened'), /channel\.opened/)
  t.same(await json('webhook', 'list', '--account', account), [])
})
