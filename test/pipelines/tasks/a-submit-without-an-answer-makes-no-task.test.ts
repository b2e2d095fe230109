/**
 * A submit without a clear acceptance makes no task, whatever is made: its client gets the error and the money, and
 * operators a record of it. Task workers ask the provider about it, cancel it where they can, and note its cost.
 * See docs/failure-modes.md, "Money", row 19; docs/operating.md, "Lost submits".
 */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { followLostSubmits } from '../../../pipelines/tasks/lost/follow-lost.ts'
import type { TaskOrder } from '../../../pipelines/tasks/order/order.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { mediaJob } from '../../../schemas/media/job.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import type { TaskKind } from '../../../schemas/tasks/task.ts'
import { holdOf, mediaPriceOf } from '../../../src/core/media/pricing.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { mediaCalls } from '../../../src/server/channels/media-calls.ts'
import { taskAdapterOf } from '../../../src/server/tasks/adapters.ts'
import { UpstreamClient } from '../../../src/upstream/client.ts'
import { authorizerOf } from '../../support/channel-authorizer.ts'
import { sendJson, serveHttp, textOf } from '../../support/http-server.ts'
import { silent, startTasks, type TestAccount, UNTOUCHED } from './support.ts'

const MODEL = 'made'
const MINUTE_MS = 60_000
const tasks = await startTasks(t)
const { database, storage } = tasks
const client = new UpstreamClient()
t.teardown(() => client.close())
const calls = mediaCalls(client, storage, authorizerOf)
/** The clock of the client, which is ahead once a submit was met with silence: that has a minute and more. */
let aheadMs = 0
const elapsed = performance.now.bind(performance)
t.intercept(performance, 'now', { value: () => elapsed() + aheadMs })

/** What the provider does with a submit, and what its customer then gets. */
const FATES: Readonly<
  Record<string, { answer: (response: ServerResponse) => void; error: object; row: string }>
> = {
  'a 502 of a proxy': {
    answer: (response) => void response.writeHead(502).end('<html>Bad Gateway</html>'),
    error: { status: 502, code: 'upstream_error' },
    row: 'error',
  },
  'a 504 of a proxy': {
    answer: (response) => void response.writeHead(504).end('<html>Gateway Timeout</html>'),
    error: { status: 504, code: 'upstream_error' },
    row: 'error',
  },
  'a 200 that is no answer': {
    answer: (response) => void response.writeHead(200).end('<html>Welcome</html>'),
    error: { status: 502, code: 'upstream_error' },
    row: 'error',
  },
  silence: {
    answer: () => {
      aheadMs += 60 * MINUTE_MS
    },
    error: { status: 504, code: 'upstream_timeout' },
    row: 'interrupted',
  },
  'a closed connection': {
    answer: (response) => void response.destroy(),
    error: { status: 502, code: 'upstream_unreachable' },
    row: 'error',
  },
}

let fate: (response: ServerResponse) => void = (response) => void response.destroy()
/** How the provider answers questions about its tasks. */
let ask = (_: string, __: string): { status: number; body: object } => ({ status: 503, body: {} })
let submits = 0
const url = await serveHttp(t, async (request, response) => {
  await textOf(request)
  const { method = '', url: path = '' } = request
  if (method === 'POST' && !path.endsWith('/cancel')) {
    submits++
    return fate(response)
  }
  const { status, body } = ask(method, path)
  return sendJson(response, status, body)
})

const file = { from: 'url', url: 'https://example.com/a.mp4' }
const TEXT = [{ type: 'text', text: 'the dough rises' }]
const response = {
  work: 'response',
  body: { from: 'store', key: 'inputs/asked.json', media_type: 'application/json', bytes: 23, name: 'r' },
  call: {
    ...{ model: 'made', outputLimit: 10, choices: 1, promptBytes: 8, laterBytes: 0, settings: '' },
    ...{ links: { image: 0, file: 0, audio: 0 }, builtInTools: [], toolCallLimit: null },
  },
  conversation: null,
  kept_days: 30,
}
await storage.put('inputs/asked.json', Buffer.from('{"model":"a","input":1}'), 'application/json')

