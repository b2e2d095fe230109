/** The clients of a run: mixed calls, idempotent calls that are repeated at other nodes, and media tasks. */
import { setTimeout as sleep } from 'node:timers/promises'
import { plannedCall } from '../../end-to-end/chaos/plan.ts'
import { Random } from '../../simulation/random.ts'
import type { CallLine, Record } from '../history.ts'
import { type Endpoint, send } from './client.ts'
import type { CallingKey } from './keys.ts'

const CHAT_PATH = '/v1/chat/completions'
const IMAGE_PATH = '/v1/images/generations'
const CLIENTS = { mixed: 14, intents: 3, images: 2 } as const
const PAUSE_MS = [50, 500] as const
const STREAM_MS = [50, 3_000] as const
const NOBODY_THERE_PAUSE_MS = 200
const REPEAT_PAUSE_MS = 300
/** An intent whose gateway was killed keeps its key for longer than clients repeat it. */
const REPEATS = 20
const MAX_IMAGE_MS = 1_500
const POLLS = 200
const POLL_PAUSE_MS = 300
const OPEN_STATES: readonly unknown[] = ['queued', 'running']

export interface LoadOptions {
  readonly endpoints: readonly Endpoint[]
  readonly keys: readonly CallingKey[]
  /** Each makes one intent: what an intent cost is what its account has spent. */
  readonly intentKeys: readonly CallingKey[]
  readonly imageKey: CallingKey
  readonly seed: number
  readonly record: Record
}

export interface Load {
  /** Begins no more. `done` resolves when the last call is over. */
  stop(): void
  readonly done: Promise<void>
}

export function startLoad(options: LoadOptions): Load {
  const { endpoints, record } = options
  const stopping = new AbortController()
  const isOn = () => !stopping.signal.aborted
  const restingKeys = [...options.intentKeys]
  let intents = 0

  const mixed = async (random: Random) => {
    while (isOn()) {
      const shape = { calls: 0, keys: options.keys.length, rampMs: 0, streamMs: STREAM_MS }
      const { key, body, leavesAfterMs } = plannedCall(random, shape)
      const { keyId, key: secret } = options.keys[key]!
      const at = random.pick(endpoints)
      const { model } = body as { model: string }
      const common = { kind: 'chat', method: 'POST', path: CHAT_PATH, intent: null } as const
      const { status } = await send({ ...common, at, keyId, key: secret, model, body, leavesAfterMs }, record)
      await sleep(status === null ? NOBODY_THERE_PAUSE_MS : random.int(...PAUSE_MS))
    }
  }

  /** The same call to several nodes, at times to two at once, until one has answered it whole. */
  const intent = async (random: Random) => {
    for (let calling = restingKeys.pop(); isOn() && calling !== undefined; calling = restingKeys.pop()) {
      const { keyId, key } = calling
      const intent = `intent-${++intents}`
      const body = {
        model: 'steady',
        stream: random.chance(0.5),
        stream_options: { include_usage: true },
        max_tokens: 64,
        messages: [{ role: 'user', content: 'x'.repeat(random.int(1, 400)) }],
        simulate: { tokens: random.int(1, 32), tps: random.int(10, 100), seed: random.int(0, 1_000_000) },
      }
      if (!body.stream) Reflect.deleteProperty(body, 'stream_options')
      const common = { kind: 'chat', method: 'POST', path: CHAT_PATH, leavesAfterMs: null } as const
      const once = () =>
        send({ ...common, at: random.pick(endpoints), keyId, key, model: body.model, body, intent }, record)
      await insist(random, once)
      await sleep(random.int(...PAUSE_MS))
    }
  }

  const insist = async (random: Random, once: () => Promise<CallLine>) => {
    for (let repeat = 0; repeat < REPEATS; repeat++) {
      const together = random.chance(0.3) ? [once(), once()] : [once()]
      const lines = await Promise.all(together)
      // Once more after it was answered: a replay.
      if (lines.some(isAnswered)) return void (await once())
      if (!isOn()) return
      await sleep(REPEAT_PAUSE_MS)
    }
  }

  const image = async (random: Random) => {
    const { keyId, key } = options.imageKey
    while (isOn()) {
      const model = random.pick(['queued-image', 'queued-image', 'drawn-image'])
      const intent = `image-${++intents}`
      const directives = [`delay=${random.int(0, MAX_IMAGE_MS)}`, ...imageTroubles(random)].join(', ')
      const body = {
        model,
        prompt: `${intent} [simulate: ${directives}]`,
        size: '64x64',
        async: model === 'queued-image' || random.chance(0.5),
      }
      const at = () => random.pick(endpoints)
      const common = { kind: 'image', keyId, key, model, leavesAfterMs: null } as const
      const once = () => send({ ...common, at: at(), method: 'POST', path: IMAGE_PATH, body, intent }, record)
      let submitted: CallLine | null = null
      for (let repeat = 0; repeat < REPEATS && submitted === null; repeat++) {
        const line = await once()
        if (isAnswered(line)) submitted = line
        else if (line.status !== null && line.status < 500 && line.status !== 409) break
        else await sleep(REPEAT_PAUSE_MS)
        if (!isOn()) break
      }
      const id = submitted?.answerId
      if (typeof id === 'string') await follow(`${IMAGE_PATH}/${id}`, at, { ...common, kind: 'poll' })
      await sleep(random.int(...PAUSE_MS))
    }
  }

  const follow = async (
    path: string,
    at: () => Endpoint,
    common: Pick<Parameters<typeof send>[0], 'kind' | 'keyId' | 'key' | 'model' | 'leavesAfterMs'>,
  ) => {
    for (let polls = 0; polls < POLLS && isOn(); polls++) {
      const poll = { ...common, at: at(), method: 'GET', path, body: null, intent: null } as const
      const { status, state } = await send(poll, record)
      if (status === 200 && !OPEN_STATES.includes(state)) return
      await sleep(POLL_PAUSE_MS)
    }
  }

  let stream = 0
  /** Each client draws from a separate sequence: what others wait for changes nothing for it. */
  const clients = (count: number, run: (random: Random) => Promise<void>) =>
    Array.from({ length: count }, () => run(new Random(options.seed + ++stream)))
  const done = Promise.all([
    ...clients(CLIENTS.mixed, mixed),
    ...clients(CLIENTS.intents, intent),
    ...clients(CLIENTS.images, image),
  ]).then(() => {})
  return { done, stop: () => stopping.abort() }
}

const isAnswered = ({ status, end }: CallLine): boolean => status === 200 && end === 'complete'

function imageTroubles(random: Random): string[] {
  switch (random.int(1, 10)) {
    case 1:
      return ['outcome=fail']
    case 2:
      return ['outcome=refuse']
    case 3:
      return ['fault=accept_then_cut', 'times=1']
    case 4:
      return ['poll_fault=status:500', 'times=2']
    default:
      return []
  }
}
