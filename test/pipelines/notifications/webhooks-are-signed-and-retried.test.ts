/** Webhooks as receivers get them: signed, retried, and never where they must not go. */
import { setTimeout as pause } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import t, { type Test } from 'tap'
import { DeliveryWork, type DeliveryWorkDeps } from '../../../pipelines/notifications/work.ts'
import { guardedPost } from '../../../src/fetch/guarded-post.ts'
import { BOUND_MS, eventually, until } from '../../support/eventually.ts'
import { serveHttp } from '../../support/http-server.ts'
import { silent, startNotifications, startReceiver } from './support.ts'

const bench = await startNotifications(t)
const { database, sql } = bench

/** A process whose next attempts come when the test makes them due: their pauses are a thousand times as long. */
function retryByHand(t: Test): number[] {
  const pausesMs: number[] = []
  const deliveries: DeliveryWorkDeps['database']['deliveries'] = {
    ...database.deliveries,
    endAttempts: (ended) => {
      pausesMs.push(...ended.map(({ pauseMs }) => pauseMs))
      return database.deliveries.endAttempts(ended.map((one) => ({ ...one, pauseMs: 1000 * one.pauseMs })))
    },
  }
  bench.worker(t, { database: { deliveries } })
  return pausesMs
}

/** The deliveries of an endpoint, once each satisfies the check. */
const deliveriesOf = (accountId: string, isSo: (state: string, attempts: number) => boolean) =>
  eventually(`deliveries of ${accountId}`, async () => {
    const filter = { accountId, endpointId: null, state: null, type: null, before: null, limit: 50 }
    const found = await database.deliveries.list(filter)
    return found.length > 0 && found.every(({ state, attempts }) => isSo(state, attempts.length))
      ? found
      : undefined
  })

t.test('a receiver verifies what comes, also while its secret is replaced', async (t) => {
  bench.worker(t)
  const { url, received } = await startReceiver(t)
  const accountId = await bench.newAccount()
  const { id, secret } = await bench.newEndpoint(accountId, url)
  const [event] = await bench.record(accountId)
  const [delivery] = await deliveriesOf(accountId, (state) => state === 'delivered')
  const hook = received[0]!
  const payload = new Webhook(secret).verify(hook.body, hook.headers) as Record<string, unknown>
  t.match(payload, { type: 'key.revoked', account_id: accountId, data: { number: 1 }, timestamp: String })
  t.equal(hook.headers['webhook-id'], event)
  t.match(delivery!.attempts, [{ status: 200, answer: 'thanks', error: null }])
  t.throws(
    () => new Webhook(secret).verify(hook.body.replace('1', '2'), hook.headers),
    'a changed body is refused',
  )

  const { secret: next } = await database.webhooks.rotateSecret(id)
  await bench.record(accountId)
  await eventually('the second webhook', () => received[1])
  const rotated = received[1]!
  t.equal(rotated.headers['webhook-signature']!.split(' ').length, 2)
  for (const one of [secret, next]) t.ok(new Webhook(one).verify(rotated.body, rotated.headers))
  await sql`UPDATE webhook_endpoints SET former_until = now() WHERE id = ${id}`
  await bench.record(accountId)
  const last = await eventually('the third webhook', () => received[2])
  t.ok(new Webhook(next).verify(last.body, last.headers))
  t.throws(() => new Webhook(secret).verify(last.body, last.headers), 'the former secret is over')
})

