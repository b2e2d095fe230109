/** The dependencies of operations that are commands, by domain. */
import { accountOperations } from '../../../pipelines/management/accounts/accounts.ts'
import { agentOperations } from '../../../pipelines/management/accounts/agents.ts'
import { auditOperations } from '../../../pipelines/management/accounts/audit.ts'
import { budgetOperations } from '../../../pipelines/management/accounts/budgets.ts'
import { keyRotationOperations } from '../../../pipelines/management/accounts/key-rotation.ts'
import { keyOperations } from '../../../pipelines/management/accounts/keys.ts'
import { organizationOperations } from '../../../pipelines/management/accounts/organizations.ts'
import { tokenOperations } from '../../../pipelines/management/accounts/tokens.ts'
import { callLogOperations } from '../../../pipelines/management/calls/call-log.ts'
import { installationUsageOperations } from '../../../pipelines/management/calls/installation-usage.ts'
import { lostSubmitOperations } from '../../../pipelines/management/calls/lost-submits.ts'
import { taskOperations } from '../../../pipelines/management/calls/tasks.ts'
import { usageOperations } from '../../../pipelines/management/calls/usage.ts'
import { channelOperations } from '../../../pipelines/management/channels/channels.ts'
import { journalOperations } from '../../../pipelines/management/jobs/journals.ts'
import { partitionOperations } from '../../../pipelines/management/jobs/partitions.ts'
import { baseOperations } from '../../../pipelines/management/knowledge/bases.ts'
import { deliveryOperations } from '../../../pipelines/management/notifications/deliveries.ts'
import { webhookOperations } from '../../../pipelines/management/notifications/webhooks.ts'
import { paymentOperations } from '../../../pipelines/management/payments/payments.ts'
import { refusedEventOperations } from '../../../pipelines/management/payments/refused-events.ts'
import { userOperations } from '../../../pipelines/management/people/users.ts'
import { listAllTasks, showAnyTask } from '../../../schemas/management/calls/tasks.ts'
import type { Operation } from '../../../schemas/management/operation.ts'
import { receiverChecker } from '../../fetch/receiver.ts'
import type { Database } from '../../postgres/database.ts'
import { configToJudgeBy, operatorConfig } from '../config/config.ts'
import type { Context } from '../context.ts'

type Implementations = readonly { readonly operation: Operation }[]

interface Domain {
  readonly implementations: Implementations
  open<T>(context: Context, work: (database: Database, deps: object) => Promise<T>): Promise<T>
}

const onDatabase = (
  implementations: Implementations,
  depsOf: (context: Context) => object | Promise<object>,
): Domain => ({
  implementations,
  async open(context, work) {
    const deps = await depsOf(context)
    return context.wiring.withDatabase((database) => work(database, deps))
  },
})

const DOMAINS: readonly Domain[] = [
  onDatabase(
    [
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
      ...taskOperations.filter(({ operation }) => operation === listAllTasks),
    ],
    ({ wiring }) => ({
      config: () => operatorConfig(wiring),
      checkReceiver: receiverChecker(() => operatorConfig(wiring).webhooks.private_addresses),
    }),
  ),
  onDatabase(agentOperations, ({ wiring }) => {
    const { config } = configToJudgeBy(wiring)
    return { config: () => config }
  }),
  // Who runs a command hands the link on.
  onDatabase(userOperations, async ({ wiring }) => ({
    config: () => operatorConfig(wiring),
    publicUrl: await wiring.publicUrl(),
    hasMail: false,
  })),
  onDatabase([...paymentOperations, ...refusedEventOperations], async ({ wiring, output }) => ({
    config: () => operatorConfig(wiring),
    openProvider: await wiring.openProvider(),
    hasSimulatedCards: false,
    publicUrl: await wiring.publicUrl(),
    log: {
      info: () => undefined,
      warn: () => undefined,
      error: (details: object, message: string) => output.error(`${message}: ${JSON.stringify(details)}\n`),
    },
  })),
  {
    implementations: taskOperations.filter(({ operation }) => operation === showAnyTask),
    open: ({ wiring }, work) => wiring.withLibrary(({ database, store }) => work(database, { files: store })),
  },
  {
    implementations: taskOperations,
    open: ({ wiring }, work) => wiring.withTasks(({ database, ...deps }) => work(database, deps)),
  },
  { implementations: journalOperations, open: ({ wiring }, work) => wiring.withJournals(work) },
  { implementations: channelOperations, open: ({ wiring }, work) => wiring.withChannels(work) },
  {
    implementations: [...installationUsageOperations, ...usageOperations, ...callLogOperations],
    open: ({ wiring }, work) => wiring.withCallLog(({ database, callLog }) => work(database, { callLog })),
  },
]

/** Runs `work` with the implementations of the domain of the operation, and what they need. */
export function openDomain<T>(
  operation: Operation,
  context: Context,
  work: (implementations: Implementations, database: Database, deps: object) => Promise<T>,
): Promise<T> {
  const domain = DOMAINS.find(({ implementations }) =>
    implementations.some((one) => one.operation === operation),
  )
  if (domain === undefined) throw new Error(`No command runs ${operation.method} ${operation.path}`)
  return domain.open(context, (database, deps) => work(domain.implementations, database, deps))
}
