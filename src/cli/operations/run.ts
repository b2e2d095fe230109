/** Runs operations in the name of this machine's user. */
import { accountOperations } from '../../../pipelines/management/accounts/accounts.ts'
import { agentOperations } from '../../../pipelines/management/accounts/agents.ts'
import { auditOperations } from '../../../pipelines/management/accounts/audit.ts'
import { budgetOperations } from '../../../pipelines/management/accounts/budgets.ts'
import { keyRotationOperations } from '../../../pipelines/management/accounts/key-rotation.ts'
import { keyOperations } from '../../../pipelines/management/accounts/keys.ts'
import { organizationOperations } from '../../../pipelines/management/accounts/organizations.ts'
import { tokenOperations } from '../../../pipelines/management/accounts/tokens.ts'
import { commandCaller } from '../../../pipelines/management/caller.ts'
import { callLogOperations } from '../../../pipelines/management/calls/call-log.ts'
import { installationUsageOperations } from '../../../pipelines/management/calls/installation-usage.ts'
import { lostSubmitOperations } from '../../../pipelines/management/calls/lost-submits.ts'
import { taskOperations } from '../../../pipelines/management/calls/tasks.ts'
import { usageOperations } from '../../../pipelines/management/calls/usage.ts'
import { channelOperations } from '../../../pipelines/management/channels/channels.ts'
import { healthOperations } from '../../../pipelines/management/health/health.ts'
import { statusNoteOperations } from '../../../pipelines/management/health/status-notes.ts'
import { journalOperations } from '../../../pipelines/management/jobs/journals.ts'
import { partitionOperations } from '../../../pipelines/management/jobs/partitions.ts'
import { baseOperations } from '../../../pipelines/management/knowledge/bases.ts'
import { deliveryOperations } from '../../../pipelines/management/notifications/deliveries.ts'
import { webhookOperations } from '../../../pipelines/management/notifications/webhooks.ts'
import { findImplementation, runImplementation } from '../../../pipelines/management/operation.ts'
import { paymentOperations } from '../../../pipelines/management/payments/payments.ts'
import { refusedEventOperations } from '../../../pipelines/management/payments/refused-events.ts'
import { userOperations } from '../../../pipelines/management/people/users.ts'
import { listAllTasks, showAnyTask } from '../../../schemas/management/calls/tasks.ts'
import type { Operation } from '../../../schemas/management/operation.ts'
import { createCatalog } from '../../core/routing/catalog.ts'
import { receiverChecker } from '../../fetch/receiver.ts'
import type { Database } from '../../postgres/database.ts'
import { findAgentConfig, requireConfig } from '../config/config.ts'
import type { Context } from '../context.ts'
import type { Json, JsonObject } from '../output.ts'

export type Input = Record<string, unknown>

interface Domain {
  readonly implementations: readonly { readonly operation: Operation }[]
  /** Opens what its operations need. */
  open(context: Context): Promise<{ readonly database: Database }>
}

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

const DOMAINS: readonly Domain[] = [
  {
    implementations: [
      ...accountOperations,
      ...keyOperations,
      ...keyRotationOperations,
      ...organizationOperations,
      ...tokenOperations,
      ...budgetOperations,
      ...baseOperations,
      ...auditOperations,
      ...webhookOperations,
      ...deliveryOperations,
      ...lostSubmitOperations,
      ...partitionOperations,
      ...userOperations,
      ...taskOperations.filter(({ operation }) => operation === listAllTasks),
    ],
    open: openBase,
  },
  {
    implementations: agentOperations,
    async open({ wiring }) {
      const { config } = findAgentConfig(wiring)
      return { database: await wiring.database(), config: () => config }
    },
  },
  {
    implementations: [...paymentOperations, ...refusedEventOperations],
    open: async (context) => ({
      ...(await openBase(context)),
      openProvider: await context.wiring.openProvider(),
      hasSimulatedCards: false,
      log: {
        ...silent,
        error: (details: object, message: string) =>
          context.output.error(`${message}: ${JSON.stringify(details)}\n`),
      },
    }),
  },
  {
    implementations: taskOperations.filter(({ operation }) => operation === showAnyTask),
    open: async ({ wiring }) => ({ database: await wiring.database(), files: await wiring.store() }),
  },
  {
    implementations: taskOperations,
    open: async ({ wiring }) => ({ database: await wiring.database(), ...(await wiring.tasks()) }),
  },
  {
    implementations: journalOperations,
    async open({ wiring }) {
      const { journalServices } = await import('../../server/journal-services.ts')
      return { database: await wiring.database(), ...journalServices(await wiring.nats(), silent) }
    },
  },
  {
    implementations: channelOperations,
    async open({ wiring }) {
      const catalog = createCatalog(requireConfig(wiring))
      const { openUpstream } = await wiring.upstreams()
      const processReports = () => wiring.processReports()
      return { database: await wiring.database(), catalog: () => catalog, processReports, openUpstream }
    },
  },
  {
    implementations: statusNoteOperations,
    async open({ wiring }) {
      const catalog = createCatalog(requireConfig(wiring))
      return { database: await wiring.database(), catalog: () => catalog }
    },
  },
  {
    implementations: healthOperations,
    async open({ wiring }) {
      const config = requireConfig(wiring)
      const { openUpstream } = await wiring.upstreams()
      const catalog = createCatalog(config)
      const processReports = () => wiring.processReports()
      return {
        ...(await wiring.books()),
        config: () => config,
        catalog: () => catalog,
        processReports,
        openUpstream,
      }
    },
  },
  {
    implementations: [...installationUsageOperations, ...usageOperations, ...callLogOperations],
    open: ({ wiring }) => wiring.books(),
  },
]

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
  const domain = DOMAINS.find(({ implementations }) =>
    implementations.some(({ operation: implemented }) => implemented === operation),
  )
  if (domain === undefined) throw new Error(`No command runs ${operation.method} ${operation.path}`)
  const services = await domain.open(context)
  const implementation = findImplementation<object, Operation>(domain.implementations, operation)
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
