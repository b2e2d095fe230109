/** Runs operations in the name of the user of this machine, with what their domain needs. */
import { accountActs } from '../../../pipelines/management/accounts/accounts.ts'
import { agentActs } from '../../../pipelines/management/accounts/agents.ts'
import { auditActs } from '../../../pipelines/management/accounts/audit.ts'
import { budgetActs } from '../../../pipelines/management/accounts/budgets.ts'
import { keyRotationActs } from '../../../pipelines/management/accounts/key-rotation.ts'
import { keyActs } from '../../../pipelines/management/accounts/keys.ts'
import { organizationActs } from '../../../pipelines/management/accounts/organizations.ts'
import { tokenActs } from '../../../pipelines/management/accounts/tokens.ts'
import { actOf, runAct } from '../../../pipelines/management/act.ts'
import { commandCaller } from '../../../pipelines/management/caller.ts'
import { callLogActs } from '../../../pipelines/management/calls/call-log.ts'
import { installationUsageActs } from '../../../pipelines/management/calls/installation-usage.ts'
import { lostSubmitActs } from '../../../pipelines/management/calls/lost-submits.ts'
import { taskActs } from '../../../pipelines/management/calls/tasks.ts'
import { usageActs } from '../../../pipelines/management/calls/usage.ts'
import { channelActs } from '../../../pipelines/management/channels/channels.ts'
import { journalActs } from '../../../pipelines/management/jobs/journals.ts'
import { partitionActs } from '../../../pipelines/management/jobs/partitions.ts'
import { baseActs } from '../../../pipelines/management/knowledge/bases.ts'
import { deliveryActs } from '../../../pipelines/management/notifications/deliveries.ts'
import { webhookActs } from '../../../pipelines/management/notifications/webhooks.ts'
import { paymentActs } from '../../../pipelines/management/payments/payments.ts'
import { refusedEventActs } from '../../../pipelines/management/payments/refused-events.ts'
import { userActs } from '../../../pipelines/management/people/users.ts'
import { taskMessages } from '../../../pipelines/tasks/worker/messages.ts'
import { listAllTasks, showAnyTask } from '../../../schemas/management/calls/tasks.ts'
import type { Operation } from '../../../schemas/management/operation.ts'
import { createCatalog } from '../../core/routing/catalog.ts'
import { receiverChecker } from '../../fetch/receiver.ts'
import type { Database } from '../../postgres/database.ts'
import type { Task } from '../../postgres/tasks/types.ts'
import { configToJudgeBy, requireConfig } from '../config/config.ts'
import type { Context } from '../context.ts'
import type { Json, JsonObject } from '../output.ts'
import type { Wiring } from '../wiring.ts'

export type Input = Record<string, unknown>

interface Domain {
  readonly acts: readonly { readonly operation: Operation }[]
  /** Opens what its operations need. */
  open(context: Context): Promise<{ readonly database: Database }>
}

/** The most entries of a page. */
const PAGE_ENTRIES = 200
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
/** Without a running process no message is needed: each reads the rows when it starts. */
const NO_MESSAGES = { publish() {}, announce() {}, announceWallets() {} }

async function openBase({ wiring }: Context) {
  const config = () => requireConfig(wiring, 'all but channels')
  return {
    database: await wiring.database(),
    config,
    checkReceiver: receiverChecker(() => config().webhooks.private_addresses),
    publicUrl: wiring.publicUrl(),
    // Whoever runs a command hands the link on.
    hasMail: false,
  }
}

const DOMAINS: readonly Domain[] = [
  {
    acts: [
      ...accountActs,
      ...keyActs,
      ...keyRotationActs,
      ...organizationActs,
      ...tokenActs,
      ...budgetActs,
      ...baseActs,
      ...auditActs,
      ...webhookActs,
      ...deliveryActs,
      ...lostSubmitActs,
      ...partitionActs,
      ...userActs,
      ...taskActs.filter(({ operation }) => operation === listAllTasks),
    ],
    open: openBase,
  },
  {
    acts: agentActs,
    async open({ wiring }) {
      const { config } = configToJudgeBy(wiring)
      return { database: await wiring.database(), config: () => config }
    },
  },
  {
    acts: [...paymentActs, ...refusedEventActs],
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
    acts: taskActs.filter(({ operation }) => operation === showAnyTask),
    open: async ({ wiring }) => ({ database: await wiring.database(), files: await wiring.store() }),
  },
  { acts: taskActs, open: ({ wiring }) => openTasks(wiring) },
  {
    acts: journalActs,
    async open({ wiring }) {
      const { journalDeps } = await import('../../server/journal-deps.ts')
      return { database: await wiring.database(), journals: journalDeps(await wiring.nats(), silent) }
    },
  },
  {
    acts: channelActs,
    async open({ wiring }) {
      const catalog = createCatalog(requireConfig(wiring))
      const { openUpstream } = await wiring.upstreams()
      const processReports = () => wiring.processReports()
      return { database: await wiring.database(), catalog: () => catalog, processReports, openUpstream }
    },
  },
  {
    acts: [...installationUsageActs, ...usageActs, ...callLogActs],
    open: ({ wiring }) => wiring.books(),
  },
]

async function openTasks(wiring: Wiring) {
  const nats = await wiring.nats()
  return {
    database: await wiring.database(),
    messages: nats === null ? NO_MESSAGES : taskMessages(nats, silent),
    // As the gateway does, with the channels of the service's configuration.
    async cancelUpstream(task: Task) {
      const [{ cancelUpstream }, { taskAdapterOf }] = await Promise.all([
        import('../../../pipelines/tasks/end/cancel-upstream.ts'),
        import('../../server/tasks/adapters.ts'),
      ])
      const catalog = createCatalog(requireConfig(wiring))
      const { media: calls } = await wiring.upstreams()
      await cancelUpstream({ calls, adapterOf: taskAdapterOf, catalog: () => catalog }, task)
    },
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
  const domain = DOMAINS.find(({ acts }) => acts.some((act) => act.operation === operation))
  if (domain === undefined) throw new Error(`No command runs ${operation.method} ${operation.path}`)
  const deps = await domain.open(context)
  const act = actOf<object, Operation>(domain.acts, operation)
  const caller = commandCaller(context.wiring.actor(), by)
  const run = async (more: Input) => {
    const options = { database: deps.database, deps, caller, now: Date.now() }
    return (await runAct(act, { ...input, ...more }, options)) as JsonObject
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
