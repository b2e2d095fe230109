import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { pin, sendSignal } from '../harness/children.ts'
import { diskBytes } from '../harness/disk.ts'
import { ROOT } from '../harness/machine.ts'
import { MASTER_KEY, PROGRAM, startTollgate } from '../harness/service.ts'
import type { Endpoint } from '../load/request.ts'
import { COMPLETION_TOKENS, PROMPT_TOKENS } from '../upstream/replies.ts'
import {
  COMPLETIONS_PATH,
  type RunningSubject,
  type Settling,
  type Stage,
  type Subject,
  TRANSLATED,
} from './subject.ts'
import { tollgateProcesses } from './tollgate-processes.ts'

/**
 * Tollgate as an operator runs it: `serve` with its embedded engines in an empty data directory, a configuration
 * with one channel to the upstream (and one by TLS), accounts and keys created through its command line.
 */

const PROGRAM_WITHOUT_SETTLEMENT = fileURLToPath(new URL('no-settlement.ts', import.meta.url))
const MODEL = 'bench'
const TLS_MODEL = `${MODEL}-tls`
/** What `npm install` brings, and the service itself. */
const INSTALLED = ['node_modules', 'src', 'pipelines', 'schemas', 'console', 'simulator']
const COMMAND_LIMIT_MS = 30_000
/** More than any run can spend. */
const CREDIT = '1000000'
/** Prices for 1M tokens. A small call's charge follows from them and from the usage that the upstream reports. */
const INPUT_PRICE = 10
const OUTPUT_PRICE = 100
const SMALL_CALL_CREDITS = (PROMPT_TOKENS * INPUT_PRICE + COMPLETION_TOKENS * OUTPUT_PRICE) / 1e6

const configuration = ({ upstream, certFile }: Stage) => {
  const origin = `http://127.0.0.1:${upstream.port}`
  const channel = (id: string, model: string, base_url: string, protocol: string) => ({
    id,
    protocol,
    base_url,
    api_key: 'bench',
    models: { [model]: MODEL },
  })
  const channels = [
    channel('plain', MODEL, `${origin}/v1`, 'chat-completions'),
    ...(certFile !== null && upstream.tlsPort !== null
      ? [channel('tls', TLS_MODEL, `https://127.0.0.1:${upstream.tlsPort}/v1`, 'chat-completions')]
      : []),
    ...TRANSLATED.map((protocol) => channel(protocol, `${MODEL}-${protocol}`, origin, protocol)),
  ]
  return {
    models: channels.flatMap(({ models }) =>
      Object.keys(models).map((id) => ({
        id,
        // Not shared: in a family with prices for cache writes, each body is searched for the lifetimes of its cache marks.
        family: id,
        display_name: id,
        context_window: 100_000,
        max_output_tokens: 8_192,
        default_max_tokens: 1_024,
        pricing: { unit: '1M_tokens', input: String(INPUT_PRICE), output: String(OUTPUT_PRICE) },
      })),
    ),
    channels,
  }
}

type Environment = Readonly<Record<string, string>>

const command = async (env: Environment, ...args: string[]): Promise<Record<string, unknown>> => {
  const options = { env: { ...process.env, ...env }, cwd: ROOT, timeout: COMMAND_LIMIT_MS }
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, ...args, '--json'], options)
  return JSON.parse(stdout) as Record<string, unknown>
}

/** Creates an account with credit and returns a key of it. */
const makeKey = async (env: Environment, name: string, credit = CREDIT): Promise<string> => {
  const account = await command(env, 'account', 'create', '--name', name, '--credit', credit)
  const key = await command(env, 'key', 'create', '--account', String(account.id), '--name', name)
  return String(key.key)
}

const READERS = ['bench-reader-1', 'bench-reader-2', 'bench-reader-3', 'bench-reader-4']

const makeReaders = (env: Environment): Promise<string[]> =>
  Promise.all(READERS.map((name) => makeKey(env, name)))

/** Creates another account at the service in `folder`, with credit or without, and returns a key of it. */
export const createKey = (folder: string, name: 'rich' | 'poor'): Promise<string> =>
  makeKey(
    { TOLLGATE_DATA_DIR: join(folder, 'data'), TOLLGATE_MASTER_KEY: MASTER_KEY.toString('hex') },
    name,
    name === 'rich' ? CREDIT : '0',
  )

