/** What calls of clients take, in the groups that their stages name. */
import { noteSecretUses } from '../../../pipelines/accounts/secret-uses.ts'
import type { CallAccess } from '../../../pipelines/calls/authenticate.ts'
import type { Idempotency } from '../../../pipelines/calls/claim.ts'
import type { ChatDeps } from '../../../pipelines/chat/chat.ts'
import type { TokenCounting } from '../../../pipelines/chat/count-tokens.ts'
import type { LateUsage } from '../../../pipelines/chat/forward/after-answer.ts'
import type { Forwarding } from '../../../pipelines/chat/forward/deps.ts'
import type { ResponseNotes } from '../../../pipelines/chat/forward/response-notes.ts'
import { SilenceWatch } from '../../../pipelines/chat/forward/stream-answer.ts'
import type { CallReservations } from '../../../pipelines/chat/precharge.ts'
import type { KeptConversations } from '../../../pipelines/chat/stored/conversations.ts'
import type { KeptResponses, ResponseRecords } from '../../../pipelines/chat/stored/responses.ts'
import type { StoredState } from '../../../pipelines/chat/stored/state.ts'
import { type ChannelLists, channelLists } from '../../../pipelines/media/channel-lists.ts'
import type { ImageStore } from '../../../pipelines/media/images/images.ts'
import type { Uploads } from '../../../pipelines/media/inputs/uploads.ts'
import type { MediaOrders } from '../../../pipelines/media/media-call.ts'
import type { MediaTasks } from '../../../pipelines/media/task-endpoints.ts'
import { AnswerMemory } from '../../core/limits/answer-memory.ts'
import { OutputRates } from '../../core/routing/output-rates.ts'
import { RetryBudget } from '../../core/routing/retry-budget.ts'
import { isAway } from '../../postgres/errors.ts'
import type { Tasks } from '../../postgres/tasks/repository.ts'
import type { ObjectStore } from '../../storage/store.ts'
import { CallTrace } from '../../telemetry/call-trace.ts'
import { observeUpstream } from '../../upstream/observe.ts'
import { findTaskAdapter } from '../tasks/adapters.ts'
import { makeLinkChecker } from './check-links.ts'
import { countSettled } from './count-settled.ts'
import type { Engines, Tools } from './engines.ts'
import { makeFileFetcher } from './fetch-files.ts'
import type { openLongRequests } from './long-requests.ts'
import type { Upstreams } from './upstreams.ts'

/** Tasks that were made, and what channels list for everybody. */
interface Made {
  readonly tasks: Tasks
  readonly lists: ChannelLists
}

export interface CallGroups extends ChatDeps, TokenCounting, KeptResponses, KeptConversations {
  readonly access: CallAccess
  readonly stored: StoredState & ResponseRecords
  readonly tasks: Tasks
  readonly orders: MediaOrders
  readonly mediaTasks: MediaTasks
  readonly made: Made
  readonly images: ImageStore
  readonly files: ObjectStore
}

/** What calls of all kinds share in this process. */
interface SharedParts {
  readonly responseNotes: ResponseNotes
  readonly lateUsage: LateUsage
  readonly uploads: Uploads
  readonly long: ReturnType<typeof openLongRequests>
  readonly counting: ReturnType<typeof openLongRequests>
  readonly onRefused: CallAccess['onRefused']
  readonly checkReceiver: (url: string) => Promise<void>
  readonly renderError: MediaOrders['renderError']
}

interface CallParts {
  readonly tools: Tools
  readonly engines: Engines
  readonly upstreams: Upstreams
  readonly calls: SharedParts
}

export function callGroups(parts: CallParts): CallGroups {
  const { log, metrics, configuration } = parts.tools
  const { database, files } = parts.engines
  const { callUpstream, keyed, health } = parts.upstreams
  const { responseNotes: notes, long } = parts.calls
  const { tasks, storedResponses: conversations } = database
  const { createTask, awaitTask, calls, messages, driver } = parts.upstreams.tasks
  const catalog = configuration.current
  const access: CallAccess = {
    credentials: parts.engines.credentials,
    onSecretUsed: noteSecretUses({ database, log }),
    limiter: parts.engines.limiter,
    catalog,
    onRefused: parts.calls.onRefused,
  }
  const idempotency: Idempotency = {
    records: database.idempotency,
    answerMemory: new AnswerMemory(),
    maxSeconds: () => catalog().config.limits.chat_seconds,
    workOnLongBody: long.work,
    onRecordLost: (error) =>
      log.warn({ err: error }, 'Failed to update an idempotency record; it expires by itself'),
  }
  const orders: MediaOrders = {
    access,
    idempotency,
    createTask,
    awaitTask,
    uploads: parts.calls.uploads,
    async checkCallback({ account, key }, url) {
      await parts.calls.checkReceiver(url)
      await database.webhooks.makeCallbacks({ accountId: account.id, keyId: key.id })
    },
    renderError: parts.calls.renderError,
  }
  const reservations: CallReservations = {
    caps: database.reservations,
    journalId: parts.engines.journal.journal.id,
    isAway,
    onReservationRefused: metrics.reservationRefused,
    onReservationFault: (error) =>
      log.error({ err: error }, 'Failed to change a reservation; it ends with its booking or expires'),
  }
  const channels = { catalog, calls }
  const canceller = { ...channels, findAdapter: findTaskAdapter, database, messages, log }
  const inputs = { files, objects: tasks }
  return {
    access,
    bodies: { workOnLongBody: long.work },
    idempotency,
    links: { checkLinks: makeLinkChecker({ store: files }) },
    knowledge: database.knowledge,
    stored: {
      findStoredConversation: conversations.findStoredConversation,
      beginConversationCall: conversations.beginConversationCall,
      findStoredResponse: notes.findStoredResponse,
      findStoredItems: notes.findStoredItems,
      storeResponse: notes.storeResponse,
      forgetStoredResponse: notes.forgetStoredResponse,
    },
    conversations,
    channels,
    background: { orders, inputs, channels },
    reservations,
    forwarding: makeForwarding(parts, reservations),
    counting: { workOnLongBody: parts.calls.counting.work },
    openCountTokens: (call) => observeUpstream((handler) => callUpstream(keyed(call), handler, call.adapter)),
    tasks,
    canceller,
    driveTask: driver({ health, metrics: metrics.tasks, catalog }),
    orders,
    mediaTasks: { ...canceller, tasks },
    made: { tasks, lists: channelLists({ calls }) },
    images: { ...inputs, fileLinkKey: database.masterKey.fileLinkKey },
    files,
  }
}

function makeForwarding(
  { tools, engines, upstreams, calls }: CallParts,
  reservations: CallReservations,
): Forwarding {
  const { configuration, metrics, tracer, log } = tools
  const config = () => configuration.current().config
  return {
    ...reservations,
    workOnLongBody: calls.long.work,
    journal: engines.journal.journal,
    callUpstream: upstreams.callUpstream,
    fetchFiles: makeFileFetcher(),
    retries: () => config().retries,
    retryBudget: new RetryBudget(),
    health: upstreams.health,
    storeResponse: calls.responseNotes.storeResponse,
    usageOptionRefusals: upstreams.usageOptionRefusals,
    silence: new SilenceWatch(),
    outputRates: new OutputRates(),
    lateUsage: calls.lateUsage,
    onSettled: countSettled(metrics, log),
    onInFlight: (change) => metrics.inFlight(change),
    startTrace: tracer === null ? null : (traceparent) => new CallTrace(tracer, traceparent),
    config,
  }
}
