/** Notifications: what is recorded, shared out, and mailed. */

import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import t, { type Test } from 'tap'
import {
  ATTEMPTS_AT_ONCE,
  DeliveryWork,
  type DeliveryWorkDeps,
} from '../../../pipelines/notifications/work.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import type { DueDelivery } from '../../../schemas/notifications/delivery.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { generateMasterKey } from '../../../src/core/keys/material.ts'
import { guardedPost, type Posted } from '../../../src/fetch/guarded-post.ts'
import { openMail } from '../../../src/mail/mail.ts'
import { openDatabase } from '../../../src/postgres/database.ts'
import type { Deliveries } from '../../../src/postgres/notifications/repository.ts'
import { settlement } from '../../src/postgres/support.ts'
import { BOUND_MS, eventually, until } from '../../support/eventually.ts'
import { serveHttp } from '../../support/http-server.ts'
import { startMailServer } from '../../support/mail-server.ts'
import { silent, startNotifications, startReceiver } from './support.ts'

t.test('crossings are recorded once', async (t) => {
  // Balances and circuit breakers: one event for each crossing, however many processes see it.
  const bench = await startNotifications(t)
  const { database, sql } = bench

  const typesOf = async (subject: string) =>
    (
      await sql<
        { type: string }[]
      >`SELECT type FROM events WHERE subject_id = ${subject} ORDER BY created_at, type`
    ).map(({ type }) => type)
  const spend = (accountId: string, credits: number) =>
    database.bookings.book([
      settlement(accountId, { request_id: newId('req'), cost: String(BigInt(credits) * ONE_CREDIT) }),
    ])

  t.test('a balance that falls below its threshold is one event, until it was above it again', async (t) => {
    const accountId = await bench.newAccount(100n)
    await database.alerts.setLowBalance(accountId, 50n * ONE_CREDIT)
    await spend(accountId, 50)
    t.same(await typesOf(accountId), [], 'exactly the threshold is not below it')
    await Promise.all([1, 2, 3, 4].map(() => spend(accountId, 1)))
    t.same(await typesOf(accountId), ['balance.low'])
    await database.wallets.adjust(accountId, 10n * ONE_CREDIT, { reason: 'test' })
    await spend(accountId, 20)
    t.same(await typesOf(accountId), ['balance.low', 'balance.low'])
    await spend(accountId, 40)
    await spend(accountId, 1)
    t.same(await typesOf(accountId), ['balance.low', 'balance.low', 'balance.empty'])
    t.match(await sql`SELECT data FROM events WHERE type = 'balance.empty' AND subject_id = ${accountId}`, [
      { data: { balance: '-4', held: '0', threshold: '50' } },
    ])
    await database.alerts.setLowBalance(accountId, null)
    await database.wallets.topUp(accountId, 500n * ONE_CREDIT)
    await spend(accountId, 490)
    t.equal((await typesOf(accountId)).length, 3, 'without a threshold there is no event')
  })

  t.test('a hold that comes and goes is no crossing', async (t) => {
    const accountId = await bench.newAccount(60n)
    await database.alerts.setLowBalance(accountId, 50n * ONE_CREDIT)
    for (const ref of ['vid_1', 'vid_2', 'vid_3']) {
      await sql`UPDATE wallets SET balance = balance - ${20n * ONE_CREDIT}, held = held + ${20n * ONE_CREDIT} WHERE account_id = ${accountId}`
      await sql`UPDATE wallets SET balance = balance + ${20n * ONE_CREDIT}, held = held - ${20n * ONE_CREDIT} WHERE account_id = ${accountId}`
      t.same(await typesOf(accountId), [], ref)
    }
  })

  t.test('breakers of all processes make one event for each crossing, and flapping makes none', async (t) => {
    const other = await bench.database
    const report = (isOpen: boolean) =>
      Promise.all(
        [database, other].map((one) => one.alerts.recordBreakers([{ channelId: 'primary', isOpen }])),
      )
    const calm = () => sql`UPDATE channel_breakers SET closed_since = closed_since - interval '2 minutes'`
    await report(false)
    t.same(await typesOf('primary'), [])
    await report(true)
    await report(true)
    t.same(await typesOf('primary'), ['channel.opened'])
    await report(false)
    await report(true)
    await calm()
    await report(false)
    t.same(await typesOf('primary'), ['channel.opened'], 'closed for a moment')
    await calm()
    await report(false)
    t.same(await typesOf('primary'), ['channel.opened', 'channel.closed'])
    await report(true)
    t.same((await typesOf('primary')).length, 3)
    t.match(await sql`SELECT account_id FROM events WHERE subject_id = 'primary' LIMIT 1`, [
      { account_id: null },
    ])
  })
})