const endpointFor = (port: number, key: string, model = MODEL): Endpoint => ({
  port,
  path: COMPLETIONS_PATH,
  headers: { authorization: `Bearer ${key}` },
  model,
})

/** Counts settled calls by the amount that the wallet paid. Its account makes small calls only. */
const readSettling = (port: number, key: string, readers: readonly string[]): Settling => ({
  endpoint: endpointFor(port, key),
  readers: readers.map((reader) => endpointFor(port, reader)),
  settledCalls: async () => {
    const url = `http://127.0.0.1:${port}/v1/key/balance`
    const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } })
    if (!response.ok) throw new Error(`the balance answered ${response.status}: ${await response.text()}`)
    const { used } = (await response.json()) as { used: string }
    return Number(used) / SMALL_CALL_CREDITS
  },
})

/** Pins everything but the gateway. Processes that these start later inherit the core. */
const moveEngines = (supervisor: number, core: number | null): void => {
  if (core === null) return
  const { gateway: _, ...behind } = tollgateProcesses(supervisor)
  for (const pid of Object.values(behind).flat()) pin(pid, core)
}

/** Stops what works behind the gateway, but not NATS, which gets the settlement of each call. Returns what lets it go on. */
const stopEngines = (supervisor: number): (() => void) => {
  const { postgres, clickhouse, settler, tasks } = tollgateProcesses(supervisor)
  const behind = [postgres, clickhouse, settler, tasks].flatMap((pids) => pids ?? [])
  const send = (signal: NodeJS.Signals) => {
    for (const pid of behind) sendSignal(pid, signal)
  }
  send('SIGSTOP')
  return () => send('SIGCONT')
}

interface Settlement {
  /** False: settlements are dropped. */
  readonly settles: boolean
  readonly durability?: 'cluster'
}

const start = async (stage: Stage, { settles, durability }: Settlement): Promise<RunningSubject> => {
  const startedAt = performance.now()
  const { child, record, env } = await startTollgate({
    folder: stage.folder,
    ...(!settles && { program: PROGRAM_WITHOUT_SETTLEMENT }),
    configuration: { ...configuration(stage), ...(durability && { settlement: { durability } }) },
    core: stage.core,
    env: {
      ...(stage.certFile ? { NODE_EXTRA_CA_CERTS: stage.certFile } : {}),
      ...stage.env,
    },
  })
  const readyMs = performance.now() - startedAt
  const port = Number(new URL(record.base_url!).port)
  const key = await makeKey(env, 'bench')
  return {
    version: '',
    readyMs,
    installedBytes: diskBytes(...INSTALLED.map((path) => join(ROOT, path))),
    plain: endpointFor(port, key),
    tls: stage.certFile && stage.upstream.tlsPort ? endpointFor(port, key, TLS_MODEL) : null,
    translated: Object.fromEntries(
      TRANSLATED.map((protocol) => [protocol, endpointFor(port, key, `${MODEL}-${protocol}`)]),
    ),
    processes: () => tollgateProcesses(child.pid),
    moveEngines: (toOwnCore) => moveEngines(child.pid, toOwnCore ? stage.enginesCore : stage.core),
    stopEngines: () => stopEngines(child.pid),
    settling: settles
      ? readSettling(port, await makeKey(env, 'bench-settling'), await makeReaders(env))
      : null,
    stop: child.stop,
  }
}

export const tollgate: Subject = {
  name: 'tollgate',
  title: 'Tollgate, everything on',
  work: 'reserves, charges, logs',
  holdsManyStreams: true,
  start: (stage) => start(stage, { settles: true }),
}

/** Calls are authenticated, admitted, metered and priced; their settlements are dropped. */
export const tollgateNoSettlement: Subject = {
  name: 'tollgate-no-settlement',
  title: 'Tollgate, no settlement',
  work: 'authenticates, admits, meters, prices',
  holdsManyStreams: false,
  start: (stage) => start(stage, { settles: false }),
}

/** The end of an answer waits until JetStream has stored the settlement. */
export const tollgateStoredFirst: Subject = {
  name: 'tollgate-stored-first',
  title: 'Tollgate, settlement.durability: cluster',
  work: 'reserves, charges, logs; the end of an answer waits until two machines have the charge',
  holdsManyStreams: false,
  start: (stage) => start(stage, { settles: true, durability: 'cluster' }),
}
