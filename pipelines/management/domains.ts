/** Every operation with its implementation, by the services that it uses. HTTP and the command line run them. */
import { accountOperations } from './accounts/accounts.ts'
import { agentOperations } from './accounts/agents.ts'
import { auditOperations } from './accounts/audit.ts'
import { budgetOperations } from './accounts/budgets.ts'
import { keyOperations } from './accounts/keys.ts'
import { organizationOperations } from './accounts/organizations.ts'
import { tokenOperations } from './accounts/tokens.ts'
import { callLogOperations } from './calls/call-log.ts'
import { callOperations } from './calls/calls.ts'
import { installationUsageOperations } from './calls/installation-usage.ts'
import { lostSubmitOperations } from './calls/lost-submits.ts'
import { searchOperations } from './calls/search.ts'
import { taskOperations } from './calls/tasks.ts'
import { usageOperations } from './calls/usage.ts'
import { channelOperations } from './channels/channels.ts'
import { configurationOperations } from './configuration/configuration.ts'
import { healthOperations } from './health/health.ts'
import { statusNoteOperations } from './health/status-notes.ts'
import { jobOperations } from './jobs/jobs.ts'
import { journalOperations } from './jobs/journals.ts'
import { partitionOperations } from './jobs/partitions.ts'
import { baseOperations } from './knowledge/bases.ts'
import { importOperations } from './knowledge/imports.ts'
import { pageOperations } from './knowledge/pages.ts'
import { liveOperations } from './live/live.ts'
import { alertOperations } from './notifications/alerts.ts'
import { deliveryOperations } from './notifications/deliveries.ts'
import { webhookOperations } from './notifications/webhooks.ts'
import { automaticOperations } from './payments/automatic.ts'
import { paymentOperations } from './payments/payments.ts'
import { emailOperations } from './people/email.ts'
import { oidcOperations } from './people/oidc.ts'
import { passkeyOperations } from './people/passkeys.ts'
import { profileOperations } from './people/profile.ts'
import { savedViewOperations } from './people/saved-views.ts'
import { sessionOperations } from './people/sessions.ts'
import { signInOperations } from './people/sign-in.ts'
import { userOperations } from './people/users.ts'

/** An operation that a command runs is opened by its domain, so a domain has only those that need the same engines. */
export const DOMAINS = {
  people: [
    ...signInOperations,
    ...passkeyOperations,
    ...oidcOperations,
    ...profileOperations,
    ...emailOperations,
    ...userOperations,
    ...alertOperations,
  ],
  accounts: [...accountOperations, ...organizationOperations, ...keyOperations],
  agents: agentOperations,
  payments: [...paymentOperations, ...automaticOperations],
  calls: [...callOperations, ...callLogOperations, ...usageOperations, ...installationUsageOperations],
  tasks: taskOperations,
  imports: importOperations,
  webhooks: webhookOperations,
  channels: channelOperations,
  statusNotes: statusNoteOperations,
  health: healthOperations,
  configuration: configurationOperations,
  journals: journalOperations,
  live: liveOperations,
  /** They use only the database. */
  plain: [
    ...sessionOperations,
    ...savedViewOperations,
    ...budgetOperations,
    ...baseOperations,
    ...pageOperations,
    ...lostSubmitOperations,
    ...searchOperations,
    ...tokenOperations,
    ...deliveryOperations,
    ...auditOperations,
    ...jobOperations,
    ...partitionOperations,
  ],
}