t.test('a failure is tried again later under the same id, and a success ends it', async (t) => {
  let fails = 2
  const { url, received } = await startReceiver(t, (_, response) => {
    response.statusCode = fails-- > 0 ? 500 : 204
    response.end('x'.repeat(10_000))
  })
  const pausesMs = retryByHand(t)
  const accountId = await bench.newAccount()
  const { id } = await bench.newEndpoint(accountId, url)
  const [event] = await bench.record(accountId)
  for (const number of [1, 2]) {
    const [waiting] = await deliveriesOf(accountId, (_, attempts) => attempts === number)
    t.equal(waiting!.state, 'waiting')
    t.match(waiting!.attempts.at(-1), { status: 500, error: /status 500/, answer: /^x{4096}$/ })
    t.ok(waiting!.dueAt.getTime() > Date.parse(waiting!.attempts.at(-1)!.at), 'later')
    t.ok((await database.webhooks.show(id)).failingSince)
    await sql`UPDATE deliveries SET due_at = now() WHERE id = ${waiting!.id}`
  }
  await deliveriesOf(accountId, (state) => state === 'delivered')
  const [first = 0, second = 0] = pausesMs
  t.ok(first > 2_000 && second > 20_000, 'the pauses grow')
  t.same([...new Set(received.map(({ headers }) => headers['webhook-id']))], [event])
  t.equal((await database.webhooks.show(id)).failingSince, null)
})

t.test('after a day of failures the delivery has failed, and can be replayed', async (t) => {
  let status = 503
  const { url, received } = await startReceiver(t, (_, response) => {
    response.statusCode = status
    response.end()
  })
  retryByHand(t)
  const accountId = await bench.newAccount()
  const { id } = await bench.newEndpoint(accountId, url)
  await bench.record(accountId)
  const [first] = await deliveriesOf(accountId, (_, attempts) => attempts === 1)
  await sql`UPDATE deliveries SET tries = 10, due_at = now() WHERE id = ${first!.id}`
  await deliveriesOf(accountId, (state) => state === 'failed')
  status = 200
  t.equal(await database.deliveries.replayFailed(id, new Date(0)), 1)
  const [again] = await deliveriesOf(accountId, (state) => state === 'delivered')
  t.equal(again!.attempts.length, 3)
  await database.deliveries.replay(again!.id)
  await deliveriesOf(accountId, (state, attempts) => state === 'delivered' && attempts === 4)
  t.equal(received.length, 4)
})

t.test('an endpoint that fails for five days is switched off with an event', async (t) => {
  const { url } = await startReceiver(t, (_, response) => {
    response.statusCode = 500
    response.end()
  })
  bench.worker(t)
  const accountId = await bench.newAccount()
  const { id } = await bench.newEndpoint(accountId, url)
  await sql`UPDATE webhook_endpoints SET failing_since = now() - interval '5 days 1 minute' WHERE id = ${id}`
  await bench.record(accountId)
  await until('it is off', async () => !(await database.webhooks.show(id)).enabled)
  t.match(await sql`SELECT type, data FROM events WHERE subject_id = ${id}`, [
    { type: 'webhook.disabled', data: { endpoint_id: id, url } },
  ])
  await sql`UPDATE deliveries SET due_at = now() WHERE endpoint_id = ${id}`
  const [over] = await deliveriesOf(accountId, (state) => state === 'failed')
  t.match(over!.attempts.at(-1), { error: 'The endpoint is switched off.', headers: null })
  t.equal((await database.webhooks.update(id, { enabled: true })).failingSince, null)
})

t.test('redirects, private addresses and receivers that hang get no second request', async (t) => {
  const target = await startReceiver(t)
  const redirecting = await startReceiver(
    t,
    (_, response) => void response.writeHead(307, { location: target.url }).end(),
  )
  const hanging = await startReceiver(t, () => {})
  const cases = [
    { url: redirecting.url, error: /redirects \(307\)/, isPrivate: true },
    { url: hanging.url, error: /did not answer within/, isPrivate: true, timeoutMs: 300 },
    { url: 'http://127.0.0.1:1/', error: /cannot be reached/, isPrivate: true },
    { url: target.url, error: /no public address/, isPrivate: false },
    {
      url: target.url.replace('127.0.0.1', 'localhost'),
      error: /no public address/,
      isPrivate: false,
    },
    { url: 'http://[::ffff:127.0.0.1]/', error: /no public address/, isPrivate: false },
  ]
  for (const { url, error, isPrivate, timeoutMs = 60_000 } of cases)
    await t.test(`${url}, private ones ${isPrivate ? 'allowed' : 'refused'}`, async (t) => {
      bench.worker(t, {
        mayBePrivate: () => isPrivate,
        post: (to, options) => guardedPost(to, { ...options, timeoutMs }),
      })
      const accountId = await bench.newAccount()
      await bench.newEndpoint(accountId, url)
      await bench.record(accountId)
      const [delivery] = await deliveriesOf(accountId, (_, attempts) => attempts >= 1)
      t.match(delivery!.attempts[0], { error })
    })
  t.same(target.received, [], 'nobody followed, and nothing went to a private address')
})

