/** Inputs of megabytes pass whole and are charged exactly; beyond a limit they are refused with its name, and cost nothing. */
import { Buffer } from 'node:buffer'
import { connect as openTcp, type Socket } from 'node:net'
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { eventually, startService } from '../../support/service.ts'
import { checkCharges, errorOf, post, traceOf, upstreamRequest } from '../support.ts'
import { Books, checkRefused, configOf, ERRORS, makeWav, simulated } from './support.ts'

const MIB = 1024 * 1024
/** A credit for each token, search and second. */
const embedding = { endpoint_type: 'embeddings', pricing: { unit: '1M_tokens', input: '1000000' } } as const
const ranking = { endpoint_type: 'rerank', pricing: { unit: 'search', per_unit: '1' } } as const
const hearing = {
  endpoint_type: 'audio_transcriptions',
  pricing: { unit: 'minute', per_unit: '60' },
} as const
const MODELS = {
  embed: embedding,
  rank: ranking,
  hear: hearing,
  hears: hearing,
  compact: {},
  chat: {},
} as const
const CHANNELS = [
  simulated('chat-completions', {
    ...{
      embed: 'sim-embed',
      rank: 'sim-rank',
      hear: 'sim-hear@no_seconds',
      hears: 'sim-hear@no_seconds,ttft=1500',
    },
    chat: 'sim-chat@tokens=8',
  }),
  simulated('responses', { compact: 'sim-compact@tokens=8' }),
]
const CONFIG = configOf(MODELS, CHANNELS)
const CREDIT = '100000000'
/** 25 MB. */
const SECONDS = 3_200
/** Two such forms fit into 32 MiB. */
const FEWER_SECONDS = 1_500

const BOUNDARY = 'a-boundary-x'
const makeForm = (model: string, sound: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(
      `--${BOUNDARY}\r\ncontent-disposition: form-data; name="model"\r\n\r\n${model}\r\n` +
        `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\ncontent-type: audio/wav\r\n\r\n`,
    ),
    sound,
    Buffer.from(`\r\n--${BOUNDARY}--\r\n`),
  ])
