/** Routes of the management API. */
import type { Configured } from '../../../pipelines/management/accounts/key-rules.ts'
import type { CallServices } from '../../../pipelines/management/calls/calls.ts'
import type { TaskServices } from '../../../pipelines/management/calls/tasks.ts'
import type { ConfigurationServices } from '../../../pipelines/management/configuration/configuration.ts'
import { DOMAINS } from '../../../pipelines/management/domains.ts'
import { serveOperation } from '../../../pipelines/management/endpoint.ts'
import type { HealthServices } from '../../../pipelines/management/health/health.ts'
import type { ManagementAccess } from '../../../pipelines/management/identify.ts'
import type { JournalServices } from '../../../pipelines/management/jobs/journals.ts'
import type { ImportServices } from '../../../pipelines/management/knowledge/imports.ts'
import { type LiveServices, liveStreams } from '../../../pipelines/management/live/live.ts'
import { type StreamBounds, serveStream } from '../../../pipelines/management/live/stream.ts'
import type { WebhookServices } from '../../../pipelines/management/notifications/webhooks.ts'
import type { Implementation } from '../../../pipelines/management/operation.ts'
import type { PaymentServices } from '../../../pipelines/management/payments/cards.ts'
import type { PeopleServices } from '../../../pipelines/management/people/rules.ts'
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
    ...serve(people, DOMAINS.people),
    ...serve(services.accounts, DOMAINS.accounts),
    ...serve(services.accounts, DOMAINS.agents),
    ...serve(services.payments, DOMAINS.payments),
    ...serve(services.calls, DOMAINS.calls),
    ...serve(services.tasks, DOMAINS.tasks),
    ...serve(services.imports, DOMAINS.imports),
    ...serve(services.webhooks, DOMAINS.webhooks),
    ...serve(services.channels, DOMAINS.channels),
    ...serve(services.channels, DOMAINS.statusNotes),
    ...serve(services.channels, DOMAINS.health),
    ...serve(services.configuration, DOMAINS.configuration),
    ...serve(services.journals, DOMAINS.journals),
    ...serve(live, DOMAINS.live),
    ...serve({}, DOMAINS.plain),
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
