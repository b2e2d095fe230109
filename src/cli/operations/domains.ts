/** The dependencies of operations that are commands, by domain. */
import { accountActs } from '../../../pipelines/management/accounts/accounts.ts'
import { agentActs } from '../../../pipelines/management/accounts/agents.ts'
import { auditActs } from '../../../pipelines/management/accounts/audit.ts'
import { budgetActs } from '../../../pipelines/management/accounts/budgets.ts'
import { keyRotationActs } from '../../../pipelines/management/accounts/key-rotation.ts'
import { keyActs } from '../../../pipelines/management/accounts/keys.ts'
import { organizationActs } from '../../../pipelines/management/accounts/organizations.ts'
import { tokenActs } from '../../../pipelines/management/accounts/tokens.ts'
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
import { listAllTasks, showAnyTask } from '../../../schemas/management/calls/tasks.ts'
import type { Operation } from '../../../schemas/management/operation.ts'
import { receiverChecker } from '../../fetch/receiver.ts'
import type { Database } from '../../postgres/database.ts'
import { configToJudgeBy, operatorConfig } from '../config/config.ts'
import type { Context } from '../context.ts'

type Acts = readonly { readonly operation: Operation }[]

interface Domain {
  readonly acts: Acts
  open<T>(context: Context, work: (database: Database, deps: object) => Promise<T>): Promise<T>
}

const onDatabase = (acts: Acts, depsOf: (context: Context) => object | Promise<object>): Domain => ({
  acts,
  async open(context, work) {
    const deps = await depsOf(context)
    return context.wiring.withDatabase((database) => work(database, deps))
  },
})

const DOMAINS: readonly Domain[] = [
  onDatabase(
    [
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
      ...taskActs.filter(({ operation }) => operation === listAllTasks),
    ],
    ({ wiring }) => ({
      config: () => operatorConfig(wiring),
      checkReceiver: receiverChecker(() => operatorConfig(wiring).webhooks.private_addresses),
    }),
  ),
  onDatabase(agentActs, ({ wiring }) => {
    const { config } = configToJudgeBy(wiring)
    return { config: () => config }
  }),
  // Who runs a command hands the link on.
  onDatabase(userActs, async ({ wiring }) => ({
    config: () => operatorConfig(wiring),
    publicUrl: await wiring.publicUrl(),
    hasMail: false,
  })),
  onDatabase([...paymentActs, ...refusedEventActs], async ({ wiring, output }) => ({
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
    acts: taskActs.filter(({ operation }) => operation === showAnyTask),
    open: ({ wiring }, work) => wiring.withLibrary(({ database, store }) => work(database, { files: store })),
  },
  {
    acts: taskActs,
    open: ({ wiring }, work) => wiring.withTasks(({ database, ...deps }) => work(database, deps)),
  },
  { acts: journalActs, open: ({ wiring }, work) => wiring.withJournals(work) },
  { acts: channelActs, open: ({ wiring }, work) => wiring.withChannels(work) },
  {
    acts: [...installationUsageActs, ...usageActs, ...callLogActs],
    open: ({ wiring }, work) => wiring.withCallLog(({ database, callLog }) => work(database, { callLog })),
  },
]

/** Runs `work` with the acts of the operation's domain, and what they need. */
export function openDomain<T>(
  operation: Operation,
  context: Context,
  work: (acts: Acts, database: Database, deps: object) => Promise<T>,
): Promise<T> {
  const domain = DOMAINS.find(({ acts }) => acts.some((act) => act.operation === operation))
  if (domain === undefined) throw new Error(`No command runs ${operation.method} ${operation.path}`)
  return domain.open(context, (database, deps) => work(domain.acts, database, deps))
}
