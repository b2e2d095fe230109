/**
 * Every call of every client protocol, by every upstream protocol, streamed or not, however it ends, has exactly one
 * row: in PostgreSQL, in the call log, and in its sums. See docs/failure-modes.md, "Money", row 10.
 */
import t, { type Test } from 'tap'
import { logDetail } from '../../../schemas/call-log/detail.ts'
import type { ChannelProtocol } from '../../../schemas/config/catalog.ts'
import { connectTo } from '../../support/connections.ts'
import { borrowService } from '../../support/lend-services.ts'
import { ask, CHAT_PROTOCOLS, type ChatProtocol, configOf, simulated, WAYS } from '../protocols/support.ts'
import { traceOf } from '../support.ts'

const PATHS: Readonly<Record<ChatProtocol, string>> = {
  'chat-completions': 'POST /v1/chat/completions',
  messages: 'POST /v1/messages',
  'generate-content': 'POST /v1beta/models/{model}:generateContent',
  responses: 'POST /v1/responses',
}

/** How the upstream, or the client, ends a call. */
const ENDS = {
  whole: 'tokens=6',
  'cut off': 'tokens=60,fault=cut:700',
  'without its mark': 'tokens=6,fault=no_done',
  'refused by the upstream': 'fault=status:400',
  'left by the client': 'tokens=400,tps=25',
} as const
type End = keyof typeof ENDS

interface Call {
  readonly client: ChatProtocol
  readonly upstream: ChannelProtocol
  readonly stream: boolean
  readonly end: End
}

const modelOf = ({ upstream, end }: Pick<Call, 'upstream' | 'end'>): string =>
  `${upstream}-${end.replaceAll(' ', '-')}`

const CALLS: readonly Call[] = CHAT_PROTOCOLS.flatMap((client) =>
  CHAT_PROTOCOLS.flatMap((upstream) =>
    [false, true].flatMap((stream) =>
      (Object.keys(ENDS) as End[]).map((end) => ({ client, upstream, stream, end })),
    ),
  ),
)

/** Chat completions are translated for two others; each protocol passes to its own. */
const isUsual = (call: Call): boolean =>
  WAYS.some(([client, upstream]) => client === call.client && upstream === call.upstream)

/** @param serve further client protocols that every channel serves */
const channelsServing = (serve: ChatProtocol[]) =>
  CHAT_PROTOCOLS.map((upstream) => {
    const ends = Object.keys(ENDS) as End[]
    const models = ends.map((end) => [modelOf({ upstream, end }), `sim-${upstream}@${ENDS[end]}`])
    return simulated(upstream, Object.fromEntries(models), { serve })
  })

for (const serve of [[], [...CHAT_PROTOCOLS]])
  t.test(`every pair of protocols, ${serve.length === 0 ? 'as usual' : 'with serve'}`, (t) =>
    checkPairs(t, serve),
  )

