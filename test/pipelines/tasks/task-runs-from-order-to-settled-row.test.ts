// From an endpoint's order to the settled row, over real engines and HTTP.
import t from 'tap'
import { UpstreamRefusal } from '../../../pipelines/calls/upstream-error.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { ChannelHealth } from '../../../src/core/routing/circuit-breaker.ts'
import { startTasks, UNTOUCHED } from './support.ts'
import { FILM, PICTURE } from './upstream.ts'

const tasks = await startTasks(t)
const { database, upstream, storage } = tasks
const health = new ChannelHealth()
let beyond = 0
const metrics = { submitted() {}, polled() {}, exceededOrder: () => void beyond++, discarded() {} }
tasks.worker(t, { health, metrics })

const callOf = async (taskId: string) => (await database.calls.find(taskId)).call!

t.test('a film: held, accepted, made, stored, charged by its length', async (t) => {
  const account = await tasks.newAccount()
  upstream.plans.set('kite', { states: ['queued', 'running', 'succeeded'] })
  const accepted = await tasks.submit(tasks.order(account, 'film', 'kite'))
  t.match(accepted, {
    state: 'queued',
    channelId: 'first',
    upstreamModel: 'film-v1',
    hold: (ONE_CREDIT * 25n) / 2n,
  })
  t.match(await tasks.walletOf(account), { held: accepted.hold, used: 0n })
  const ended = await tasks.reached(accepted.id, 'succeeded')
  const key = `videos/${accepted.id}.mp4`
  t.match(ended, {
    cost: ONE_CREDIT * 10n,
    result: { files: [{ key, upstream_url: null, media_type: 'video/mp4' }] },
  })
  t.ok((await storage.read(key, 10_000)).equals(FILM))
  t.match(await tasks.walletOf(account), { held: 0n, used: ONE_CREDIT * 10n })
  const row = await callOf(accepted.id)
  t.match(row, {
    status: 'success',
    model: 'film',
    protocol: 'videos',
    unit_type: 'video',
    unit_count: '4',
    cost: '10',
    estimate: '12.5',
    attempts_count: null,
    request_id: accepted.requestId,
    task_id: accepted.id,
    error_code: null,
  })
  t.equal(row.result_urls.length, 1)
  t.match(row.result_urls[0], new RegExp(`^http://files.test/files/${key}\\?expires=`))
  t.ok(Date.parse(row.result_expires_at!) > Date.now())
  t.equal(upstream.submits.get(accepted.id), 1)
})

t.test('a picture in the answer itself is stored before anything says so', async (t) => {
  const account = await tasks.newAccount()
  const task = await tasks.submit(tasks.order(account, 'picture', 'a cat'))
  t.match(task, { state: 'succeeded', cost: ONE_CREDIT * 4n })
  const key = `images/${task.id}-1.png`
  t.equal(task.result?.files[0]?.key, key)
  t.ok((await storage.read(key, 10_000)).equals(PICTURE))
  t.match(await callOf(task.id), {
    status: 'success',
    unit_count: '1',
    unit_type: 'image',
    attempts_count: 1,
  })
  t.same(await database.tasks.findExpiredObjects(Date.now() + 25 * 3_600_000, 10), [key])
})

t.test('pictures that nobody asked for are neither delivered nor charged', async (t) => {
  const account = await tasks.newAccount()
  upstream.plans.set('a crowd', { pictures: 500 })
  const task = await tasks.submit(tasks.order(account, 'picture', 'a crowd'))
  t.match(task, { state: 'succeeded', cost: task.hold })
  t.equal(task.result?.files.length, 1)
  t.match(await callOf(task.id), { status: 'success', unit_count: '1' })
  await t.rejects(storage.read(`images/${task.id}-2.png`, 10_000), /no object/)
})

t.test(
  'a film that is longer than was asked for is charged as reported, and held against its channel',
  async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set('endless', { seconds: 60 })
    const before = beyond
    const { id, hold } = await tasks.submit(tasks.order(account, 'film', 'endless'))
    const { cost, result } = await tasks.reached(id, 'succeeded')
    t.match(
      { hold, cost },
      { hold: (ONE_CREDIT * 25n) / 2n, cost: ONE_CREDIT * 150n },
      '60 seconds where 5 were asked for',
    )
    const note = '60 seconds, where 5 were asked for'
    t.match(result, { seconds: 60, files: [{ seconds: 60 }], beyond: [note] })
    t.equal(beyond, before + 1, 'counted')
    t.match(
      health.reports().find(({ channel }) => channel === 'first'),
      { last_error: { code: 'beyond_order' } },
    )
    t.match((await database.calls.find(id)).detail ?? '', new RegExp(`beyond_order.*${note}`))
  },
)

t.test('what an upstream refuses is the client’s to hear, and costs nothing', async (t) => {
  const account = await tasks.newAccount()
  upstream.plans.set('bad', { submit: 422 })
  const order = tasks.order(account, 'film', 'bad')
  const error = await tasks.submit(order).catch((reason: unknown) => reason)
  t.ok(error instanceof UpstreamRefusal)
  t.match(error, { status: 422, message: 'no, says the upstream' })
  t.match(await tasks.walletOf(account), UNTOUCHED)
  const { call, entries } = await database.calls.find(order.caller.request.requestId)
  t.match(call, { status: 'rejected', error_message: 'no, says the upstream', cost: '0', attempts_count: 1 })
  t.same(
    entries.map(({ kind }) => kind),
    ['hold', 'release'],
  )
  const listed = { accountId: account.account.id, kind: 'video', states: null, limit: 10 } as const
  t.same((await database.tasks.list(listed)).tasks, [])
})