t.test('attempts are shared out', async (t) => {
  // What a worker has under way at a time, of one endpoint, one account, one host and in all.
  interface Target {
    readonly accountId: string
    readonly lane: string
    readonly url: string
  }

  const deliveryTo = (id: string, { accountId, lane, url }: Target): DueDelivery => ({
    id,
    lane,
    tries: 0,
    state: 'waiting',
    event: { id: `evt_${id}`, type: 'key.revoked', accountId, createdAt: new Date(), data: {} },
    accountName: null,
    endpoint: { url, enabled: true, secrets: ['whsec_AAAA'] },
    address: null,
    locale: 'en',
    mail: null,
    isUnreadable: false,
  })

  /** A worker whose posts hang until they are answered. */
  function startWork(deliveries: ReadonlyMap<string, DueDelivery>) {
    const hanging: { readonly url: string; answer(): void }[] = []
    let most = 0
    const work = new DeliveryWork({
      database: {
        deliveries: {
          read: async (ids: readonly string[]) => ids.map((id) => deliveries.get(id)!),
          endAttempts: async () => {},
          touch: async () => {},
        } as Partial<Deliveries> as Deliveries,
      },
      post: (url) =>
        new Promise<Posted>((resolve) => {
          const one = {
            url,
            answer() {
              hanging.splice(hanging.indexOf(one), 1)
              resolve({ status: 200, headers: {}, body: Buffer.alloc(0) } as unknown as Posted)
            },
          }
          hanging.push(one)
          most = Math.max(most, hanging.length)
        }),
      mayBePrivate: () => true,
      mail: null,
      onRecorded: () => {},
      log: silent,
      now: Date.now,
      random: () => 0,
      pause: () => turn(),
    })
    for (const id of deliveries.keys()) work.take(id)
    return { hanging, most: () => most }
  }

  const targets = (count: number, targetOf: (at: number) => Target) =>
    new Map(Array.from({ length: count }, (_, at) => [`d${at}`, deliveryTo(`d${at}`, targetOf(at))] as const))

  t.test('one account has a fair share, however many endpoints it has', async (t) => {
    const busy = (at: number) => ({
      accountId: 'busy',
      lane: `busy ${at % 50}`,
      url: `https://h${at % 50}.example.com/`,
    })
    const calm = { accountId: 'calm', lane: 'calm', url: 'https://calm.example.com/' }
    const { hanging, most } = startWork(targets(500, (at) => (at === 499 ? calm : busy(at))))
    await eventually('the calm account', () => hanging.find(({ url }) => url === calm.url))
    t.equal(hanging.length, ATTEMPTS_AT_ONCE.account + 1)
    const seen = new Set<string>()
    while (hanging.length > 0) {
      for (const { url, answer } of [...hanging]) {
        seen.add(url)
        answer()
      }
      await turn()
    }
    t.equal(seen.size, 51, 'every endpoint had its turn')
    t.ok(most() <= ATTEMPTS_AT_ONCE.account + 1)
  })

  t.test('one host has a fair share, from all accounts together', async (t) => {
    const url = 'https://slow.example.com:8443/hook'
    const { hanging } = startWork(targets(200, (at) => ({ accountId: `a${at}`, lane: `l${at}`, url })))
    await eventually('the host is full', () => hanging.length === ATTEMPTS_AT_ONCE.host || undefined)
    for (let at = 0; at < 20; at++) await turn()
    t.equal(hanging.length, ATTEMPTS_AT_ONCE.host)
  })

  t.test('one endpoint has few, and all together have a bound', async (t) => {
    const one = startWork(targets(100, () => ({ accountId: 'a', lane: 'l', url: 'https://h.example.com/' })))
    await eventually('the lane is full', () => one.hanging.length === ATTEMPTS_AT_ONCE.lane || undefined)
    const all = startWork(
      targets(2 * ATTEMPTS_AT_ONCE.all, (at) => ({
        accountId: `a${at}`,
        lane: `l${at}`,
        url: `https://h${at}.example.com/`,
      })),
    )
    await eventually('the worker is full', () => all.hanging.length === ATTEMPTS_AT_ONCE.all || undefined)
    for (let at = 0; at < 20; at++) await turn()
    t.equal(all.hanging.length, ATTEMPTS_AT_ONCE.all)
    t.equal(one.hanging.length, ATTEMPTS_AT_ONCE.lane)
  })
})

