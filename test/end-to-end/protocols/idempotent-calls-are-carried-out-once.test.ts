/** A repeated call with one Idempotency-Key is executed once. */
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { eventually, startService, until } from '../../support/service.ts'
import { balanceOf, errorOf, post, readUntil, rowOf, traceOf, upstreamCalls } from '../support.ts'
import {
  type AskOptions,
  ask,
  CHAT_PROTOCOLS,
  type ChatProtocol,
  checkRefused,
  configOf,
  ERRORS,
  PLAIN,
  simulated,
  WAYS,
} from './support.ts'

const MODELS = {
  plain: 'sim-plain@tokens=20',
  slow: 'sim-slow@tokens=200,tps=200',
  stuck: 'sim-stuck@tokens=200,fault=hang:900',
  once_busy: 'sim-once-busy@fault=status:503,times=1',
  once_cut: 'sim-once-cut@tokens=50,fault=truncate:900,times=1',
}
const RACERS = 12
const CONFIG = configOf(
  Object.fromEntries(
    CHAT_PROTOCOLS.flatMap((protocol) => Object.keys(MODELS).map((kind) => [`${protocol}.${kind}`, {}])),
  ),
  CHAT_PROTOCOLS.map((protocol) =>
    simulated(
      protocol,
      Object.fromEntries(
        Object.entries(MODELS).map(([kind, name]) => [
          `${protocol}.${kind}`,
          // What strikes once strikes once for each model.
          name.replace('@', `-${protocol}@`),
        ]),
      ),
    ),
  ),
)

