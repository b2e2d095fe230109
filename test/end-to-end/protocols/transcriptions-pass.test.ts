/** Transcriptions pass to the same path of a chat-completions channel, and cost the seconds of their sound. */
import { Buffer } from 'node:buffer'
import OpenAI, { toFile } from 'openai'
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { errorOf, traceOf, upstreamCalls, upstreamRequest } from '../support.ts'
import { Books, configOf, makeWav, simulated } from './support.ts'

/** A credit for each second. */
const heard = { endpoint_type: 'audio_transcriptions', pricing: { unit: 'minute', per_unit: '60' } } as const
const CONFIG = configOf(
  {
    hear: heard,
    'hear-cheaply': { ...heard, pricing: { unit: 'minute', per_unit: '0.006' } },
    'hear-half': heard,
    'hear-silently': heard,
    'hear-tokens': heard,
    'hear-wildly': heard,
    'hear-again': heard,
    'hear-never': heard,
    talk: {},
  },
  [
    simulated('chat-completions', {
      hear: 'sim-hear',
      'hear-cheaply': 'sim-hear',
      'hear-half': 'sim-hear@seconds=1.5',
      'hear-silently': 'sim-hear@no_seconds',
      'hear-tokens': 'sim-hear@prompt_tokens=40',
      'hear-wildly': 'sim-hear@seconds=600',
      'hear-again': 'sim-hear@fault=status:500',
      'hear-never': 'sim-hear@fault=status:500',
      talk: 'sim-talk',
    }),
    simulated('chat-completions', { 'hear-again': 'sim-hear' }, { id: 'line-second', priority: 1 }),
  ],
)
const PATH = '/v1/audio/transcriptions'
const TEXT = 'The river runs north.'