const PATHS = {
  hear: '/v1/audio/transcriptions',
  compact: '/v1/responses/compact',
  count: '/v1/responses/input_tokens',
}
const FORM_TYPE = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` }

/** Sends a form in pieces, each as a chunk of its own, and returns the head and the body of the answer. */
async function sendChunked(
  { baseUrl }: { readonly baseUrl: string },
  key: string,
  pieces: readonly Buffer[],
): Promise<string> {
  const { port, hostname } = new URL(baseUrl)
  const socket = openTcp(Number(port), hostname)
  socket.setNoDelay()
  socket.write(
    `POST ${PATHS.hear} HTTP/1.1\r\nhost: test\r\nauthorization: Bearer ${key}\r\nconnection: close\r\n` +
      `content-type: ${FORM_TYPE['content-type']}\r\ntransfer-encoding: chunked\r\n\r\n`,
  )
  const answer = readAll(socket)
  for (const piece of pieces) {
    const flushed = new Promise((resolve) => socket.write(piece.length === 0 ? '' : frame(piece), resolve))
    await flushed
  }
  socket.write('0\r\n\r\n')
  return answer
}
const frame = (piece: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
const readAll = (socket: Socket): Promise<string> =>
  new Promise((resolve, reject) => {
    const pieces: Buffer[] = []
    socket.on('data', (piece) => pieces.push(piece))
    socket.on('error', reject)
    socket.on('close', () => resolve(Buffer.concat(pieces).toString('latin1')))
  })

/** Cuts bytes so that pieces end at each of these places. */
const cutAt = (bytes: Buffer, places: readonly number[]): Buffer[] =>
  [...places, bytes.length].map((end, index) => bytes.subarray(places[index - 1] ?? 0, end))

t.test('large inputs', async (t) => {
  const service = await borrowService(t, CONFIG)
  const books = await Books.open(service, CREDIT)
  const chargedUnits = (trace: string, unit_type: string, count: number) =>
    books.chargedAsRow(trace, {
      status: 'success',
      unit_type,
      unit_count: String(count),
      cost: String(count),
    })

  await t.test('2,048 texts of 4 KB are embedded, and charged as reported', async (t) => {
    const input = Array.from({ length: 2_048 }, (_, at) => `${at} ${'wörd '.repeat(650)}`)
    const body = JSON.stringify({ model: 'embed', input, encoding_format: 'base64' })
    t.ok(body.length > 6 * MIB && Buffer.byteLength(body) < 10 * MIB)
    const answer = await post(service, books.key, '/v1/embeddings', body)
    t.equal(answer.status, 200)
    const { data, usage } = (await answer.json()) as { data: unknown[]; usage: { prompt_tokens: number } }
    t.equal(data.length, 2_048)
    t.equal((await upstreamRequest(service, traceOf(answer))).body, body.replace('"embed"', '"sim-embed"'))
    await books.charged(traceOf(answer), { input: usage.prompt_tokens, output: 0 })
  })

  await t.test('2,048 documents are ranked, and charged by the hundred', async (t) => {
    const documents = Array.from({ length: 2_048 }, (_, at) =>
      at % 2 ? { text: `${at} ${'x'.repeat(3_000)}` } : `${at}`,
    )
    const answer = await post(service, books.key, '/v1/rerank', {
      model: 'rank',
      query: 'which?',
      documents,
      top_n: 5,
    })
    t.equal(answer.status, 200)
    t.equal(((await answer.json()) as { results: unknown[] }).results.length, 5)
    await chargedUnits(traceOf(answer), 'search', 21)
    const more = await post(service, books.key, '/v1/rerank', {
      model: 'rank',
      query: 'q',
      documents: [...documents, 'x'],
    })
    t.equal(more.status, 400)
    t.match((await errorOf(more)).message, /documents.*2,?048/)
    books.free(traceOf(more), { status: 'rejected' })
  })

  await t.test('a conversation of megabytes is compacted, and counted', async (t) => {
    const input = [{ role: 'user', content: 'story '.repeat(1_500_000) }]
    const compacted = await post(service, books.key, PATHS.compact, { model: 'compact', input })
    t.equal(compacted.status, 200)
    const { usage } = (await compacted.json()) as { usage: { input_tokens: number; output_tokens: number } }
    await books.charged(traceOf(compacted), { input: usage.input_tokens, output: usage.output_tokens })
    const counted = await post(service, books.key, PATHS.count, { model: 'compact', input })
    t.equal(counted.status, 200)
    t.match(await counted.json(), { input_tokens: Number })
  })

  await t.test('what is longer than a body may be is 413', async (t) => {
    // Letters without a gap could be a file.
    const text = 'x '.repeat(5 * MIB)
    const bodies = {
      '/v1/embeddings': { model: 'embed', input: [text] },
      '/v1/rerank': { model: 'rank', query: 'q', documents: [text] },
      [PATHS.compact]: { model: 'compact', input: text },
      [PATHS.count]: { model: 'compact', input: text },
    }
    for (const [path, body] of Object.entries(bodies)) {
      const answer = await post(service, books.key, path, body)
      await checkRefused(t, answer, 'responses', ERRORS.tooLarge, /10 MiB/)
    }
    const form = await post(
      service,
      books.key,
      PATHS.hear,
      makeForm('hear', Buffer.alloc(32 * MIB)),
      FORM_TYPE,
    )
    await checkRefused(t, form, 'responses', ERRORS.tooLarge, /32 MiB/)
  })

  await t.test('25 MB of sound in a form that is streamed are heard, to the byte', async (t) => {
    const sound = makeWav(SECONDS)
    const form = makeForm('hear', sound)
    const pieces = cutAt(
      form,
      Array.from({ length: 400 }, (_, at) => Math.floor((form.length * (at + 1)) / 401)),
    )
    const answer = await sendChunked(service, books.key, pieces)
    t.match(answer, /^HTTP\/1.1 200 /)
    const trace = /x-gateway-trace: (\S+)/.exec(answer)![1]!
    const { bytes } = await upstreamRequest(service, trace)
    t.ok(bytes.includes(sound))
    // The length that was measured, and one.
    await chargedUnits(trace, 'audio', SECONDS + 1)
  })

  await t.test('a form may be cut anywhere', async (t) => {
    const { key } = await service.newKey(CREDIT)
    // It holds what looks like its boundary.
    const lookalike = Buffer.from(`\r\n--${BOUNDARY.slice(0, -1)}\r\n--`)
    const sound = Buffer.concat([makeWav(1).subarray(0, 60), lookalike])
    const form = makeForm('hear', sound)
    const everyByte = Array.from({ length: form.length - 1 }, (_, at) => at + 1)
    // The log lists 200 calls at once.
    const cuts = [everyByte, ...everyByte.filter((at) => at % 3 === 0).map((at) => [at])]
    const waiting = cuts.values()
    const sendNext = async () => {
      for (const places of waiting) {
        const answer = await sendChunked(service, key, cutAt(form, places))
        const trace = /x-gateway-trace: (\S+)/.exec(answer)![1]!
        const isWhole = (await upstreamRequest(service, trace)).bytes.includes(sound)
        if (!answer.startsWith('HTTP/1.1 200 ') || !isWhole) t.fail(`cut at ${places}: ${answer}`)
      }
    }
    await Promise.all(Array.from({ length: 8 }, sendNext))
    t.ok((await checkCharges(t, service, key, cuts.length)).every(({ cost }) => cost === '2'))
  })

  await t.test('a form that ends too early is 400', async (t) => {
    const form = makeForm('hear', makeWav(1))
    for (const end of [10, 100, form.length - 30, form.length - 4]) {
      const answer = await post(service, books.key, PATHS.hear, form.subarray(0, end), FORM_TYPE)
      t.equal(answer.status, 400, `${end} bytes`)
      t.match((await errorOf(answer)).message, /form/)
      books.free(traceOf(answer), { status: 'rejected' })
    }
  })

  await books.close(t)
})

t.test('many large forms at once stay within the memory of bodies', async (t) => {
  const service = await startService(t, {
    config: configOf(MODELS, CHANNELS, { server: { max_buffered_mib: 32 } }),
  })
  const { key } = await service.newKey(CREDIT)
  const form = makeForm('hears', makeWav(FEWER_SECONDS))
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => post(service, key, PATHS.hear, form, FORM_TYPE)),
  )
  const statuses = answers.map(({ status }) => status)
  t.ok(statuses.includes(200), 'those that fit are heard')
  t.ok(statuses.includes(503), 'others wait')
  for (const answer of answers.filter(({ status }) => status !== 200)) {
    t.match(await errorOf(answer), { code: 'service_unavailable' })
    t.match(answer.headers.get('retry-after'), /^\d+$/)
  }
  const heard = statuses.filter((status) => status === 200).length
  const rows = await eventually('the calls have rows', async () => {
    const found = await service.logs(key, (all) => all.length >= heard)
    return found.filter(({ status }) => status === 'success').length === heard ? found : undefined
  })
  t.equal(
    rows!.reduce((sum, { cost }) => sum + Number(cost), 0),
    heard * (FEWER_SECONDS + 1),
  )
})