/** Every kind of task, at an upstream that takes it as a submit. */
const WORKS: readonly { kind: TaskKind; protocol: string; job: object; until?: 'ended' }[] = [
  { kind: 'video', protocol: 'task', job: { work: 'video', content: TEXT, duration: 5 } },
  { kind: 'video', protocol: 'ark-video', job: { work: 'video', content: TEXT, duration: 5 } },
  { kind: 'music', protocol: 'suno', job: { work: 'music', prompt: 'a song', instrumental: false } },
  { kind: 'music', protocol: 'task', job: { work: 'music', prompt: 'a song', instrumental: false } },
  { kind: 'speech', protocol: 'task', job: { work: 'speech', input: 'words', voice: null, speed: 1 } },
  {
    kind: 'speech',
    protocol: 'task',
    job: { work: 'speech', input: 'words', voice: null, speed: 1 },
    until: 'ended',
  },
  {
    kind: 'avatar',
    protocol: 'task',
    job: { work: 'avatar', name: 'Ada', source: file, source_kind: 'image' },
  },
  { kind: 'voice', protocol: 'task', job: { work: 'voice', name: 'Ada', audio: file } },
  { kind: 'image', protocol: 'task', job: { work: 'image', prompt: 'a fox', n: 1 } },
  { kind: 'image', protocol: 'fal', job: { work: 'image', prompt: 'a fox', n: 1 }, until: 'ended' },
  { kind: 'subtitle', protocol: 'task', job: { work: 'subtitle', video: file }, until: 'ended' },
  {
    kind: 'transcript',
    protocol: 'task',
    job: { work: 'transcript', url: 'https://e.test/v' },
    until: 'ended',
  },
  { kind: 'response', protocol: 'responses', job: response },
]

const PRICING = { unit: 'generation', per_unit: '4' }
const catalogOf = (protocol: string, cost?: object) =>
  createCatalog(
    configFile.parse({
      models: [{ id: 'made', pricing: PRICING }],
      channels: [
        {
          ...{ id: 'studio', protocol, base_url: `${url}/studio`, api_key: 'sk-test-studio-key-1' },
          ...{ private_links: true, models: { made: 'made-v1' }, ...(cost && { cost: { made: cost } }) },
        },
      ],
    }),
  )
type TestCatalog = ReturnType<typeof catalogOf>

function orderFor(
  account: TestAccount,
  catalog: TestCatalog,
  { kind, job, until = 'accepted' }: { kind: TaskKind; job: object; until?: TaskOrder['until'] },
  more: { key?: string } = {},
): TaskOrder {
  const model = catalog.resolve(MODEL)!
  const parsed = mediaJob.parse(job)
  const price = mediaPriceOf(model.entry, null, Date.now())!
  const routes = catalog.routes(model, catalog.channels[0]!.protocol)
  return tasks.order(account, 'reel', 'made', {
    ...{ kind, model, job: parsed, price, hold: holdOf(price, parsed), routes, until },
    ...more,
  })
}

const orderOf = (
  account: TestAccount,
  catalog: TestCatalog,
  work: Parameters<typeof orderFor>[2],
  key?: string,
) => {
  const order = orderFor(account, catalog, work, key === undefined ? {} : { key })
  const error = () =>
    tasks.submit(order, { adapterOf: taskAdapterOf }).then(String, (reason: unknown) => reason)
  return { order, error }
}

const lostOf = async (id: string) =>
  (await database.lostSubmits.list({ isOpen: false, before: null, limit: 200 })).find(
    ({ taskId }) => taskId === id,
  )

for (const work of WORKS)
  t.test(`${work.kind} at ${work.protocol}${work.until ? ', awaited' : ''}`, async (t) => {
    const catalog = catalogOf(work.protocol)
    const worker = tasks.worker(t, { adapterOf: taskAdapterOf, catalog: () => catalog, calls })
    for (const [name, { answer, error, row }] of Object.entries(FATES)) {
      const account = await tasks.newAccount()
      fate = answer
      const before = submits
      const { order, error: asked } = orderOf(account, catalog, work)
      t.match(await asked(), error, name)
      t.equal(submits, before + 1, 'it is sent once')
      t.match(await tasks.walletOf(account), UNTOUCHED, 'the hold is released at once')
      const { call } = await database.calls.find(order.caller.request.requestId)
      t.match(call, { status: row, cost: '0' }, name)
      const query = { accountId: account.account.id, kind: work.kind, states: null, limit: 9 } as const
      t.same((await database.tasks.list(query)).tasks, [], 'there is no task')
      t.equal(await database.tasks.find(account.account.id, work.kind, call!.task_id!), null)
      t.match(await lostOf(call!.task_id!), { state: 'open', channelId: 'studio', kind: work.kind }, name)
    }
    worker.kill()
  })

t.test('the same Idempotency-Key makes a new submit', async (t) => {
  const account = await tasks.newAccount()
  const catalog = catalogOf('task')
  const worker = tasks.worker(t, { adapterOf: taskAdapterOf, catalog: () => catalog, calls })
  fate = (response) => void response.destroy()
  const [work] = WORKS
  t.match(await orderOf(account, catalog, work!, 'again').error(), { status: 502 })
  fate = (response) => void response.writeHead(200).end('{"id":"t-2","state":"queued"}')
  const { order } = orderOf(account, catalog, work!, 'again')
  t.match(await tasks.submit(order, { adapterOf: taskAdapterOf }), { state: 'queued', upstreamId: 't-2' })
  worker.kill()
})

