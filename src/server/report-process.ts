/** Reports what a process knows of itself and of its channels, to those who survey all processes. */
import { hostname } from 'node:os'
import { CHANNEL_REPORT_SUBJECT, type ProcessReport } from '../../schemas/config/channel-report.ts'
import { redact } from '../core/call-log/redact.ts'
import type { Catalog } from '../core/routing/catalog.ts'
import { listChannelSecrets } from '../core/routing/channel-access.ts'
import type { ChannelHealth } from '../core/routing/circuit-breaker.ts'
import type { Nats } from '../nats/nats.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { VERSION } from './version.ts'

const MS_PER_SECOND = 1000
const ENGINE_UP = 'tollgate_engine_up'

export interface ReportedChannels {
  readonly health: ChannelHealth
  readonly catalog: () => Catalog
}

interface ReportedProcess {
  /** `gateway 0`, `settler+tasks`, `settler`, `tasks`. */
  readonly process: string
  readonly nats: Pick<Nats, 'answer'>
  readonly metrics: Pick<Metrics, 'readings'>
  /** null: the process calls no channel. */
  readonly channels: ReportedChannels | null
}

/** Returns the reports of the configuration's channels. A breaker of another would stay as it is: nothing probes it. */
function readReports({ health, catalog }: ReportedChannels): ReturnType<ChannelHealth['listReports']> {
  const configured = new Set(catalog().channels.map(({ id }) => id))
  return health.listReports().filter(({ channel }) => configured.has(channel))
}

/** Shows the channels of this process in its metrics. */
export function showChannels(metrics: Pick<Metrics, 'channels'>, channels: ReportedChannels): void {
  metrics.channels(() =>
    readReports(channels).map(({ channel, state, breaker, in_flight: inFlight, keys }) => ({
      channel,
      state,
      breaker,
      inFlight,
      totals: channels.health.listActivity().get(channel)!.totals,
      keys: keys.map(({ position, resting_until }) => ({ position, isResting: resting_until !== null })),
    })),
  )
}

/** Answers surveys by NATS, until the connection is closed. */
export function reportProcess({ process: name, nats, metrics, channels }: ReportedProcess): void {
  const startedAt = new Date(Date.now() - process.uptime() * MS_PER_SECOND).toISOString()
  nats.answer(CHANNEL_REPORT_SUBJECT, () => {
    const readings = metrics.readings()
    const report: ProcessReport = {
      process: name,
      pid: process.pid,
      host: hostname(),
      version: VERSION,
      started_at: startedAt,
      engines: Object.fromEntries(
        readings
          .filter((reading) => reading.name === ENGINE_UP)
          .map(({ labels, value }) => [labels.engine, value === 1]),
      ),
      gauges: Object.fromEntries(
        readings
          .filter(({ labels }) => Object.keys(labels).length === 0)
          .map((reading) => [reading.name, reading.value]),
      ),
      channels: channels === null ? [] : reportChannels(channels),
    }
    return JSON.stringify(report)
  })
}

function reportChannels(channels: ReportedChannels): ProcessReport['channels'] {
  const secrets = channels.catalog().channels.flatMap(listChannelSecrets)
  return readReports(channels).map((channel) => ({
    ...channel,
    last_error: channel.last_error && {
      ...channel.last_error,
      message: redact(channel.last_error.message, [], secrets),
    },
  }))
}
