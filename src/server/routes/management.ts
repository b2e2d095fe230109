/** Routes of the management API. */
import { type AccountDeps, accountOperations } from '../../../pipelines/management/accounts/accounts.ts'
import { agentOperations } from '../../../pipelines/management/accounts/agents.ts'
import { auditOperations } from '../../../pipelines/management/accounts/audit.ts'
import { budgetOperations } from '../../../pipelines/management/accounts/budgets.ts'
import { keyRotationOperations } from '../../../pipelines/management/accounts/key-rotation.ts'
import { keyOperations } from '../../../pipelines/management/accounts/keys.ts'
import { organizationOperations } from '../../../pipelines/management/accounts/organizations.ts'
import { tokenOperations } from '../../../pipelines/management/accounts/tokens.ts'
import { type CallLogDeps, callLogOperations } from '../../../pipelines/management/calls/call-log.ts'
import { type CallDeps, callOperations } from '../../../pipelines/management/calls/calls.ts'
import {
  type InstallationUsageDeps,
  installationUsageOperations,
} from '../../../pipelines/management/calls/installation-usage.ts'
import { lostSubmitOperations } from '../../../pipelines/management/calls/lost-submits.ts'
import { searchOperations } from '../../../pipelines/management/calls/search.ts'
import { type TaskDeps, taskOperations } from '../../../pipelines/management/calls/tasks.ts'
import { type UsageDeps, usageOperations } from '../../../pipelines/management/calls/usage.ts'
import { type ChannelDeps, channelOperations } from '../../../pipelines/management/channels/channels.ts'
import {
  type ConfigurationDeps,
  configurationOperations,
} from '../../../pipelines/management/configuration/configuration.ts'
import { serveOperation, serveStream, type Visit } from '../../../pipelines/management/endpoint.ts'
import type { EndpointDeps } from '../../../pipelines/management/identify.ts'
import { jobOperations } from '../../../pipelines/management/jobs/jobs.ts'
import { type JournalDeps, journalOperations } from '../../../pipelines/management/jobs/journals.ts'
import { partitionOperations } from '../../../pipelines/management/jobs/partitions.ts'
import { baseOperations } from '../../../pipelines/management/knowledge/bases.ts'
import { type ImportDeps, importOperations } from '../../../pipelines/management/knowledge/imports.ts'
import { pageOperations } from '../../../pipelines/management/knowledge/pages.ts'
import { type LiveDeps, liveOperations, liveStreams } from '../../../pipelines/management/live/live.ts'
import type { StreamDeps } from '../../../pipelines/management/live/stream.ts'
import { type AlertDeps, alertOperations } from '../../../pipelines/management/notifications/alerts.ts'
import { deliveryOperations } from '../../../pipelines/management/notifications/deliveries.ts'
import { type WebhookDeps, webhookOperations } from '../../../pipelines/management/notifications/webhooks.ts'
import type { Implementation } from '../../../pipelines/management/operation.ts'
import { automaticOperations } from '../../../pipelines/management/payments/automatic.ts'
import type { PaymentDeps } from '../../../pipelines/management/payments/deps.ts'
import { paymentOperations } from '../../../pipelines/management/payments/payments.ts'
import { type ReceiptDeps, receiptOperations } from '../../../pipelines/management/payments/receipts.ts'
import { refusedEventOperations } from '../../../pipelines/management/payments/refused-events.ts'
import { emailOperations } from '../../../pipelines/management/people/email.ts'
import { oidcOperations } from '../../../pipelines/management/people/oidc.ts'
import { passkeyOperations } from '../../../pipelines/management/people/passkeys.ts'
import { profileOperations } from '../../../pipelines/management/people/profile.ts'
import type { PeopleDeps } from '../../../pipelines/management/people/rules.ts'
import { savedViewOperations } from '../../../pipelines/management/people/saved-views.ts'
import { sessionOperations } from '../../../pipelines/management/people/sessions.ts'
import { signInOperations } from '../../../pipelines/management/people/sign-in.ts'
import { userOperations } from '../../../pipelines/management/people/users.ts'
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
  const implementations: readonly Implementation<ManagementRouteDeps & { visit: Visit }>[] = [
    ...sessionOperations,
    ...signInOperations,
    ...passkeyOperations,
    ...oidcOperations,
    ...profileOperations,
    ...emailOperations,
    ...savedViewOperations,
    ...userOperations,
    ...accountOperations,
    ...paymentOperations,
    ...automaticOperations,
    ...receiptOperations,
    ...refusedEventOperations,
    ...organizationOperations,
    ...keyOperations,
    ...budgetOperations,
    ...keyRotationOperations,
    ...agentOperations,
    ...baseOperations,
    ...pageOperations,
    ...importOperations,
    ...callOperations,
    ...callLogOperations,
    ...usageOperations,
    ...installationUsageOperations,
    ...taskOperations,
    ...lostSubmitOperations,
    ...searchOperations,
    ...tokenOperations,
    ...webhookOperations,
    ...deliveryOperations,
    ...alertOperations,
    ...auditOperations,
    ...channelOperations,
    ...liveOperations,
    ...configurationOperations,
    ...jobOperations,
    ...journalOperations,
    ...partitionOperations,
  ]
  const handlers = [
    ...implementations.map((one) => ({ operation: one.operation, handler: serveOperation(deps, one) })),
    ...liveStreams.map((one) => ({ operation: one.operation, handler: serveStream(deps, one) })),
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
