/** The dependencies of forwarding a chat call. */
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import type { ConfigFile } from '../../../schemas/config/file.ts'
import type { ChannelAdapter } from '../../../src/channels/channel.ts'
import type { Oddities } from '../../../src/core/call-log/call-detail.ts'
import type { ChannelHealth } from '../../../src/core/routing/circuit-breaker.ts'
import type { OutputRates } from '../../../src/core/routing/output-rates.ts'
import type { RetryBudget } from '../../../src/core/routing/retry-budget.ts'
import type { UsageOptionRefusals } from '../../../src/core/routing/usage-option-refusals.ts'
import type { Journal } from '../../../src/journal/journal.ts'
import type { ResponseToStore } from '../../../src/postgres/requests/stored-responses.ts'
import type { LongBodyWork } from '../../../src/protocols/body-work.ts'
import type { CallTrace } from '../../../src/telemetry/call-trace.ts'
import type { UpstreamCall, UpstreamHandler } from '../../../src/upstream/client.ts'
import type { ReservationChanges } from '../precharge.ts'
import type { LateUsage } from './after-answer.ts'
import type { FetchFiles, UpstreamCallRequest } from './attempt-request.ts'
import type { SilenceWatch } from './stream-answer.ts'

/** Sends a call. The handler's methods are called later, with its answer or its failure. Aborting it closes the upstream connection. */
type CallUpstream = (
  request: UpstreamCallRequest,
  handler: UpstreamHandler,
  /** Default: that of the channel's chat. */
  adapter?: ChannelAdapter,
) => UpstreamCall

export interface Forwarding extends ReservationChanges, LongBodyWork {
  readonly journal: Pick<Journal, 'admit' | 'settle'>
  readonly callUpstream: CallUpstream
  readonly fetchFiles: FetchFiles
  /** Tries after the first. */
  readonly retries: () => number
  readonly retryBudget: RetryBudget
  /** Returns a number in [0, 1); `Math.random` where it is absent. */
  readonly random?: () => number
  readonly health: ChannelHealth
  /** Notes a response that its upstream keeps. Never rejects. */
  readonly storeResponse: (response: ResponseToStore) => Promise<void>
  /** Called with each settlement, for metrics and traces. Must not throw. */
  readonly onSettled: (settlement: Settlement, oddities: Oddities, upstreamModel: string) => void
  /** Called when a call is admitted, and when it is over. */
  readonly onInFlight: (change: 1 | -1) => void
  /** Null where no traces are exported. */
  readonly startTrace: ((traceparent: string) => CallTrace) | null
  readonly usageOptionRefusals: UsageOptionRefusals
  readonly config: () => Pick<ConfigFile, 'keep_alive_seconds' | 'after_client_leaves'>
  readonly outputRates: OutputRates
  readonly silence: SilenceWatch
  readonly lateUsage: LateUsage
}