t.test('a name that leads elsewhere between attempts is judged again each time', async (t) => {
  const { port } = new URL(await serveHttp(t, (_, response) => void response.end(), '127.0.0.2'))
  const answers = ['127.0.0.2', '10.0.0.1', '127.0.0.2']
  const attempts = []
  for (const address of answers)
    attempts.push(
      await guardedPost(`http://receiver.example:${port}/`, {
        headers: {},
        body: '{}',
        timeoutMs: 60_000,
        maxAnswerBytes: 10,
        isAllowed: (one) => one === '127.0.0.2',
        lookUp: (_, __, done) => done(null, [{ address, family: 4 }]),
      }),
    )
  t.match(attempts, [{ status: 200 }, { status: null, failure: 'not_public' }, { status: 200 }])
})

t.test('a slow receiver does not hold up the others', async (t) => {
  let open = 0
  let most = 0
  const slow = await startReceiver(t, (_, response) => {
    most = Math.max(most, ++open)
    response.once('close', () => open--)
  })
  const fast = await startReceiver(t)
  const slowAccount = await bench.newAccount()
  const fastAccount = await bench.newAccount()
  await bench.newEndpoint(slowAccount, slow.url)
  await bench.newEndpoint(fastAccount, fast.url)
  await bench.record(slowAccount, 600)
  await bench.record(fastAccount, 300)
  bench.worker(t)
  await until('the fast receiver has all', () => fast.received.length >= 300)
  t.ok(most > 0 && most <= 8, `${most} attempts are under way at once at the slow one`)
})

t.test('a process that has stopped begins no round, whose deliveries others would wait for', async (t) => {
  const accountId = await bench.newAccount()
  await bench.newEndpoint(accountId, 'http://receiver.example/')
  await bench.record(accountId)
  await database.events.dispatch(10, { hasMail: false })
  const [waiting] = await deliveriesOf(accountId, (state) => state === 'waiting')
  const posted = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<void>()
  let rounds = 0
  const work = new DeliveryWork({
    database,
    mayBePrivate: () => true,
    mail: null,
    log: silent,
    now: Date.now,
    random: () => 0,
    pause: (ms) => pause(ms),
    onRecorded: () => rounds++,
    async post() {
      posted.resolve()
      await answered.promise
      return { status: 204, answer: '', failure: null }
    },
  })
  work.take(waiting!.id)
  await posted.promise
  await work.stop(0)
  answered.resolve()
  await deliveriesOf(accountId, (state) => state === 'delivered')
  // Resolves once the attempt is recorded, and what comes behind that has been done.
  await work.stop(BOUND_MS)
  t.equal(rounds, 0)
})

t.test('a test event goes to one endpoint alone', async (t) => {
  bench.worker(t)
  const { url, received } = await startReceiver(t)
  const other = await startReceiver(t)
  const accountId = await bench.newAccount()
  const { id, secret } = await bench.newEndpoint(accountId, url)
  await bench.newEndpoint(accountId, other.url)
  await database.webhooks.test({ id, accountId })
  const hook = await eventually('the test event', () => received[0])
  t.match(new Webhook(secret).verify(hook.body, hook.headers), {
    type: 'webhook.test',
    data: { endpoint_id: id },
  })
  t.same(other.received, [])
})
