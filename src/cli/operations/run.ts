/** Runs operations in the name of this machine's user. */
import { commandCaller } from '../../../pipelines/management/caller.ts'
import { DOMAINS } from '../../../pipelines/management/domains.ts'
import { findImplementation, runImplementation } from '../../../pipelines/management/operation.ts'
import { listAllTasks, showAnyTask } from '../../../schemas/management/calls/tasks.ts'
import type { Operation } from '../../../schemas/management/operation.ts'
import { createCatalog } from '../../core/routing/catalog.ts'
import { receiverChecker } from '../../fetch/receiver.ts'
import type { Database } from '../../postgres/database.ts'
import { findAgentConfig, requireConfig } from '../config/config.ts'
import type { Context } from '../context.ts'
import type { Json, JsonObject } from '../output.ts'
import type { Wiring } from '../wiring.ts'

export type Input = Record<string, unknown>

/** Opens what an operation needs. */
type Open = (context: Context, operation: Operation) => Promise<{ readonly database: Database }>

/** The most entries of a page. */
const PAGE_ENTRIES = 200
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

async function openBase({ wiring }: Context) {
  const config = () => requireConfig(wiring, 'all but channels')
  return {
    database: await wiring.database(),
    config,
    checkReceiver: receiverChecker(() => config().webhooks.private_addresses),
    publicUrl: wiring.publicUrl(),
    // The command prints the link; its user passes it on.
    hasMail: false,
  }
}

/** By the name of the domain; all others need the base. */
const OPEN: Readonly<Partial<Record<keyof typeof DOMAINS, Open>>> = {
  async agents({ wiring }) {
    const { config } = findAgentConfig(wiring)
    return { database: await wiring.database(), config: () => config }
  },
  payments: async (context) => ({
    ...(await openBase(context)),
    openProvider: await context.wiring.openProvider(),
    hasSimulatedCards: false,
    log: {
      ...silent,
      error: (details: object, message: string) =>
        context.output.error(`${message}: ${JSON.stringify(details)}\n`),
    },
  }),
  async tasks({ wiring }, operation) {
    const database = await wiring.database()
    if (operation === listAllTasks) return { database }
    if (operation === showAnyTask) return { database, files: await wiring.store() }
    return { database, ...(await wiring.tasks()) }
  },
  async journals({ wiring }) {
    const { journalServices } = await import('../../server/journal-services.ts')
    return { database: await wiring.database(), ...journalServices(await wiring.nats(), silent) }
  },
  channels: async ({ wiring }) => ({ database: await wiring.database(), ...(await openChannels(wiring)) }),
  async statusNotes({ wiring }) {
    const catalog = createCatalog(requireConfig(wiring))
    return { database: await wiring.database(), catalog: () => catalog }
  },
  health: async ({ wiring }) => ({ ...(await wiring.books()), ...(await openChannels(wiring)) }),
  calls: ({ wiring }) => wiring.books(),
}

async function openChannels(wiring: Wiring) {
  const config = requireConfig(wiring)
  const catalog = createCatalog(config)
  const { openUpstream } = await wiring.upstreams()
  return {
    config: () => config,
    catalog: () => catalog,
    processReports: () => wiring.processReports(),
    openUpstream,
  }
}

interface RunOptions {
  /** The personal account in whose name it runs. */
  readonly by?: string | null
  /** Entries after which a list ends. */
  readonly most?: number
}

/**
 * Runs an operation in the name of the user of this machine, who may do everything; reads a list page by page.
 * @throws Failure
 */
export async function runOperation(
  operation: Operation,
  input: Input,
  context: Context,
  { by = null, most = Number.POSITIVE_INFINITY }: RunOptions = {},
): Promise<JsonObject> {
  const domain = (Object.keys(DOMAINS) as (keyof typeof DOMAINS)[]).find((name) =>
    DOMAINS[name].some(({ operation: implemented }) => implemented === operation),
  )!
  const services = await (OPEN[domain] ?? openBase)(context, operation)
  const implementation = findImplementation<object, Operation>(DOMAINS[domain], operation)
  const caller = commandCaller(context.wiring.actor(), by)
  const run = async (more: Input) => {
    const options = { database: services.database, services, caller, now: Date.now() }
    return (await runImplementation(implementation, { ...input, ...more }, options)) as JsonObject
  }
  if (!('cursor' in operation.input.shape)) return run({})
  const data: Json[] = []
  let cursor: Json = (input.cursor as Json) ?? null
  do {
    const limit = Math.min(PAGE_ENTRIES, most - data.length)
    const page = await run({ limit, ...(cursor !== null && { cursor }) })
    data.push(...(page.data as Json[]))
    cursor = page.next_cursor ?? null
  } while (cursor !== null && data.length < most)
  return { data }
}