t.test('transcriptions', async (t) => {
  const service = await borrowService(t, CONFIG)
  const books = await Books.open(service)
  const client = new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey: books.key, maxRetries: 0 })
  const sound = () => toFile(makeWav(9), 'words.wav', { type: 'audio/wav' })
  const charged = (trace: string, count: string, cost: string, row: object = {}) =>
    books.chargedAsRow(trace, { status: 'success', cost, unit_type: 'audio', unit_count: count, ...row })
  const send = (form: FormData, headers: Readonly<Record<string, string>> = {}) =>
    fetch(service.baseUrl + PATH, {
      method: 'POST',
      headers: { authorization: `Bearer ${books.key}`, ...headers },
      body: form,
    })
  const makeForm = (
    fields: Readonly<Record<string, string>>,
    file: Buffer | null = makeWav(9),
    field = 'file',
  ) => {
    const form = new FormData()
    for (const [name, value] of Object.entries(fields)) form.append(name, value)
    if (file !== null)
      form.append(field, new Blob([new Uint8Array(file)], { type: 'audio/wav' }), 'words.wav')
    return form
  }

  await t.test('are made by the SDK of the vendor', async (t) => {
    const { data, response } = await client.audio.transcriptions
      .create({ model: 'hear', file: await sound(), language: 'en', timestamp_granularities: ['word'] })
      .withResponse()
    t.equal(data.text, TEXT)
    const trace = traceOf(response)
    const [call] = await upstreamCalls(service, trace)
    t.match(call, { path: PATH, model: 'sim-hear' })
    const { bytes, headers } = await upstreamRequest(service, trace)
    t.match(headers.get('content-type'), /^multipart\/form-data; boundary=/)
    t.ok(bytes.includes(makeWav(9)), 'the sound arrives byte for byte')
    t.match(bytes.toString('latin1'), /name="language"\r\n\r\nen\r\n/)
    t.match(bytes.toString('latin1'), /name="file"; filename="words.wav"\r\ncontent-type: audio\/wav/)
    await charged(trace, '7', '7')
  })

  await t.test('come in every format', async (t) => {
    for (const format of ['text', 'srt', 'vtt', 'verbose_json'] as const) {
      const response = await send(makeForm({ model: 'hear', response_format: format }))
      t.match(await response.text(), TEXT)
      t.match(response.headers.get('content-type'), format === 'verbose_json' ? /json/ : /^text\/plain/)
      // Text says no length: that of the file counts.
      const seconds = format === 'verbose_json' ? '7' : '10'
      await charged(traceOf(response), seconds, seconds)
    }
  })

  await t.test('come as a stream', async (t) => {
    const { data, response } = await client.audio.transcriptions
      .create({ model: 'hear', file: await sound(), stream: true })
      .withResponse()
    let said = ''
    for await (const event of data) if (event.type === 'transcript.text.delta') said += event.delta
    t.equal(said, TEXT)
    await charged(traceOf(response), '7', '7')
  })

  await t.test('cost their seconds, exactly, rounded once', async () => {
    const half = await send(makeForm({ model: 'hear-half' }))
    await charged(traceOf(half), '1.5', '1.5')
    const cheap = await send(makeForm({ model: 'hear-cheaply' }))
    await charged(traceOf(cheap), '7', '0.0007')
    const silent = await send(makeForm({ model: 'hear-silently' }))
    await charged(traceOf(silent), '10', '10')
    const tokens = await send(makeForm({ model: 'hear-tokens' }))
    await charged(traceOf(tokens), '10', '10', { input_tokens: 40, output_tokens: 5 })
    // 72,044 bytes are 145 seconds at most.
    const wild = await send(makeForm({ model: 'hear-wildly' }))
    await charged(traceOf(wild), '145', '145')
    // Of a file whose form is not known, by its size.
    const odd = await send(makeForm({ model: 'hear-silently' }, Buffer.alloc(20_000, 7)))
    await charged(traceOf(odd), '5', '5')
  })

  await t.test('are sent to another channel, and once for each Idempotency-Key', async (t) => {
    const headers = { 'idempotency-key': 'hear-once' }
    const first = await send(makeForm({ model: 'hear-again' }), headers)
    const again = await send(makeForm({ model: 'hear-again' }), headers)
    t.equal(first.status, 200)
    t.equal(again.headers.get('idempotency-replayed'), 'true')
    await charged(traceOf(first), '7', '7', { attempts_count: 2 })
    const other = await send(makeForm({ model: 'hear-again' }, makeWav(8)), headers)
    t.equal(other.status, 409)
    books.free(traceOf(other), { status: 'rejected' })
  })

  await t.test('cost nothing where every channel fails', async (t) => {
    const response = await send(makeForm({ model: 'hear-never' }))
    t.equal(response.status, 500)
    books.free(traceOf(response), { status: 'error', unit_type: 'audio', unit_count: null })
  })

  await t.test('are refused for other models, and in other forms', async (t) => {
    const twice = makeForm({ model: 'hear' })
    twice.append('model', 'talk')
    const cases = [
      [makeForm({ model: 'talk' }), 404],
      [makeForm({}), 400],
      [makeForm({ model: 'hear' }, null), 400],
      [makeForm({ model: 'hear' }, Buffer.alloc(0)), 400],
      [makeForm({ model: 'hear' }, makeWav(1), 'sound'), 400],
      [makeForm({ model: 'hear', url: 'https://example.com/a.wav' }), 400],
      [makeForm({ model: 'hear', Model: 'talk' }), 400],
      [twice, 400],
    ] as const
    for (const [form, status] of cases) {
      const response = await send(form)
      t.equal(response.status, status)
      books.free(traceOf(response), { status: 'rejected' })
    }
    const dear = await send(makeForm({ model: 'hear' }), { 'x-max-price': '9' })
    t.match((await errorOf(dear)).message, /up to 10 credits, and at most 9/)
    books.free(traceOf(dear), { status: 'rejected', unit_type: 'audio' })
  })

  await books.close(t)
})