async function checkPairs(t: Test, serve: ChatProtocol[]): Promise<void> {
  const isServed = (call: Call): boolean => serve.length > 0 || isUsual(call)
  const channels = channelsServing(serve)
  const models = Object.fromEntries(
    channels.flatMap((channel) => Object.keys(channel.models).map((id) => [id, {}])),
  )
  const service = await borrowService(t, configOf(models, channels))
  const { key, accountId } = await service.newKey('100000000')

  /** The request id, and whether the client got a 200. */
  const execute = async (call: Call) => {
    const response = await ask(service, key, call.client, modelOf(call), { stream: call.stream })
    let text: string | null = null
    if (call.end !== 'left by the client' || !call.stream) text = await response.text().catch(() => '')
    else {
      const reader = response.body!.getReader()
      await reader.read()
      await reader.cancel()
    }
    return { ...call, requestId: traceOf(response), status: response.status, text }
  }
  const done = await Promise.all(CALLS.map(execute))
  const served = done.filter(isServed)
  const whole = served.filter(({ end }) => end === 'whole')

  await t.test('whole answers were answers, and what nothing serves was refused', async (t) => {
    t.same(
      whole.filter(({ status }) => status !== 200),
      [],
    )
    for (const { client, upstream, status, text } of done.filter((call) => !isServed(call))) {
      t.equal(status, 503)
      if (text === null) continue
      // The message says how to reach the model: otherwise people look for the fault elsewhere.
      const ways = WAYS.filter(([, other]) => other === upstream).map(([way]) => way)
      t.match(text, new RegExp(`on the ${client} protocol. It is served on .*${upstream} \\(POST /v1`))
      for (const way of ways) t.match(text, `${way} (${PATHS[way]})`)
    }
  })

  const sql = connectTo(t, service.engines.databaseUrl)
  const logged = await service.logs(key, (rows) => rows.length >= CALLS.length)

  await t.test('each call has one row in the call log and a like one in PostgreSQL', async (t) => {
    const expected = done.map(({ requestId }) => requestId).sort()
    t.same(logged.map(({ request_id }) => request_id).sort(), expected)
    const booked = await sql<
      { request_id: string; status: string; cost: string; input: string; output: string }[]
    >`
      SELECT request_id, status, (cost * 0.00000001)::float8::text AS cost, input_tokens::text AS input,
        output_tokens::text AS output
      FROM usage_rows WHERE account_id = ${accountId} ORDER BY request_id`
    const line = (...fields: readonly unknown[]) => fields.join(' ')
    t.same(
      logged
        .map((row) => line(row.request_id, row.status, row.cost, row.input_tokens, row.output_tokens))
        .sort(),
      booked.map((row) => line(row.request_id, row.status, row.cost, row.input, row.output)),
    )
  })

  await t.test('a whole answer costs its usage by the price, and was one attempt', async (t) => {
    const rows = new Map(logged.map((row) => [row.request_id, row]))
    for (const { requestId, client, upstream, stream } of whole) {
      const row = rows.get(requestId)!
      const name = `${client} by ${upstream}${stream ? ', streamed' : ''}`
      const attempts = [
        { seq: 1, created_at: row.submitted_at, latency_ms: row.latency_ms, error_code: null },
      ]
      t.match(row, { status: 'success', output_tokens: 6, attempts_count: 1, attempts }, name)
      t.equal(row.cost, String(row.input_tokens + 2 * row.output_tokens), name)
    }
    for (const { requestId } of done.filter((call) => !isServed(call)))
      t.match(rows.get(requestId), { status: 'rejected', cost: '0', attempts_count: 0 })
  })

  await t.test('a look into a call says how the upstream was asked, nothing says which it is', async (t) => {
    // The log limits how often a key may read it, so each protocol has a key of its own.
    const newReader = async () => {
      const { raw } = await service.database.keys.create({ name: 'reader', accountId, accountLogs: true })
      return async (path: string) => (await service.get(raw, `/v1/logs${path}`)).text()
    }
    const readers = new Map<ChatProtocol, (path: string) => Promise<string>>()
    for (const protocol of CHAT_PROTOCOLS) readers.set(protocol, await newReader())
    const readList = await newReader()
    const texts = [JSON.stringify(logged), await readList('?scope=account&format=csv')]
    const rows = new Map(logged.map((row) => [row.request_id, row]))
    for (const { requestId, client, upstream, end } of served.filter(({ stream }) => stream)) {
      const row = rows.get(requestId)!
      const text = await readers.get(client)!(`/${row.id}`)
      texts.push(text)
      const detail = logDetail.parse(JSON.parse(text))
      const [told, made] = [detail.upstream, detail.gateway].map(
        (group) => new Map(group.map(({ k, v }) => [k, v])),
      )
      const name = `${client} by ${upstream}, ${end}`
      t.equal(told!.get('protocol'), upstream, name)
      t.equal(told!.get('translation'), client === upstream ? 'none' : `${client} to ${upstream}`, name)
      t.equal(made!.get('cost'), row.cost, name)
      t.equal(detail.request_note === '', row.status === 'success', `${name}: ${detail.request_note}`)
    }
    for (const text of texts) t.notMatch(text, /sim-|line-|127\.0\.0\.1|localhost|upstream-key/)
  })

  await t.test('ledger, wallet and the sums of the log add up to the rows', async (t) => {
    const units = logged.reduce((sum, { cost }) => sum + Math.round(Number(cost) * 100), 0)
    const [ledger] = await sql<[{ hundredths: string; charges: bigint }]>`
      SELECT (-sum(amount) / 1000000)::int8::text AS hundredths, count(*) AS charges
      FROM ledger_entries WHERE account_id = ${accountId} AND kind = 'charge'`
    t.equal(Number(ledger.hundredths), units)
    t.equal(
      Number(ledger.charges),
      logged.filter(({ cost }) => cost !== '0').length,
      'one charge a paid call',
    )
    const summary = await (await service.get(key, '/v1/logs/summary?period=7d')).json()
    const counted = (status: string) => logged.filter((row) => row.status === status).length
    t.match(summary, {
      total: { requests: CALLS.length, cost: String(units / 100) },
      status_counts: {
        success: counted('success'),
        error: counted('error'),
        interrupted: counted('interrupted'),
        rejected: counted('rejected'),
      },
    })
  })
}
