/** Routes of the management API. */
import { type AccountDeps, accountActs } from '../../../pipelines/management/accounts/accounts.ts'
import { agentActs } from '../../../pipelines/management/accounts/agents.ts'
import { auditActs } from '../../../pipelines/management/accounts/audit.ts'
import { budgetActs } from '../../../pipelines/management/accounts/budgets.ts'
import { keyRotationActs } from '../../../pipelines/management/accounts/key-rotation.ts'
import { keyActs } from '../../../pipelines/management/accounts/keys.ts'
import { organizationActs } from '../../../pipelines/management/accounts/organizations.ts'
import { tokenActs } from '../../../pipelines/management/accounts/tokens.ts'
import type { Act } from '../../../pipelines/management/act.ts'
import { type CallLogDeps, callLogActs } from '../../../pipelines/management/calls/call-log.ts'
import { type CallDeps, callActs } from '../../../pipelines/management/calls/calls.ts'
import {
  type InstallationUsageDeps,
  installationUsageActs,
} from '../../../pipelines/management/calls/installation-usage.ts'
import { lostSubmitActs } from '../../../pipelines/management/calls/lost-submits.ts'
import { searchActs } from '../../../pipelines/management/calls/search.ts'
import { type TaskDeps, taskActs } from '../../../pipelines/management/calls/tasks.ts'
import { type UsageDeps, usageActs } from '../../../pipelines/management/calls/usage.ts'
import { type ChannelDeps, channelActs } from '../../../pipelines/management/channels/channels.ts'
import {
  type ConfigurationDeps,
  configurationActs,
} from '../../../pipelines/management/configuration/configuration.ts'
import { endpoint, streamEndpoint, type Visit } from '../../../pipelines/management/endpoint.ts'
import type { EndpointDeps } from '../../../pipelines/management/identify.ts'
import { jobActs } from '../../../pipelines/management/jobs/jobs.ts'
import { type JournalDeps, journalActs } from '../../../pipelines/management/jobs/journals.ts'
import { partitionActs } from '../../../pipelines/management/jobs/partitions.ts'
import { baseActs } from '../../../pipelines/management/knowledge/bases.ts'
import { type ImportDeps, importActs } from '../../../pipelines/management/knowledge/imports.ts'
import { pageActs } from '../../../pipelines/management/knowledge/pages.ts'
import type { StreamDeps } from '../../../pipelines/management/live/act.ts'
import { type LiveDeps, liveActs, liveStreams } from '../../../pipelines/management/live/live.ts'
import { type AlertDeps, alertActs } from '../../../pipelines/management/notifications/alerts.ts'
import { deliveryActs } from '../../../pipelines/management/notifications/deliveries.ts'
import { type WebhookDeps, webhookActs } from '../../../pipelines/management/notifications/webhooks.ts'
import { automaticActs } from '../../../pipelines/management/payments/automatic.ts'
import type { PaymentDeps } from '../../../pipelines/management/payments/deps.ts'
import { paymentActs } from '../../../pipelines/management/payments/payments.ts'
import { type ReceiptDeps, receiptActs } from '../../../pipelines/management/payments/receipts.ts'
import { refusedEventActs } from '../../../pipelines/management/payments/refused-events.ts'
import { emailActs } from '../../../pipelines/management/people/email.ts'
import { oidcActs } from '../../../pipelines/management/people/oidc.ts'
import { passkeyActs } from '../../../pipelines/management/people/passkeys.ts'
import { profileActs } from '../../../pipelines/management/people/profile.ts'
import type { PeopleDeps } from '../../../pipelines/management/people/rules.ts'
import { savedViewActs } from '../../../pipelines/management/people/saved-views.ts'
import { sessionActs } from '../../../pipelines/management/people/sessions.ts'
import { signInActs } from '../../../pipelines/management/people/sign-in.ts'
import { userActs } from '../../../pipelines/management/people/users.ts'
import { MAX_UPLOAD_BYTES } from '../../../schemas/management/knowledge/imports.ts'
import { MANAGEMENT_PATH } from '../../../schemas/routes.ts'
import type { RoutedPath } from '../../http/router.ts'

const MAX_BODY_BYTES = 1024 * 1024
/** Headers of the parts of a form come on top of its files. */
const MAX_FORM_BYTES = MAX_UPLOAD_BYTES + MAX_BODY_BYTES

export type ManagementRouteDeps = EndpointDeps &
  CallDeps &
  CallLogDeps &
  UsageDeps &
  InstallationUsageDeps &
  TaskDeps &
  ChannelDeps &
  ConfigurationDeps &
  LiveDeps &
  StreamDeps &
  AccountDeps &
  AlertDeps &
  WebhookDeps &
  Omit<PaymentDeps, 'visit'> &
  ReceiptDeps &
  JournalDeps &
  Omit<ImportDeps, 'visit'> &
  Omit<PeopleDeps, 'visit'>

export function managementRoutes(deps: ManagementRouteDeps): RoutedPath[] {
  const acts: readonly Act<ManagementRouteDeps & { visit: Visit }>[] = [
    ...sessionActs,
    ...signInActs,
    ...passkeyActs,
    ...oidcActs,
    ...profileActs,
    ...emailActs,
    ...savedViewActs,
    ...userActs,
    ...accountActs,
    ...paymentActs,
    ...automaticActs,
    ...receiptActs,
    ...refusedEventActs,
    ...organizationActs,
    ...keyActs,
    ...budgetActs,
    ...keyRotationActs,
    ...agentActs,
    ...baseActs,
    ...pageActs,
    ...importActs,
    ...callActs,
    ...callLogActs,
    ...usageActs,
    ...installationUsageActs,
    ...taskActs,
    ...lostSubmitActs,
    ...searchActs,
    ...tokenActs,
    ...webhookActs,
    ...deliveryActs,
    ...alertActs,
    ...auditActs,
    ...channelActs,
    ...liveActs,
    ...configurationActs,
    ...jobActs,
    ...journalActs,
    ...partitionActs,
  ]
  const handlers = [
    ...acts.map((act) => ({ operation: act.operation, handler: endpoint(deps, act) })),
    ...liveStreams.map((act) => ({ operation: act.operation, handler: streamEndpoint(deps, act) })),
  ]
  return handlers.map(({ operation, handler }) => [
    operation.method,
    `${MANAGEMENT_PATH}${operation.path}`,
    {
      handler,
      maxBodyBytes: MAX_BODY_BYTES,
      isSameOrigin: true,
      addressLimit: 'refused',
      ...(operation.isUpload && { maxFormBytes: MAX_FORM_BYTES }),
    },
  ])
}