t.test('a call with an Idempotency-Key', async (t) => {
  const service = await startService(t, { config: CONFIG })
  let keys = 0
  const freshKey = (): string => `intent-${++keys}`
  const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer())
  const modelCalls = async (name: string) =>
    (await upstreamCalls(service)).filter(({ model }) => model?.startsWith(name)).length

  for (const [client, upstream] of WAYS)
    await t.test(`${client} to ${upstream}: is replayed byte for byte, and charged once`, async (t) => {
      const { key, accountId } = await service.newKey('1000000')
      const second = await service.database.keys.create({ name: 'another of the account', accountId })
      for (const stream of [false, true]) {
        const intent = freshKey()
        const options = { stream, headers: { 'idempotency-key': intent } }
        const call = (raw: string) => ask(service, raw, client, `${upstream}.plain`, options)
        const first = await call(key)
        const body = await bytesOf(first)
        t.equal(first.status, 200)
        t.equal(first.headers.get('idempotency-replayed'), null)
        const spent = (await balanceOf(service, key)).remaining
        const calls = (await upstreamCalls(service)).length

        for (const raw of [key, key, second.raw]) {
          const replay = await call(raw)
          t.ok((await bytesOf(replay)).equals(body), 'the same bytes')
          t.equal(replay.status, 200)
          t.equal(replay.headers.get('idempotency-replayed'), 'true')
          for (const name of ['content-type', 'x-protocol-translation', 'x-gateway-trace'])
            t.equal(replay.headers.get(name), first.headers.get(name), name)
        }
        const { path, body: sent } = PLAIN[client](`${upstream}.plain`, stream)
        const [other, ...rest] = Object.entries(sent).reverse()
        const respelt = JSON.stringify(Object.fromEntries([other!, ...rest]), null, 4)
        const spelt = await post(service, key, path, respelt, options.headers)
        t.equal(spelt.headers.get('idempotency-replayed'), 'true', 'another spelling of the same body')
        await spelt.arrayBuffer()

        const different = await ask(service, key, client, `${upstream}.plain`, {
          ...options,
          more: { temperature: 0.25 },
        })
        await checkRefused(t, different, client, ERRORS.keyReuse)
        t.equal((await upstreamCalls(service)).length, calls, 'no upstream was called again')
        t.equal((await balanceOf(service, key)).remaining, spent, 'nothing was charged again')

        const stranger = await service.newKey('1000000')
        const theirs = await call(stranger.key)
        t.equal(theirs.headers.get('idempotency-replayed'), null, "another account's intent is another")
        await theirs.arrayBuffer()
        t.match(await rowOf(service, key, traceOf(first)), { status: 'success', attempts_count: 1 })
      }
      const rows = await service.logs(key, (found) => found.length >= 4)
      const counted = (status: string) => rows.filter((row) => row.status === status).length
      t.same([counted('success'), counted('rejected'), rows.length], [2, 2, 4], 'replays leave no row')
    })

  await t.test('is refused over the balance, and free again once there is more', async (t) => {
    const { key, accountId } = await service.newKey('0.00000001')
    const call = () =>
      ask(service, key, 'chat-completions', 'chat-completions.plain', {
        headers: { 'idempotency-key': intent },
      })
    const intent = freshKey()
    const refused = await call()
    t.equal(refused.status, 402)
    await refused.arrayBuffer()
    await service.database.wallets.topUp(accountId, 100_000_000_000_000n)
    const answered = await eventually('the wallet is known to be fuller', async () => {
      const response = await call()
      if (response.status === 402) return void (await response.arrayBuffer())
      return response
    })
    t.equal(answered.status, 200)
    t.equal(
      answered.headers.get('idempotency-replayed'),
      null,
      'no record of the refused one stood in the way',
    )
    await answered.arrayBuffer()
  })

  for (const client of CHAT_PROTOCOLS)
    await t.test(`${client}: is refused while the first one runs, free when that ends badly`, async (t) => {
      const { key } = await service.newKey('1000000')
      const call = (kind: string, options: AskOptions) =>
        ask(service, key, client, `${client}.${kind}`, options)

      const slow = { stream: true, headers: { 'idempotency-key': freshKey() } }
      const whole = await bytesOf(await call('slow', slow))
      t.ok((await bytesOf(await call('slow', slow))).equals(whole), 'replayed once it is complete')

      const left = { stream: true, headers: { 'idempotency-key': freshKey() } }
      const running = await call('stuck', left)
      await checkRefused(t, await call('stuck', left), client, ERRORS.inFlight)
      await leave(running)
      await until('the key is free again', async () => {
        const again = await call('stuck', left)
        await leave(again)
        return again.status === 200
      })

      const refused = { headers: { 'idempotency-key': freshKey() } }
      t.equal((await call('once_busy', refused)).status, 503)
      const answered = await call('once_busy', refused)
      t.equal(answered.status, 200, 'an error does not consume the key')
      t.equal(answered.headers.get('idempotency-replayed'), null)
      await answered.arrayBuffer()

      const cut = { stream: true, headers: { 'idempotency-key': freshKey() } }
      const broken = await readUntil(await call('once_cut', cut))
      const complete = await call('once_cut', cut)
      t.equal(complete.headers.get('idempotency-replayed'), null, 'a cut stream does not either')
      t.ok((await bytesOf(complete)).length > broken.length)
      t.equal((await call('once_cut', cut)).headers.get('idempotency-replayed'), 'true')
    })

  await t.test('holds no key for a client that left before it was had', async (t) => {
    const { key, accountId } = await service.newKey('1000000')
    const sql = postgres(service.engines.databaseUrl, { max: 1 })
    t.teardown(() => sql.end())
    const intent = freshKey()
    const call = (signal?: AbortSignal) => {
      const { path, body } = PLAIN.messages('messages.slow', true)
      return post(service, key, path, body, { 'idempotency-key': intent }, signal)
    }
    const abort = new AbortController()
    let left: Promise<unknown> | undefined
    const undone = sql.begin(async (transaction) => {
      // The next claim of the key waits for the end of this one.
      await transaction`
        INSERT INTO idempotency_records (scope, key, state, request_hash, request_id, frees_at, expires_at)
        VALUES (${`account:${accountId}`}, ${intent}, 'running', '', 'none', now(), now())`
      left = call(abort.signal).catch(() => null)
      await until('the claim waits', async () => {
        const waiting = await transaction`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'`
        return waiting.length > 0
      })
      abort.abort()
      await left
      throw new Error('undone')
    })
    await undone.catch(() => null)
    const answered = await eventually('the key can be had', async () => {
      const response = await call()
      await leave(response)
      return response.status === 200 ? response : undefined
    })
    t.equal(answered.headers.get('idempotency-replayed'), null)
    t.equal((await upstreamCalls(service, traceOf(answered))).length, 1)
  })

  await t.test('may carry the key of the account in its query', async (t) => {
    const { key, accountId } = await service.newKey('1000000')
    const second = await service.database.keys.create({ name: 'another of the account', accountId })
    const headers = { 'idempotency-key': freshKey(), 'content-type': 'application/json' }
    const { path, body } = PLAIN['generate-content']('generate-content.plain', true)
    const call = (raw: string, of = path) =>
      fetch(`${service.baseUrl}${of}&key=${raw}`, { method: 'POST', headers, body: JSON.stringify(body) })
    const first = await call(key)
    t.equal(first.status, 200)
    t.ok((await bytesOf(first)).length > 0, 'complete')
    t.equal((await call(second.raw)).headers.get('idempotency-replayed'), 'true')
    const asArray = await call(key, path.replace('alt=sse', 'alt=json'))
    await checkRefused(t, asArray, 'generate-content', ERRORS.keyReuse)
  })

  await t.test('is one call of one upstream, whichever of two gateway processes is asked', async (t) => {
    const other = await startService(t, {
      engines: service.engines,
      config: CONFIG,
      env: { TOLLGATE_ROLES: 'gateway' },
    })
    for (const client of ['chat-completions', 'messages'] as const)
      for (const stream of [false, true]) await race(t, client, stream)

    async function race(t: Test, client: ChatProtocol, stream: boolean) {
      const { key } = await service.newKey('1000000')
      // Both know the key: neither has to look it up first.
      for (const gateway of [service, other]) await balanceOf(gateway, key)
      const before = await modelCalls(`sim-slow-${client}`)
      const options = { stream, headers: { 'idempotency-key': freshKey() } }
      const answers = await Promise.all(
        Array.from({ length: RACERS }, async (_, index) => {
          const response = await ask(
            index % 2 === 0 ? service : other,
            key,
            client,
            `${client}.slow`,
            options,
          )
          const { status, headers } = response
          return { status, isReplay: headers.has('idempotency-replayed'), text: await response.text() }
        }),
      )
      t.equal((await modelCalls(`sim-slow-${client}`)) - before, 1)
      const [first, ...more] = answers.filter(({ status, isReplay }) => status === 200 && !isReplay)
      t.same(more, [], 'one was carried out')
      const refused = answers.filter(({ status }) => status === 409)
      const replayed = answers.filter(({ isReplay }) => isReplay)
      t.equal(refused.length + replayed.length, RACERS - 1)
      for (const gateway of [service, other]) {
        const replay = await ask(gateway, key, client, `${client}.slow`, options)
        t.equal(replay.headers.get('idempotency-replayed'), 'true')
        replayed.push({ status: 200, isReplay: true, text: await replay.text() })
      }
      for (const { text } of replayed) t.equal(text, first?.text)
      const rows = await service.logs(key, (found) => found.length > refused.length)
      t.equal(rows.length, 1 + refused.length)
      const [paid, ...others] = rows.filter(({ cost }) => cost !== '0')
      t.same([paid?.status, others.length], ['success', 0])
      for (const gateway of [service, other])
        await until('the charge is known to both', async () => {
          const { used } = await balanceOf(gateway, key)
          return used === paid?.cost
        })
    }
  })

  await t.test('is not carried out when its record cannot be had', async (t) => {
    const { key } = await service.newKey('1000000')
    const call = (headers = {}) =>
      ask(service, key, 'chat-completions', 'chat-completions.plain', { headers })
    t.equal((await call()).status, 200)
    await service.engines.stopEngine('postgres')
    const headers = { 'idempotency-key': freshKey() }
    const response = await call(headers)
    t.equal(response.status, 503)
    t.match(await errorOf(response), { code: 'service_unavailable', type: 'server_error' })
    t.equal((await call()).status, 200, 'others go on')
    await service.engines.startEngine('postgres')
    await until('it is carried out again', async () => (await call(headers)).status === 200)
  })
})

/** Reads the beginning, and goes. */
async function leave(response: Response): Promise<void> {
  const reader = response.body!.getReader()
  await reader.read()
  await reader.cancel()
}
