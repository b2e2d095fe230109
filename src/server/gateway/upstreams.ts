/** The ways from a gateway process to its upstreams: calls of chat, channels and their health, tasks. */
import { Observable, share } from 'rxjs'
import type { UpstreamCallRequest } from '../../../pipelines/chat/forward/attempt-request.ts'
import { decodeSettlements } from '../../../pipelines/settlement/messages.ts'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import { SETTLEMENT_SUBJECT } from '../../../schemas/events/event.ts'
import { ChannelHealth } from '../../core/routing/circuit-breaker.ts'
import { UsageOptionRefusals } from '../../core/routing/usage-option-refusals.ts'
import type { Nats } from '../../nats/nats.ts'
import { UpstreamClient } from '../../upstream/client.ts'
import { openAuthorizers } from '../channels/authorizers.ts'
import { watchChannelHolds } from '../channels/holds.ts'
import { openUpstreamCalls } from '../channels/upstream-calls.ts'
import type { Boot } from '../messages.ts'
import { processReports } from '../process-reports.ts'
import { reportProcess, showChannels } from '../report-process.ts'
import type { Engines, Tools } from './engines.ts'
import { openGatewayTasks } from './tasks.ts'

export type Upstreams = Awaited<ReturnType<typeof openUpstreams>>

export async function openUpstreams(boot: Boot, { log, metrics, configuration }: Tools, engines: Engines) {
  const { database, credentials, files } = engines
  const health = new ChannelHealth()
  const stopHolds = await watchChannelHolds({ database, configuration, health, log })
  const usageOptionRefusals = new UsageOptionRefusals(({ channel, upstreamModel }) =>
    log.warn(
      { channel: channel.id, upstream_model: upstreamModel },
      'Upstream refuses stream_options: for ten minutes its streams are called without it, and billed by estimate where it reports no usage',
    ),
  )
  metrics.observe('tollgate_usage_option_refusals', () => usageOptionRefusals.count())
  const upstream = new UpstreamClient({
    onHandlerError: (error) => log.error({ err: error }, 'Handler of an upstream answer threw'),
  })
  const findAuthorizer = openAuthorizers(log)
  const tasks = openGatewayTasks({
    boot,
    database,
    credentials,
    store: files,
    upstream,
    findAuthorizer,
    log,
  })
  const channels = { health, catalog: configuration.current }
  showChannels(metrics, channels)
  reportProcess({ process: `gateway ${boot.index}`, nats: tasks.nats, metrics, channels })
  return {
    health,
    stopHolds,
    usageOptionRefusals,
    upstream,
    callUpstream: openUpstreamCalls(upstream, findAuthorizer),
    /** Returns the call with one of its channel's keys. */
    keyed: <C extends UpstreamCallRequest>(call: C): C => ({
      ...call,
      channel: health.keys.pick(call.channel),
    }),
    tasks,
    published: {
      settledCalls: listenForSettledCalls(tasks.nats),
      processReports: () => processReports(tasks.nats),
    },
  }
}

/** A batch that is published again comes within seconds. */
const MAX_REMEMBERED_CALLS = 20_000

/**
 * Emits the settled calls of all gateways as they are published to be booked, each once; null where some may have been
 * missed. Shared by all who subscribe; without a subscriber nothing is read.
 */
const listenForSettledCalls = (nats: Nats): Observable<Settlement | null> =>
  new Observable<Settlement | null>((listener) => {
    const seen = new Set<string>()
    return nats.listen(
      `${SETTLEMENT_SUBJECT}.*`,
      (payload) => {
        for (const call of decodeSettlements(null, payload).settlements) {
          if (seen.has(call.request_id)) continue
          seen.add(call.request_id)
          if (seen.size > MAX_REMEMBERED_CALLS) seen.delete(seen.values().next().value ?? '')
          listener.next(call)
        }
      },
      () => listener.next(null),
    )
  }).pipe(share())
