/** Live data: operators watch the installation, customers their calls as they end. */
import t from 'tap'
import { COLLECTION_LIMITS } from '../../../schemas/collection-limits.ts'
import type { LiveInstallationCall, Overview } from '../../../schemas/management/live.ts'
import { eventually, until } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { MANAGE, type ManageClient, signIn } from '../../support/manage.ts'
import { testConfig } from '../../support/service.ts'

interface LiveEvent {
  readonly name: string
  /** An overview or a call, by the name; empty for a gap. */
  readonly data: Partial<Overview & LiveInstallationCall>
}

t.test('live data', async (t) => {
  const service = await borrowService(
    t,
    testConfig({ fast: { simulate: 'text=Hello,prompt_tokens=10,tokens=5' } }),
  )
  const { key, accountId } = await service.newKey('1000')
  const owner = await signIn(service, { accountId })
  const stranger = await signIn(service)
  const operator = await signIn(service, { role: 'operator' })

  /** Opens a stream; its events are added as they come. */
  const watch = async (
    t: { teardown(end: () => void): unknown },
    by: ManageClient,
    path: string,
    headers = {},
  ) => {
    const stop = new AbortController()
    t.teardown(() => stop.abort())
    const response = await fetch(`${service.baseUrl}${MANAGE}${path}`, {
      headers: { cookie: by.cookie, 'sec-fetch-site': 'same-origin', ...headers },
      signal: stop.signal,
    })
    const events: LiveEvent[] = []
    const read = async () => {
      let text = ''
      for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
        text += piece
        const whole = text.split('\n\n')
        text = whole.pop()!
        for (const event of whole) {
          const name = /^event: (.*)$/m.exec(event)?.[1]
          if (name !== undefined) events.push({ name, data: JSON.parse(/^data: (.*)$/m.exec(event)![1]!) })
        }
      }
    }
    const done = read().catch(() => undefined)
    return { response, events, done }
  }
  const call = () =>
    service.chat(key, { model: 'fast', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] })

  await t.test('a call arrives once, with its charge, at those who may read it', async (t) => {
    const mine = await watch(t, owner, `/calls/live?account_id=${accountId}`)
    const errors = await watch(t, owner, `/calls/live?account_id=${accountId}&status=error`)
    t.equal(mine.response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
    const requestId = (await call()).headers.get('x-gateway-trace')
    await eventually('the call', () => mine.events.find(({ data }) => data.request_id === requestId))
    await call()
    await until('the second call', () => mine.events.length >= 2)
    t.match(mine.events[0], { name: 'call', data: { model: 'fast', status: 'success', cost: String } })
    t.equal(mine.events.length, 2, 'each once')
    t.same(errors.events, [], 'the filter holds')
    t.equal((await stranger.send('GET', `/calls/live?account_id=${accountId}`)).status, 404)
  })

  await t.test('who was cut off learns that events are missing', async (t) => {
    const again = await watch(t, owner, `/calls/live?account_id=${accountId}`, { 'last-event-id': '7' })
    await eventually('the gap', () => again.events.find(({ name }) => name === 'gap'))
  })

  await t.test('operators watch calls, processes and engines', async (t) => {
    const live = await watch(t, operator, '/installation/live')
    await eventually('an overview', () => live.events[0])
    await call()
    const counted = await eventually('an overview with the call', () =>
      live.events.find(({ data }) => (data.calls ?? 0) > 0),
    )
    t.match(counted.data, { failed: 0, latency_p50_ms: Number, calls_in_flight: Number, reserved: String })
    const names = counted.data.processes?.map(({ process }) => process)
    for (const name of ['gateway 0', 'settler+tasks']) t.ok(names?.includes(name), name)
    t.match(counted.data.engines, [
      { name: 'clickhouse', is_up: true },
      { name: 'files', is_up: true },
      { name: 'nats', is_up: true },
      { name: 'postgres', is_up: true },
    ])
    t.match((await operator.send('GET', '/installation')).body, {
      processes: Array,
      settlement_lag_seconds: Number,
    })
    t.equal((await owner.send('GET', '/installation/live')).status, 403)
  })

  await t.test('operators watch the calls of all accounts, with account and key names', async (t) => {
    const other = await service.newKey('1000')
    const all = await watch(t, operator, '/installation/calls/live')
    const [ofAccount, ofChannel, ofKey] = await Promise.all(
      [`account_id=${accountId}`, 'channel_id=none', `key_id=${other.keyId}`].map((filter) =>
        watch(t, operator, `/installation/calls/live?${filter}`),
      ),
    )
    await call()
    await service.chat(other.key, { model: 'fast', messages: [{ role: 'user', content: 'Hi' }] })
    const find = (events: readonly LiveEvent[], account: string) =>
      events.find(({ data }) => data.account_id === account)
    const seen = await eventually('the call of an account', () => find(all.events, accountId))
    t.match(seen, { name: 'call', data: { account_name: 'test', key_name: 'test', channel_id: String } })
    await eventually('the call of another', () => find(all.events, other.accountId))
    await eventually('the call of the filtered account', () => find(ofAccount!.events, accountId))
    await eventually('the call of the filtered key', () => find(ofKey!.events, other.accountId))
    t.equal(find(ofAccount!.events, other.accountId), undefined)
    t.equal(find(ofKey!.events, accountId), undefined)
    t.same(ofChannel!.events, [])
    const again = await watch(t, operator, '/installation/calls/live', { 'last-event-id': '7' })
    await eventually('the gap', () => again.events.find(({ name }) => name === 'gap'))
    t.equal((await owner.send('GET', '/installation/calls/live')).status, 403)
  })

  await t.test('a session and an account have only so many streams', async (t) => {
    const path = `/calls/live?account_id=${accountId}`
    const { live_streams_per_session: ofSession, live_streams_per_account: ofAccount } = COLLECTION_LIMITS
    const sessions = [operator]
    while (sessions.length < ofAccount / ofSession) sessions.push(await signIn(service, { role: 'operator' }))
    const stop = new AbortController()
    t.teardown(() => stop.abort())
    const opens = (by: ManageClient, signal = stop.signal) =>
      fetch(`${service.baseUrl}${MANAGE}${path}`, {
        headers: { cookie: by.cookie, 'sec-fetch-site': 'same-origin' },
        signal,
      })
    const refusal = async (by: ManageClient) => {
      const response = await opens(by)
      return [response.status, response.headers.get('retry-after'), await response.text()] as const
    }
    const closed = new AbortController()
    const first = await opens(operator, closed.signal)
    t.equal(first.status, 200)
    // As many at once as are one too many.
    const others = await Promise.all(Array.from({ length: ofSession }, () => opens(operator)))
    t.same(others.map(({ status }) => status).sort(), [...Array(ofSession - 1).fill(200), 429])
    const [status, wait, text] = await refusal(operator)
    t.same([status, wait], [429, '10'])
    t.match(text, new RegExp(`The limit live_streams_per_session is ${ofSession}`))
    closed.abort()
    await eventually('room for one more', async () => (await opens(operator)).status === 200 || undefined)

    for (const by of sessions.slice(1)) await Promise.all(Array.from({ length: ofSession }, () => opens(by)))
    const last = await refusal(await signIn(service, { role: 'operator' }))
    t.equal(last[0], 429)
    t.match(last[2], new RegExp(`The limit live_streams_per_account is ${ofAccount}`))
  })
})
