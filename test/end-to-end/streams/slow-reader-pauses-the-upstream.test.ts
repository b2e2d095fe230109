/** A slow reader pauses the upstream, and memory stays bounded. See docs/failure-modes.md, "Streams", row 40. */
import { createHash, type Hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { eventually, startService, type TestService, until } from '../../support/service.ts'
import { childrenOf } from '../chaos/processes.ts'
import { callConfig, rowOf, say, upstreamCalls } from '../support.ts'
import { upstreamAnswer } from './support.ts'

const READERS = 2
const TOKENS = 100_000
/** Longer than the server itself has patience with a client that takes nothing. */
const STALL_MS = 13_000
/** What the streams are in all, many times over what may be held back of them. */
const MAX_GROWTH_BYTES = 24 * 1024 * 1024
const STEADY_LOOKS = 4

const MESSAGES = say('hello')
const STREAM = {
  messages: MESSAGES,
  max_tokens: TOKENS,
  stream: true,
  stream_options: { include_usage: true },
  simulate: { tokens: TOKENS },
}

const rssBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

/** The kernel may hold so much of a stream on its way that no program has to wait, on both connections together. */
function mostInTheKernel(): number {
  const mostOf = (name: string) =>
    Number(readFileSync(`/proc/sys/net/ipv4/${name}`, 'utf8').trim().split(/\s+/)[2])
  return 2 * (mostOf('tcp_rmem') + mostOf('tcp_wmem'))
}

interface ReadStream {
  readonly isWhole: boolean
  readonly bytes: number
  readonly hash: string
}

/** Reads on demand. */
class Reader {
  readonly #hash: Hash = createHash('sha256')
  readonly #sent: ClientRequest
  #response: IncomingMessage | null = null
  #bytes = 0
  requestId = ''

  constructor(service: TestService, key: string) {
    this.#sent = request(`${service.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      agent: false,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    })
    this.#sent.on('error', () => undefined)
    this.#sent.on('response', (response) => {
      this.#response = response
      this.requestId = String(response.headers['x-gateway-trace'])
    })
    this.#sent.end(JSON.stringify({ ...STREAM, model: 'm' }))
  }

  /** The head has come, and nothing has been read of what follows. */
  get isHeld(): boolean {
    return this.#response !== null
  }

  /** To the end, however that comes. */
  async readOn(): Promise<ReadStream> {
    const response = this.#response!
    try {
      for await (const piece of response) {
        this.#bytes += piece.length
        this.#hash.update(piece)
      }
    } catch {
      // Cut.
    }
    return { isWhole: response.complete, bytes: this.#bytes, hash: this.#hash.digest('hex') }
  }

  leave(): void {
    this.#sent.destroy()
  }
}

async function holdReaders(t: Test, service: TestService, key: string, count: number): Promise<Reader[]> {
  const readers = Array.from({ length: count }, () => new Reader(service, key))
  t.teardown(() => {
    for (const reader of readers) reader.leave()
  })
  await until('the heads have come', () => readers.every(({ isHeld }) => isHeld))
  return readers
}

/** Tokens that the upstream has sent for each, once that is not changing any more. */
async function sentOnceSteady(service: TestService, readers: readonly Reader[]): Promise<number[]> {
  let last = ''
  let looks = 0
  return eventually('the upstream is paused', async () => {
    const calls = await Promise.all(readers.map(({ requestId }) => upstreamCalls(service, requestId)))
    const sent = calls.map(([call]) => call!.output_tokens)
    looks = String(sent) === last ? looks + 1 : 0
    last = String(sent)
    return looks >= STEADY_LOOKS ? sent : undefined
  })
}

t.test('clients that stop reading very large, fast streams', async (t) => {
  const service = await startService(t, { config: callConfig({ m: {} }) })
  const { key } = await service.newKey('1000000')
  const [gateway] = childrenOf(service.pid(), 'gateway')
  const direct = (await upstreamAnswer(service, { ...STREAM, model: 'sim-m' })).body
  const hash = createHash('sha256').update(direct).digest('hex')
  const expected: ReadStream = { isWhole: true, bytes: direct.length, hash }

  const [warm] = await holdReaders(t, service, key, 1)
  t.same(await warm!.readOn(), expected, 'a client that reads has it all')
  const before = rssBytes(gateway!)

  const readers = await holdReaders(t, service, key, READERS)
  const sent = await sentOnceSteady(service, readers)
  const skip = direct.length < mostInTheKernel() && 'the kernel of this machine may hold all of a stream'
  for (const tokens of sent)
    t.ok(tokens < TOKENS, `the upstream is paused at ${tokens} of ${TOKENS} tokens`, { skip })
  const growth = rssBytes(gateway!) - before
  t.ok(growth < MAX_GROWTH_BYTES, `the gateway holds ${growth} bytes more for ${READERS * direct.length}`)

  await sleep(STALL_MS)
  t.strictSame(await sentOnceSteady(service, readers), sent, 'and stays so')
  const later = rssBytes(gateway!) - before
  t.ok(later < MAX_GROWTH_BYTES, `the gateway holds ${later} bytes more`)

  const read = await Promise.all(readers.map((reader) => reader.readOn()))
  t.strictSame(read, Array(READERS).fill(expected), 'reading on, each has every byte')
  for (const { requestId } of readers)
    t.match(await rowOf(service, key, requestId), { status: 'success', output_tokens: TOKENS })
})