t.test('mails arrive', async (t) => {
  // Mails as a mail server gets them: by each user's choice, in their language, and with every value escaped.
  const bench = await startNotifications(t)
  const { database, sql } = bench
  const server = await startMailServer(t)
  const mail = openMail({
    url: server.url,
    from: 'Tollgate <noreply@example.com>',
    publicUrl: 'https://gateway.example',
  })
  t.teardown(() => mail.close())

  const newUser = (email: string, name: string, locale: 'en' | 'zh' = 'en') =>
    database.users.create({ email, name, locale, credit: 100n * ONE_CREDIT })
  const mailTo = (address: string, count = 1) =>
    eventually(`mail ${count} to ${address}`, () => server.to(address)[count - 1])

  t.test('events go to those who want them, in their language', async (t) => {
    bench.worker(t, { mail })
    const ada = await newUser('ada@example.com', 'Ada')
    const li = await newUser('li@example.com', 'Li', 'zh')
    const organization = await database.accounts.create({
      name: '<b>Acme</b> & Co\r\nBcc: all@example.com',
      kind: 'organization',
      credit: 0n,
    })
    const { id } = organization.account
    await database.organizations.putMember(id, ada.accountId, 'owner')
    await database.organizations.putMember(id, li.accountId, 'admin')
    const record = (type: 'balance.low' | 'key.revoked') =>
      database.events.record({
        type,
        accountId: id,
        subjectId: id,
        crossing: null,
        data: { balance: '"1"<i>' },
      })
    await record('balance.low')
    const low = await mailTo('ada@example.com')
    t.match(low.headers, /^Subject: The balance of <b>Acme<\/b> & Co Bcc: all@example.com is low$/m)
    t.notMatch(low.headers, /^Bcc:/m, 'no name makes a header')
    t.match(low.headers, /^Message-ID: <dlv_\w+@gateway.example>$/m)
    t.match(low.text, 'balance: "1"<i>')
    t.match(low.html, '&quot;1&quot;&lt;i&gt;')
    t.notMatch(low.html, /<b>|<i>/)
    t.match(low.html, 'https://gateway.example/console/')

    await database.alerts.setEmailChoices(li.id, id, ['key.revoked'])
    await database.alerts.setEmailChoices(ada.id, id, [])
    await record('key.revoked')
    t.match((await mailTo('li@example.com')).text, '的一个密钥已吊销')
    t.equal(server.to('ada@example.com').length, 1)
    await sql`UPDATE users SET enabled = false WHERE id = ${li.id}`
    await record('key.revoked')
    await until(
      'it is dispatched',
      async () => (await sql`SELECT FROM events WHERE dispatched_at IS NULL`).length === 0,
    )
    t.match(await sql`SELECT count(*)::integer FROM deliveries WHERE user_id = ${li.id}`, [{ count: 1 }])
  })

  t.test('a mail of the service is sealed until it is sent, and tried again if it can succeed', async (t) => {
    const send = (address: string) =>
      database.deliveries.sendMail(address, {
        mail: 'recovery',
        locale: 'en',
        values: {},
        link: 'https://gateway.example/console/sign-in#link=secret-token',
      })
    await send('later@example.com')
    const row = async () => {
      const [found] = await sql`SELECT * FROM deliveries WHERE address = 'later@example.com'`
      return found!
    }
    t.notMatch((await row()).sealed_mail.toString('latin1'), 'secret-token')
    server.answer('later@example.com', 451)
    bench.worker(t, { mail })
    await until('a first attempt', async () => (await row()).tries === 1)
    t.match((await row()).attempts, [{ status: 451, error: /did not take it/ }])
    server.answer('later@example.com', 250)
    await sql`UPDATE deliveries SET due_at = now() WHERE address = 'later@example.com'`
    t.match((await mailTo('later@example.com')).text, '#link=secret-token')
    await until('it is recorded', async () => (await row()).state === 'delivered')
    t.equal((await row()).sealed_mail, null)
    server.answer('never@example.com', 550)
    await send('never@example.com')
    await until('it has failed for good', async () => {
      const [found] = await sql`SELECT state FROM deliveries WHERE address = 'never@example.com'`
      return found!.state === 'failed'
    })
  })

  t.test('a mail outlives a wrong password of the mail server', async (t) => {
    const url = server.url.replace('//', '//user:wrong@')
    const locked = openMail({ url, from: 'noreply@example.com', publicUrl: 'https://gateway.example' })
    t.teardown(() => locked.close())
    server.answerLogins(535)
    bench.worker(t, { mail: locked })
    const values = {}
    await database.deliveries.sendMail('patient@example.com', {
      mail: 'recovery',
      locale: 'en',
      values,
      link: 'https://a.example',
    })
    const row = async () => {
      const [found] = await sql`SELECT * FROM deliveries WHERE address = 'patient@example.com'`
      return found!
    }
    await until('a first attempt', async () => (await row()).tries === 1)
    t.match(await row(), { state: 'waiting', attempts: [{ status: 535, error: /did not take it/ }] })
    server.answerLogins(235)
    await sql`UPDATE deliveries SET due_at = now() WHERE address = 'patient@example.com'`
    t.match((await mailTo('patient@example.com')).text, 'https://a.example')
  })
})

