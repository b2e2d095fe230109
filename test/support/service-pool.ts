/**
 * Services that one test file uses after another, never two at a time. Starting one costs as much as most files' own
 * work; taking up another configuration costs nothing. A file meets a service whose channels nobody called, whose
 * provider has seen no call, and whose accounts are other people's.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { parse } from 'yaml'
import { ROLES } from '../../schemas/config/settings.ts'
import { eventually, until } from './eventually.ts'
import { outputPathOf, startService, type TestService } from './service.ts'

/** Lines of every level, for a search for secrets. */
export const LENT_ENVIRONMENT = { LOG_LEVEL: 'trace' } as const

/** A service that nobody asked for so long costs more than it saves: little, but files that borrow stand together. */
const IDLE_BOUND_MS = 60_000
/** As many as files run at a time; each takes half a gigabyte of memory. */
const MAX_IDLE_SERVICES = 4
/** Each has all roles, and those that read the configuration are two: the next borrower may have jobs. */
const ENVIRONMENT = { ...LENT_ENVIRONMENT, TOLLGATE_ROLES: ROLES.join() } as const
const CONFIGURATION_READERS = 2
/** What a test left running upstream ends with the calls it belongs to; and most jobs end soon. */
const QUIET_BOUND_MS = 2_000
const TAKEN_UP = 'Configuration applied'

interface Configuration {
  readonly channels?: readonly { readonly id: string; readonly models?: Readonly<Record<string, unknown>> }[]
}

interface Pooled {
  readonly service: TestService
  readonly end: () => Promise<void>
  /** Every channel that any of its configurations had. */
  readonly channels: Set<string>
  idleTimer: NodeJS.Timeout | null
}

/** A service while one test has it. */
export interface Loan {
  readonly service: TestService
  /** Characters that the service had printed before. */
  readonly printed: number
  /** For the next test. */
  giveBack(): Promise<void>
  /** Ends the service: nobody knows what state it is in. */
  discard(): Promise<void>
}

export class ServicePool {
  readonly #idle: Pooled[] = []
  readonly #all = new Set<Pooled>()
  #loans = 0

  /** A service that has this configuration in force. */
  async lend(config: string): Promise<Loan> {
    const parsed: Configuration = parse(config)
    const channels = (parsed.channels ?? []).map(({ id }) => id)
    const isFit = (pooled: Pooled) => choosable(parsed).every((id) => !pooled.channels.has(id))
    const index = this.#idle.findIndex(isFit)
    const [known] = index < 0 ? [] : this.#idle.splice(index, 1)
    if (known !== undefined && known.idleTimer !== null) clearTimeout(known.idleTimer)
    this.#loans += 1
    const pooled = known ?? (await this.#start(config))
    for (const id of channels) pooled.channels.add(id)
    const printed = pooled.service.output().length
    try {
      // A remark makes each configuration another one, which is taken up.
      if (known !== undefined) await reconfigure(pooled, `${config}\n# loan ${this.#loans}\n`)
    } catch (error) {
      await this.#end(pooled)
      throw error
    }
    return {
      service: pooled.service,
      printed,
      giveBack: async () => {
        const isQuiet = await isAtRest(pooled.service).catch(() => false)
        if (isQuiet) await this.#keep(pooled)
        else await this.#end(pooled)
      },
      discard: () => this.#end(pooled),
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map((pooled) => this.#end(pooled)))
  }

  async #start(config: string): Promise<Pooled> {
    const handlers: (() => unknown)[] = []
    const end = async () => {
      for (const handler of handlers.splice(0).reverse()) await handler()
    }
    try {
      const teardown = (handler: () => unknown) => void handlers.push(handler)
      const service = await startService({ teardown }, { config, env: ENVIRONMENT })
      const pooled: Pooled = { service, end, channels: new Set(), idleTimer: null }
      this.#all.add(pooled)
      return pooled
    } catch (error) {
      await end()
      throw error
    }
  }

  async #keep(pooled: Pooled): Promise<void> {
    this.#idle.push(pooled)
    pooled.idleTimer = setTimeout(() => void this.#end(pooled), IDLE_BOUND_MS)
    const [longest] = this.#idle
    if (longest !== undefined && this.#idle.length > MAX_IDLE_SERVICES) await this.#end(longest)
  }

  async #end(pooled: Pooled): Promise<void> {
    const index = this.#idle.indexOf(pooled)
    if (index >= 0) this.#idle.splice(index, 1)
    if (pooled.idleTimer !== null) clearTimeout(pooled.idleTimer)
    await pooled.end()
    this.#all.delete(pooled)
  }
}

/** A channel that failed rests, also for the next borrower under its name: seen where a model has a choice of channels. */
function choosable({ channels = [] }: Configuration): string[] {
  const served = channels.flatMap(({ models = {} }) => Object.keys(models))
  const hasChoice = (model: string) => served.indexOf(model) !== served.lastIndexOf(model)
  return channels.filter(({ models = {} }) => Object.keys(models).some(hasChoice)).map(({ id }) => id)
}

async function reconfigure({ service }: Pooled, config: string): Promise<void> {
  const path = outputPathOf(service.configPath)
  const before = readFileSync(path).length
  writeFileSync(service.configPath, config)
  await until('the configuration is taken up', () => {
    const printed = readFileSync(path).subarray(before).toString()
    return printed.split(TAKEN_UP).length > CONFIGURATION_READERS
  })
}

/** No call runs, no job is open, and the books agree. Then the simulated provider is as it was when it started. */
async function isAtRest({ engines, database }: TestService): Promise<boolean> {
  const ask = (path: string, method = 'GET') => fetch(`${engines.simulatorUrl}/simulator/${path}`, { method })
  const isQuiet = async () => {
    const { running } = (await (await ask('stats')).json()) as { running: number }
    return running === 0 && (await database.tasks.countOpen()).length === 0 ? true : undefined
  }
  await eventually('calls and jobs have ended', isQuiet, QUIET_BOUND_MS)
  for (const kind of ['calls', 'tasks']) await ask(kind, 'DELETE')
  return (await database.audits.verifyWallets()).ok
}
