/** Counts the calls that a gateway has forwarded, and logs anomalies of the answers. */

import type { Settlement } from '../../../schemas/call-log/columns.ts'
import type { Oddities } from '../../core/call-log/call-detail.ts'
import type { LogOutput } from '../../telemetry/log.ts'
import { type Metrics, toObservation } from '../../telemetry/metrics.ts'

/** Pairs of requested and answering models that are remembered, so that each is logged once. */
const MAX_LOGGED_MODELS = 1_000

type CountSettled = (settlement: Settlement, oddities: Oddities, upstreamModel: string) => void

export function countSettled(metrics: Metrics, log: Pick<LogOutput, 'warn'>): CountSettled {
  const logged = new Set<string>()

  const logModel = (channel: string, asked: string, answered: string) => {
    const pair = `${channel}\n${asked}\n${answered}`
    if (logged.has(pair) || logged.size >= MAX_LOGGED_MODELS) return
    logged.add(pair)
    log.warn({ channel, asked, answered }, 'Upstream answered with another model than was requested')
  }

  return (settlement, { suspect, otherModel }, upstreamModel) => {
    const { model, channel_id, request_id, usage_source } = settlement
    metrics.call(toObservation(settlement, model))
    const channel = channel_id ?? ''
    metrics.metering.metered({
      channel,
      model,
      source: usage_source,
      isSuspect: suspect !== '',
      isOtherModel: otherModel !== '',
      inputTokens: settlement.input_tokens,
      cachedTokens: settlement.cached_tokens,
    })
    if (suspect !== '')
      log.warn(
        { request_id, channel, model, counts: suspect },
        'Upstream reported usage that no call can have: it is charged at the bound',
      )
    if (otherModel !== '') logModel(channel, upstreamModel, otherModel)
  }
}
