/** Reports the state of a process's channels to the command line. */
import { hostname } from 'node:os'
import { CHANNEL_REPORT_SUBJECT, type ProcessReport } from '../../schemas/config/channel-report.ts'
import { redact } from '../core/call-log/redact.ts'
import type { Catalog } from '../core/routing/catalog.ts'
import type { ChannelHealth } from '../core/routing/circuit-breaker.ts'
import type { Nats } from '../nats/nats.ts'
import type { Metrics } from '../telemetry/metrics.ts'

export interface ReportedChannels {
  /** `gateway 0`, `tasks`. */
  readonly process: string
  readonly health: ChannelHealth
  readonly catalog: () => Catalog
  readonly nats: Pick<Nats, 'answer'>
  readonly metrics: Pick<Metrics, 'channels'>
}

/** Shows the channels in the metrics, and answers queries by NATS, until the connection is closed. */
export function reportChannels({ process: name, health, catalog, nats, metrics }: ReportedChannels): void {
  metrics.channels(() =>
    [...health.activity()].map(([channel, { totals }]) => ({
      channel,
      breaker: health.breaker(channel),
      totals,
    })),
  )
  nats.answer(CHANNEL_REPORT_SUBJECT, () => {
    const secrets = catalog().channels.flatMap(({ api_key, headers }) => [api_key, ...Object.values(headers)])
    const report: ProcessReport = {
      process: name,
      pid: process.pid,
      host: hostname(),
      channels: health.reports().map((channel) => ({
        ...channel,
        last_error: channel.last_error && {
          ...channel.last_error,
          message: redact(channel.last_error.message, [], secrets),
        },
      })),
    }
    return JSON.stringify(report)
  })
}
