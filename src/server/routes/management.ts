/** Routes of the management API. */
import { accountOperations } from '../../../pipelines/management/accounts/accounts.ts'
import { agentOperations } from '../../../pipelines/management/accounts/agents.ts'
import { auditOperations } from '../../../pipelines/management/accounts/audit.ts'
import { budgetOperations } from '../../../pipelines/management/accounts/budgets.ts'
import { keyRotationOperations } from '../../../pipelines/management/accounts/key-rotation.ts'
import type { Configured } from '../../../pipelines/management/accounts/key-rules.ts'
import { keyOperations } from '../../../pipelines/management/accounts/keys.ts'
import { organizationOperations } from '../../../pipelines/management/accounts/organizations.ts'
import { tokenOperations } from '../../../pipelines/management/accounts/tokens.ts'
import { callLogOperations } from '../../../pipelines/management/calls/call-log.ts'
import { type CallServices, callOperations } from '../../../pipelines/management/calls/calls.ts'
import { installationUsageOperations } from '../../../pipelines/management/calls/installation-usage.ts'
import { lostSubmitOperations } from '../../../pipelines/management/calls/lost-submits.ts'
import { searchOperations } from '../../../pipelines/management/calls/search.ts'
import { type TaskServices, taskOperations } from '../../../pipelines/management/calls/tasks.ts'
import { usageOperations } from '../../../pipelines/management/calls/usage.ts'
import { channelOperations } from '../../../pipelines/management/channels/channels.ts'
import {
  type ConfigurationServices,
  configurationOperations,
} from '../../../pipelines/management/configuration/configuration.ts'
import { serveOperation } from '../../../pipelines/management/endpoint.ts'
import { type HealthServices, healthOperations } from '../../../pipelines/management/health/health.ts'
import { statusNoteOperations } from '../../../pipelines/management/health/status-notes.ts'
import type { ManagementAccess } from '../../../pipelines/management/identify.ts'
import { jobOperations } from '../../../pipelines/management/jobs/jobs.ts'
import { type JournalServices, journalOperations } from '../../../pipelines/management/jobs/journals.ts'
import { partitionOperations } from '../../../pipelines/management/jobs/partitions.ts'
import { baseOperations } from '../../../pipelines/management/knowledge/bases.ts'
import { type ImportServices, importOperations } from '../../../pipelines/management/knowledge/imports.ts'
import { pageOperations } from '../../../pipelines/management/knowledge/pages.ts'
import { type LiveServices, liveOperations, liveStreams } from '../../../pipelines/management/live/live.ts'
import { type StreamBounds, serveStream } from '../../../pipelines/management/live/stream.ts'
import { alertOperations } from '../../../pipelines/management/notifications/alerts.ts'
import { deliveryOperations } from '../../../pipelines/management/notifications/deliveries.ts'
import {
  type WebhookServices,
  webhookOperations,
} from '../../../pipelines/management/notifications/webhooks.ts'
import type { Implementation } from '../../../pipelines/management/operation.ts'
import { automaticOperations } from '../../../pipelines/management/payments/automatic.ts'
import type { PaymentServices } from '../../../pipelines/management/payments/cards.ts'
import { paymentOperations } from '../../../pipelines/management/payments/payments.ts'
import { refusedEventOperations } from '../../../pipelines/management/payments/refused-events.ts'
import { emailOperations } from '../../../pipelines/management/people/email.ts'
import { oidcOperations } from '../../../pipelines/management/people/oidc.ts'
import { passkeyOperations } from '../../../pipelines/management/people/passkeys.ts'
import { profileOperations } from '../../../pipelines/management/people/profile.ts'
import type { PeopleServices } from '../../../pipelines/management/people/rules.ts'
import { savedViewOperations } from '../../../pipelines/management/people/saved-views.ts'
import { sessionOperations } from '../../../pipelines/management/people/sessions.ts'
import { signInOperations } from '../../../pipelines/management/people/sign-in.ts'
import { userOperations } from '../../../pipelines/management/people/users.ts'
import { MAX_UPLOAD_BYTES } from '../../../schemas/management/knowledge/imports.ts'
import type { Operation } from '../../../schemas/management/operation.ts'
import { MANAGEMENT_PATH } from '../../../schemas/routes.ts'
import type { Handler } from '../../http/handler.ts'
import type { RoutedPath } from '../../http/router.ts'

const MAX_BODY_BYTES = 1024 * 1024
/** Headers of the parts of a form come on top of its files. */
const MAX_FORM_BYTES = MAX_UPLOAD_BYTES + MAX_BODY_BYTES

/** What the operations use besides the database, by domain. */
export interface ManagementServices {
  readonly access: ManagementAccess
  readonly people: PeopleServices
  readonly accounts: Configured
  readonly payments: PaymentServices
  readonly calls: CallServices
  readonly tasks: TaskServices
  readonly imports: ImportServices
  readonly webhooks: WebhookServices
  readonly channels: HealthServices
  readonly configuration: ConfigurationServices
  readonly journals: JournalServices
  readonly live: LiveServices
  readonly streams: StreamBounds
}

export function managementRoutes(services: ManagementServices): RoutedPath[] {
  const { access, people, live } = services
  const serve = <Services>(used: Services, implementations: readonly Implementation<NoInfer<Services>>[]) =>
    implementations.map((one) => toRoute(one.operation, serveOperation(access, one, used)))
  return [
    ...serve(people, [
      ...signInOperations,
      ...passkeyOperations,
      ...oidcOperations,
      ...profileOperations,
      ...emailOperations,
      ...userOperations,
      ...alertOperations,
    ]),
    ...serve(services.accounts, [
      ...accountOperations,
      ...organizationOperations,
      ...keyOperations,
      ...agentOperations,
    ]),
    ...serve(services.payments, [...paymentOperations, ...automaticOperations]),
    ...serve(services.calls, [
      ...callOperations,
      ...callLogOperations,
      ...usageOperations,
      ...installationUsageOperations,
    ]),
    ...serve(services.tasks, taskOperations),
    ...serve(services.imports, importOperations),
    ...serve(services.webhooks, webhookOperations),
    ...serve(services.channels, [...channelOperations, ...healthOperations, ...statusNoteOperations]),
    ...serve(services.configuration, configurationOperations),
    ...serve(services.journals, journalOperations),
    ...serve(live, liveOperations),
    ...serve({}, [
      ...sessionOperations,
      ...savedViewOperations,
      ...refusedEventOperations,
      ...budgetOperations,
      ...keyRotationOperations,
      ...baseOperations,
      ...pageOperations,
      ...lostSubmitOperations,
      ...searchOperations,
      ...tokenOperations,
      ...deliveryOperations,
      ...auditOperations,
      ...jobOperations,
      ...partitionOperations,
    ]),
    ...liveStreams.map((one) => toRoute(one.operation, serveStream(access, services.streams, one, live))),
  ]
}

const toRoute = ({ method, path, isUpload }: Operation, handler: Handler): RoutedPath => [
  method,
  `${MANAGEMENT_PATH}${path}`,
  {
    handler,
    maxBodyBytes: MAX_BODY_BYTES,
    isSameOrigin: true,
    addressLimit: 'refused',
    ...(isUpload && { maxFormBytes: MAX_FORM_BYTES }),
  },
]