t.test('what an upstream says of the key of a channel reaches its client', async (t) => {
  const account = await tasks.newAccount()
  for (const [submit, attempts_count, code] of [
    [401, 1, 'invalid_api_key'],
    // Another channel may have credit left.
    [402, 2, 'upstream_error'],
    [403, 1, 'permission_denied'],
  ] as const) {
    upstream.plans.set('no access', { submit })
    const order = tasks.order(account, 'film', 'no access')
    const error = await tasks.submit(order).catch((reason: unknown) => reason)
    t.match(error, { status: submit, code, message: 'no, says the upstream' })
    const { call } = await database.calls.find(order.caller.request.requestId)
    t.match(call, { status: 'error', error_code: code, cost: '0', attempts_count })
  }
})

t.test('a channel that is not there, or says that it cannot, is followed by the next', async (t) => {
  const account = await tasks.newAccount()
  upstream.plans.set('busy', { submit: 503 })
  const error = await tasks.submit(tasks.order(account, 'film', 'busy')).catch((reason: unknown) => reason)
  t.match(error, { status: 503 })
  const [, last] = upstream.paths.slice(-2)
  t.match(last, /^\/second\//, 'both were asked')
  t.ok((await database.audits.verifyWallets()).ok)
})

t.test("an upstream's refusal says when to try again, wherever the client waits for it", async (t) => {
  const account = await tasks.newAccount()
  const http = 'Wed, 21 Oct 2026 07:28:00 GMT'
  for (const [model, submit, retryAfter] of [
    ['film', 429, '17'],
    ['film', 503, http],
    ['reel', 429, '30'],
    ['picture', 429, '5'],
    ['picture', 503, '60'],
  ] as const) {
    upstream.plans.set('limited', { submit, retryAfter })
    const error = await tasks
      .submit(tasks.order(account, model, 'limited'))
      .catch((reason: unknown) => reason)
    t.match(error, { status: submit, headers: [['retry-after', retryAfter]] }, `${model} ${submit}`)
  }
  const order = tasks.order(account, 'film', 'limited')
  await tasks.submit(order).catch(() => undefined)
  const { call } = await database.calls.find(order.caller.request.requestId)
  t.match(call, { attempts: { length: 2 } })
  t.notMatch(JSON.stringify(call), 'retry_after', 'the row says nothing of it')
  upstream.plans.set('limited', { submit: 429, retryAfter: '9'.repeat(100) })
  const error = await tasks.submit(tasks.order(account, 'reel', 'limited')).catch((reason: unknown) => reason)
  t.match(error, { status: 429, headers: { length: 0 } }, 'what is no time is left out')
})

t.test('an upstream that fails, lets lapse, or does not know its own state', async (t) => {
  const account = await tasks.newAccount()
  upstream.plans.set('fails', { states: ['running', 'failed'] })
  upstream.plans.set('lapses', { states: ['expired'] })
  const failing = await tasks.submit(tasks.order(account, 'film', 'fails'))
  const lapsing = await tasks.submit(tasks.order(account, 'film', 'lapses'))
  t.match(await tasks.reached(failing.id, 'failed'), { errorCode: 'content_policy_violation', cost: 0n })
  await tasks.reached(lapsing.id, 'expired')
  upstream.plans.set('no key', { states: ['running', 'unauthorized'] })
  const unknown = await tasks.submit(tasks.order(account, 'film', 'no key'))
  const ofKey = { errorCode: 'unauthorized', errorMessage: 'not fit to be shown' }
  t.match(await tasks.reached(unknown.id, 'failed'), ofKey)
  t.match(await callOf(failing.id), {
    status: 'error',
    error_code: 'content_policy_violation',
    unit_count: null,
  })
  t.match(await callOf(lapsing.id), { status: 'error', error_code: 'task_expired', cost: '0' })
  t.match(await tasks.walletOf(account), UNTOUCHED)
})

t.test('a file that cannot be copied keeps the link of the upstream', async (t) => {
  const account = await tasks.newAccount()
  upstream.plans.set('gone', { states: ['succeeded'], lostFiles: true })
  const task = await tasks.submit(tasks.order(account, 'film', 'gone'))
  const ended = await tasks.reached(task.id, 'succeeded')
  t.match(ended.result?.files[0], { key: null, upstream_url: /\/file\/up-/ })
  t.match((await callOf(task.id)).result_urls, [/\/file\/up-/])
})

t.test('without enough money nothing is sent', async (t) => {
  const account = await tasks.newAccount(1n)
  const submits = upstream.submits.size
  await t.rejects(tasks.submit(tasks.order(account, 'film', 'poor')), { code: 'quota_exceeded' })
  t.equal(upstream.submits.size, submits)
  t.match(await tasks.walletOf(account), { balance: ONE_CREDIT, held: 0n })
})

t.test('the books agree at the end', async (t) => {
  t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
})