t.test('an unreadable secret fails alone', async (t) => {
  // A stored secret or mail that the master key does not open: its own delivery fails, and says why.
  const bench = await startNotifications(t)
  const { database, sql } = bench
  const server = await startMailServer(t)
  const mail = openMail({
    url: server.url,
    from: 'noreply@example.com',
    publicUrl: 'https://gateway.example',
  })
  t.teardown(() => mail.close())

  /** The delivery of an account or an address, once it had so many attempts. */
  const deliveryOf = (subject: string, tries: number) =>
    eventually(`${tries} attempts for ${subject}`, async () => {
      const [row] = await sql`
      SELECT d.*, w.failing_since FROM deliveries AS d
      LEFT JOIN events AS e ON e.id = d.event_id LEFT JOIN webhook_endpoints AS w ON w.id = d.endpoint_id
      WHERE coalesce(d.address, e.account_id) = ${subject} AND d.tries = ${tries}`
      return row
    })

  /** An account with an endpoint, and an event for it. */
  async function newReceiver(url: string) {
    const accountId = await bench.newAccount()
    return { accountId, ...(await bench.newEndpoint(accountId, url)) }
  }

  const sendMail = (address: string) =>
    database.deliveries.sendMail(address, {
      mail: 'recovery',
      locale: 'en',
      values: {},
      link: 'https://gateway.example/',
    })

  t.test('the delivery fails, and is tried again; others of its batch are made', async (t) => {
    const { url, received } = await startReceiver(t)
    const broken = await newReceiver(url)
    const whole = await newReceiver(url)
    await sql`
    UPDATE webhook_endpoints SET sealed_secret = (SELECT sealed_secret FROM webhook_endpoints WHERE id = ${whole.id})
    WHERE id = ${broken.id}`
    for (const address of ['broken@example.com', 'whole@example.com']) await sendMail(address)
    await sql`
    UPDATE deliveries SET sealed_mail = (SELECT sealed_mail FROM deliveries WHERE address = 'whole@example.com')
    WHERE address = 'broken@example.com'`
    for (const { accountId } of [broken, whole]) await bench.record(accountId)
    const logged: string[] = []
    const log = { info() {}, warn() {}, error: (_: object, message: string) => void logged.push(message) }
    bench.worker(t, { mail, log })

    t.match(await deliveryOf(whole.accountId, 1), { state: 'delivered' })
    t.match(await deliveryOf('whole@example.com', 1), { state: 'delivered' })
    t.match(await deliveryOf(broken.accountId, 1), {
      state: 'waiting',
      attempts: [{ status: null, error: 'The stored secret of the endpoint cannot be read. Replace it.' }],
      failing_since: Date,
    })
    t.match(await deliveryOf('broken@example.com', 1), {
      state: 'waiting',
      attempts: [{ status: null, error: 'The stored mail cannot be read.' }],
    })
    t.match(logged[0], 'Stored secrets or mails of deliveries do not open')
    t.equal(received.length, 1)

    await database.webhooks.rotateSecret(broken.id)
    await sql`UPDATE deliveries SET due_at = now() WHERE state = 'waiting'`
    t.match(await deliveryOf(broken.accountId, 2), { state: 'delivered' }, 'the former secret is left out')
  })

  t.test('a process with a former master key makes no attempt', async (t) => {
    const { url, received } = await startReceiver(t)
    const { accountId } = await newReceiver(url)
    const next = generateMasterKey()
    // A rotation of the master key ends at what it cannot seal again.
    const mended = await sql`DELETE FROM deliveries WHERE address = 'broken@example.com' RETURNING id`
    t.equal(mended.length, 1)
    await sql`UPDATE webhook_endpoints SET sealed_former_secret = NULL`
    await database.masterKey.rotate(next)
    await bench.record(accountId)
    const warned = Promise.withResolvers<string>()
    const log = { info() {}, error() {}, warn: (_: object, message: string) => warned.resolve(message) }
    bench.worker(t, { log })
    t.equal(await warned.promise, 'Delivering notifications fails; retrying')
    await pause(100)
    t.match(await deliveryOf(accountId, 0), { attempts: { length: 0 }, failing_since: null })

    const current = await openDatabase({ url: bench.serviceUrl, masterKey: next })
    t.teardown(() => current.close())
    bench.worker(t, { database: current })
    t.match(await deliveryOf(accountId, 1), { state: 'delivered' })
    t.equal(received.length, 1)
  })
})

t.test('webhooks are signed and retried', async (t) => {
  // Webhooks as receivers get them: signed, retried, and never where they must not go.
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
})
