import { resolve } from 'node:path'
import { clickhouseEngine } from './clickhouse/clickhouse.ts'
import {
  ENGINE_NAMES,
  type EngineEvent,
  type EngineHealth,
  type EngineKind,
  type EngineName,
} from './engine.ts'
import { natsEngine } from './nats/nats.ts'
import { postgresEngine } from './postgres/postgres.ts'
import { simulatorEngine } from './simulator.ts'
import { SupervisedEngine } from './supervisor.ts'

interface EmbeddedOptions {
  /** Directory of the engines' data; the caller holds its lock (`lockDataDir`). */
  dataDir: string
  /** That lock. The engines inherit it: the directory stays locked while one of them lives. */
  lockFd?: number
  engines: readonly EngineName[]
  /** Gateway processes that use them. Default: one. */
  gateways?: number
  onEvent?: (event: EngineEvent) => void
  /** Aborted: the start fails, and what had started is stopped. */
  signal?: AbortSignal
}

/** Addresses of the started engines; null for one that was not requested. */
interface EngineUrls {
  databaseUrl: string | null
  natsUrl: string | null
  clickhouseUrl: string | null
  simulatorUrl: string | null
}

export interface EmbeddedEngines {
  /** With user and password; they stay the same as long as this service runs, whatever crashes. */
  readonly urls: EngineUrls
  readHealth(): Partial<Record<EngineName, EngineHealth>>
  /** Ends all of them, PostgreSQL last. Never fails; takes at most the sum of the engines' bounds. */
  stop(): Promise<void>
  /** Stops one and leaves it stopped. */
  stopEngine(name: EngineName): Promise<void>
  /** Starts one that was stopped, on its old port. */
  startEngine(name: EngineName): Promise<void>
  /** Kills one with SIGKILL; it is restarted as after any crash. */
  killEngine(name: EngineName): void
}

/**
 * Starts the engines in parallel and keeps them running until `stop`. They end with this process, however it ends;
 * processes of a killed run are ended first.
 * @throws Error naming the engine that did not start and what to do; the others are stopped again then
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedEngines> {
  const dataDir = resolve(options.dataDir)
  const onEvent = options.onEvent ?? (() => undefined)
  const engines = new Map<EngineName, SupervisedEngine>()
  // In the order in which they are stopped.
  for (const name of ENGINE_NAMES.filter((known) => options.engines.includes(known))) {
    engines.set(
      name,
      new SupervisedEngine(makeKind(name, dataDir, options), dataDir, onEvent, options.lockFd),
    )
  }
  const signalAtExit = () => {
    for (const engine of engines.values()) engine.signalAtExit()
  }
  process.once('exit', signalAtExit)

  const stop = async () => {
    for (const engine of engines.values()) await engine.stop()
    process.off('exit', signalAtExit)
  }
  const stopAll = () => void stop()
  options.signal?.addEventListener('abort', stopAll)
  const started = await Promise.allSettled([...engines.values()].map((engine) => engine.start()))
  options.signal?.removeEventListener('abort', stopAll)
  const failed = started.find((result) => result.status === 'rejected')
  if (failed !== undefined || options.signal?.aborted) {
    await stop()
    throw failed?.reason ?? options.signal?.reason
  }

  const findEngine = (name: EngineName): SupervisedEngine => {
    const engine = engines.get(name)
    if (engine === undefined) throw new Error(`${name} is not among the embedded engines`)
    return engine
  }
  const resolveUrl = (name: EngineName) => engines.get(name)?.url ?? null
  return {
    urls: {
      databaseUrl: resolveUrl('postgres'),
      natsUrl: resolveUrl('nats'),
      clickhouseUrl: resolveUrl('clickhouse'),
      simulatorUrl: resolveUrl('simulator'),
    },
    readHealth: () => Object.fromEntries([...engines].map(([name, engine]) => [name, engine.readHealth()])),
    stop,
    stopEngine: (name) => findEngine(name).stop(),
    startEngine: (name) => findEngine(name).start(),
    killEngine: (name) => findEngine(name).kill(),
  }
}

function makeKind(name: EngineName, dataDir: string, { gateways = 1 }: EmbeddedOptions): EngineKind {
  switch (name) {
    case 'postgres':
      return postgresEngine(dataDir, gateways)
    case 'nats':
      return natsEngine({ dataDir })
    case 'clickhouse':
      return clickhouseEngine({ dataDir })
    case 'simulator':
      return simulatorEngine({ dataDir })
  }
}