/** A submit of which nobody knows what became, at a provider whose task costs the operator 3 a second. */
async function lose(protocol: string) {
  const account = await tasks.newAccount()
  const catalog = catalogOf(protocol, { unit: 'second', per_unit: '3' })
  const worker = tasks.worker(t, { adapterOf: taskAdapterOf, catalog: () => catalog, calls })
  fate = (response) => void response.destroy()
  const [work] = WORKS
  const { order, error } = orderOf(account, catalog, work!)
  await error()
  worker.kill()
  const { call } = await database.calls.find(order.caller.request.requestId)
  const id = call!.task_id!
  const follow = (aheadMs = 0) =>
    followLostSubmits({
      ...{ database, adapterOf: taskAdapterOf, catalog: () => catalog, calls, log: silent },
      now: () => Date.now() + aheadMs,
    })
  return { id, account, follow, lost: () => lostOf(id) }
}

const DONE = { video_url: 'https://studio.test/1.mp4', duration_sec: 4 }

t.test('what the provider has and can cancel is cancelled, at no cost', async (t) => {
  const { id, account, follow, lost } = await lose('task')
  const asked: string[] = []
  let state = 'queued'
  ask = (method, path) => {
    asked.push(`${method} ${path}`)
    if (path.endsWith('/cancel')) state = 'cancelled'
    return { status: 200, body: { id: 't-7', state } }
  }
  await follow()
  t.match(await lost(), { state: 'cancelled', upstreamId: 't-7', cost: 0n, closedBy: null })
  t.ok(asked.includes(`GET /studio/tasks?reference=${id}`), 'by its reference')
  t.ok(asked.includes('POST /studio/tasks/t-7/cancel'))
  t.match(await tasks.walletOf(account), UNTOUCHED)
})

t.test("what runs is followed to its end, and its cost is the operator's", async (t) => {
  const { account, follow, lost } = await lose('task')
  ask = (_, path) =>
    path.endsWith('/cancel')
      ? { status: 409, body: { error: { code: 'not_cancellable', message: 'runs' } } }
      : { status: 200, body: { id: 't-8', state: 'running' } }
  await follow()
  t.match(await lost(), { state: 'found', upstreamId: 't-8', upstreamState: 'running', closedAt: null })
  ask = () => ({ status: 200, body: { id: 't-8', state: 'succeeded', result: DONE } })
  await follow()
  t.match(await lost(), { state: 'found' }, 'not before its time')
  await follow(MINUTE_MS)
  t.match(await lost(), { state: 'made', cost: 12n * ONE_CREDIT })
  t.match(await tasks.walletOf(account), UNTOUCHED, 'its customer pays nothing')
  const { id: accountId } = account.account
  const sum = await database.lostSubmits.sum({ accountId, from: 0, to: Date.now() + MINUTE_MS })
  t.same(sum, { submits: 1, cost: 12n * ONE_CREDIT })
})

t.test(
  'what the provider certainly has not got is closed; where it cannot say it is asked again',
  async (t) => {
    const { follow, lost } = await lose('task')
    ask = () => ({ status: 503, body: { error: { code: 'busy', message: 'later' } } })
    await follow()
    t.match(await lost(), { state: 'open', checks: 1, nextCheckAt: Number })
    ask = () => ({ status: 404, body: { error: { code: 'not_found', message: 'none' } } })
    await follow(MINUTE_MS)
    t.match(await lost(), { state: 'absent', cost: 0n, closedBy: null })
  },
)

t.test('where no question exists, an operator closes it with its cost, once', async (t) => {
  const { id, account, follow, lost } = await lose('ark-video')
  ask = () => ({ status: 500, body: {} })
  await follow()
  t.match(await lost(), { state: 'open', nextCheckAt: null })
  t.match(await database.lostSubmits.check(id, Date.now()), { taskId: id, nextCheckAt: Number })
  const closing = { taskId: id, cost: 5n * ONE_CREDIT, reason: 'on the May invoice' }
  t.match(await database.lostSubmits.close(closing, Date.now()), { state: 'closed', cost: 5n * ONE_CREDIT })
  await t.rejects(database.lostSubmits.close(closing, Date.now()), { code: 'lost_submit_closed' })
  await t.rejects(database.lostSubmits.check(id, Date.now()), { code: 'lost_submit_closed' })
  await t.rejects(database.lostSubmits.check('vid_none', Date.now()), { code: 'lost_submit_not_found' })
  await follow()
  t.match(await lost(), { state: 'closed', closeReason: 'on the May invoice' })
  const entries = await database.auditRecord.list({ subjectId: id, limit: 9 })
  t.same(entries.map(({ action }) => action).sort(), ['lost_submit.check', 'lost_submit.close'])
  t.match(await tasks.walletOf(account), UNTOUCHED)
})
