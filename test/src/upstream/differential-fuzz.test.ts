import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type Origin, renderHead, UpstreamClient } from '../../../src/upstream/client.ts'
import { type HostileCase, makeCase } from './hostile-responses.ts'
import { Random } from './random.ts'
import { type RawServer, readRequests, startRawServer } from './raw-server.ts'
import { getRequest, run, TEST_DEADLINE_MS } from './recorded-calls.ts'
import { type Answer, askUndici } from './undici-oracle.ts'

/** Repeat one failing case with the seed it prints: UPSTREAM_FUZZ_SEED=… UPSTREAM_FUZZ_CASES=1 */
const FIRST_SEED = Number(process.env.UPSTREAM_FUZZ_SEED ?? 1)
const CASES = Number(process.env.UPSTREAM_FUZZ_CASES ?? 2_000)
const WORKERS = 16
/** How long the server leaves a connection open after an answer that does not close at once. */
const LINGER_MS = 15

/** Where this client accepts what undici refuses, and why that is right. Anything else fails the test. */
const ACCEPTED_HERE_ONLY: ReadonlyArray<{
  readonly why: string
  readonly applies: (text: string, undici: Answer) => boolean
}> = [
  {
    why: 'a 304 may name the length of the response it stands for (RFC 9110 8.6); undici waits for a body',
    applies: (_text, undici) =>
      undici.status === 304 && undici.reason.startsWith('ResponseContentLengthMismatchError'),
  },
  {
    why: '100 is an interim response like any other (RFC 9110 15.2); undici refuses it as it never expects one',
    applies: (text, undici) =>
      undici.reason === 'SocketError: bad response' && /HTTP\/1\.[01] 100[ \r]/.test(text),
  },
]

class CaseServer {
  readonly cases = new Map<number, HostileCase>()
  readonly #written = new Map<string, () => void>()
  #server: RawServer | null = null

  async start(): Promise<void> {
    this.#server = await startRawServer((socket) => {
      readRequests(socket, async (request) => {
        const [, kind, number, caller] = request.split(' ')[1]!.split('/')
        if (kind === 'clean') {
          socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${number!.length}\r\n\r\n${number}`)
          return
        }
        const hostile = this.cases.get(Number(number))!
        for (const piece of hostile.pieces) {
          socket.write(piece)
          await turn()
        }
        if (!hostile.closesAtOnce) await sleep(LINGER_MS)
        socket.end()
        this.#written.get(`${number}/${caller}`)?.()
      })
    })
  }

  get origin(): Origin {
    return this.#server!.origin
  }

  /** Settles when the server has written all of a case to a caller, and closed. */
  written(number: number, caller: string): Promise<void> {
    return new Promise((resolve) => this.#written.set(`${number}/${caller}`, resolve))
  }

  async close(): Promise<void> {
    await this.#server?.close()
  }
}

async function askOurs(client: UpstreamClient, server: CaseServer, seed: number): Promise<Answer> {
  const { origin } = server
  const { method } = server.cases.get(seed)!
  const head = renderHead(method, `/case/${seed}/ours`, origin.authority, [], null)
  const log = await run(client, { origin, head, body: null, deadlineMs: TEST_DEADLINE_MS })
  return {
    accepted: log.ended,
    status: log.status,
    fields: [...(log.headers ?? [])].map(([name, value]) => `${name}: ${value}`),
    body: log.body,
    reason: log.failure?.message ?? '',
  }
}

/** The next call on the same client gets its own answer, whatever the last one left behind. */
async function isClean(client: UpstreamClient, server: CaseServer, seed: number): Promise<boolean> {
  for (;;) {
    const log = await run(client, getRequest(server.origin, `/clean/${seed}/ours`))
    if (log.failure === null) return log.status === 200 && log.body === `${seed}`
    if (!log.failure.reused || log.failure.headReceived) return false
  }
}

interface Counts {
  bothAccept: number
  bothRefuse: number
  refusedHere: Map<string, number>
  acceptedHere: Map<string, number>
}

function compare(
  t: Test,
  hostile: HostileCase,
  ours: Answer,
  undici: Answer,
  counts: Counts,
  repeat: string,
): void {
  const text = Buffer.concat(hostile.pieces).toString('latin1')
  const shown = { method: hostile.method, text, closesAtOnce: hostile.closesAtOnce, ours, undici }
  if (ours.accepted && undici.accepted) {
    counts.bothAccept++
    const same =
      ours.status === undici.status &&
      ours.body === undici.body &&
      ours.fields.join('\n') === undici.fields.join('\n')
    if (!same) t.fail(`the two read it differently; ${repeat}`, shown)
  } else if (ours.accepted) {
    const known = ACCEPTED_HERE_ONLY.find(({ applies }) => applies(text, undici))
    if (known === undefined) t.fail(`accepted here only; ${repeat}`, shown)
    else counts.acceptedHere.set(known.why, (counts.acceptedHere.get(known.why) ?? 0) + 1)
  } else if (undici.accepted)
    counts.refusedHere.set(ours.reason, (counts.refusedHere.get(ours.reason) ?? 0) + 1)
  else counts.bothRefuse++
}

t.test('undici and this client agree on split, malformed and hostile responses', async (t) => {
  const server = new CaseServer()
  await server.start()
  t.teardown(() => server.close())
  const counts: Counts = { bothAccept: 0, bothRefuse: 0, refusedHere: new Map(), acceptedHere: new Map() }
  let next = FIRST_SEED
  const work = async (): Promise<void> => {
    const client = new UpstreamClient()
    while (next < FIRST_SEED + CASES) {
      const seed = next++
      const repeat = `UPSTREAM_FUZZ_SEED=${seed} UPSTREAM_FUZZ_CASES=1 repeats it`
      const hostile = makeCase(new Random(seed))
      server.cases.set(seed, hostile)
      const written = server.written(seed, 'ours')
      const [ours, undici] = await Promise.all([
        askOurs(client, server, seed),
        askUndici(server.origin, hostile.method, `/case/${seed}/undici`),
      ])
      compare(t, hostile, ours, undici, counts, repeat)
      await written
      await turn()
      await turn()
      if (!(await isClean(client, server, seed))) t.fail(`the next call got a foreign answer; ${repeat}`)
      if (client.stats().inFlight !== 0) t.fail(`a call is left over; ${repeat}`)
      server.cases.delete(seed)
    }
    client.close()
    t.same({ open: client.stats().open, idle: client.stats().idle }, { open: 0, idle: 0 })
  }
  await Promise.all(Array.from({ length: WORKERS }, work))
  t.comment(counts)
  if (CASES > 1_000) {
    t.ok(counts.bothAccept > CASES / 4, 'enough cases are accepted to compare what was read')
    t.ok(counts.bothRefuse > CASES / 10, 'enough cases are refused')
  }
})
