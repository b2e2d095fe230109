/**
 * What an upstream of media refuses reaches its client with status, code and type, and what it says besides;
 * `hide_auth_errors` makes 502 of what is about the channel's own key. The row is `rejected` for bad parameters and
 * content, and `error` for the rest. See docs/errors.md, "Catalog".
 */
import t from 'tap'
import { configFile } from '../../../schemas/config/file.ts'
import { mediaJob } from '../../../schemas/media/job.ts'
import { holdOf, mediaPriceOf } from '../../../src/core/media/pricing.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { mediaCalls } from '../../../src/server/channels/media-calls.ts'
import { taskAdapterOf } from '../../../src/server/tasks/adapters.ts'
import { UpstreamClient } from '../../../src/upstream/client.ts'
import { authorizerOf } from '../../support/channel-authorizer.ts'
import { sendJson, serveHttp, textOf } from '../../support/http-server.ts'
import { startTasks, UNTOUCHED } from './support.ts'

const KEY = 'sk-test-studio-key-1'
const MODEL = 'made'
const tasks = await startTasks(t)
const { database, storage } = tasks
const client = new UpstreamClient()
t.teardown(() => client.close())
const calls = mediaCalls(client, storage, authorizerOf)

let answer = { status: 400, error: {} as object }
const url = await serveHttp(t, async (request, response) => {
  await textOf(request)
  sendJson(response, answer.status, { error: answer.error }, { 'retry-after': '7' })
})

async function refusedWith(status: number, error: object, channel: object = {}) {
  answer = { status, error }
  const catalog = createCatalog(
    configFile.parse({
      models: [{ id: 'made', pricing: { unit: 'generation', per_unit: '4' } }],
      channels: [
        {
          ...{ id: 'studio', protocol: 'task', base_url: url, api_key: KEY, models: { made: 'm' } },
          ...channel,
        },
      ],
    }),
  )
  const worker = tasks.worker(t, { adapterOf: taskAdapterOf, catalog: () => catalog, calls })
  const account = await tasks.newAccount()
  const model = catalog.resolve(MODEL)!
  const job = mediaJob.parse({ work: 'music', prompt: 'a song', instrumental: false })
  const price = mediaPriceOf(model.entry, null, Date.now())!
  const order = tasks.order(account, 'reel', 'made', {
    ...{ kind: 'music', model, job, price, hold: holdOf(price, job) },
    routes: catalog.routes(model, 'task'),
  })
  const refusal = await tasks.submit(order, { adapterOf: taskAdapterOf }).then(String, (reason) => reason)
  worker.kill()
  t.match(await tasks.walletOf(account), UNTOUCHED)
  const { call } = await database.calls.find(order.caller.request.requestId)
  return { refusal, row: call }
}

for (const [status, code, type, row] of [
  [400, 'invalid_request', 'invalid_request_error', 'rejected'],
  [401, 'invalid_api_key', 'authentication_error', 'error'],
  [402, 'upstream_error', 'api_error', 'error'],
  [403, 'permission_denied', 'permission_error', 'error'],
  [404, 'not_found', 'invalid_request_error', 'error'],
  [409, 'upstream_error', 'api_error', 'error'],
  [413, 'upstream_error', 'api_error', 'rejected'],
  [422, 'invalid_request', 'invalid_request_error', 'rejected'],
  [429, 'rate_limit_exceeded', 'rate_limit_error', 'error'],
  [500, 'upstream_error', 'api_error', 'error'],
] as const)
  t.test(`${status} passes through`, async (t) => {
    const found = await refusedWith(status, { message: 'this cannot be made' })
    t.match(found.refusal, { status, code, type, message: 'this cannot be made' })
    t.strictSame(found.refusal.headers, [['retry-after', '7']])
    t.match(found.row, { status: row, error_code: code })
  })

t.test('a refusal of the content is a rejected row, whatever its status', async (t) => {
  const { refusal, row } = await refusedWith(403, { message: 'The prompt violates our content policy.' })
  t.match(refusal, { status: 403, code: 'permission_denied' })
  t.match(row, { status: 'rejected' })
})

t.test('what it says besides the message is kept, without the key of the channel', async (t) => {
  const error = { message: 'too long', param: 'prompt', details: [{ limit: 200, at: `key ${KEY}` }] }
  const { refusal } = await refusedWith(400, error)
  t.match(refusal, { extras: { param: 'prompt', details: [{ limit: 200 }] } })
  t.notMatch(JSON.stringify(refusal.extras), KEY)
})

t.test('a channel may hide what is about its own key', async (t) => {
  const hiding = { hide_auth_errors: true }
  for (const status of [401, 402, 403]) {
    const { refusal, row } = await refusedWith(status, { message: `the key ${KEY} is refused` }, hiding)
    t.match(
      refusal,
      { status: 502, code: 'upstream_error', message: /access of this service/ },
      String(status),
    )
    t.match(row, { status: 'error', error_code: 'upstream_error' })
  }
  const { refusal } = await refusedWith(403, { message: 'The content violates our policy.' }, hiding)
  t.match(refusal, { status: 403 }, 'not what is about the content')
})
