/**
 * `tollgate channels`: each channel with its state in the running processes, and whether its host takes connections.
 */
import type { Command } from 'commander'
import type { ChannelReport, ProcessReport } from '../../../schemas/config/channel-report.ts'
import { keysSeen } from '../../core/routing/key-pools.ts'
import { answers, answerTable, type Context } from '../context.ts'
import type { JsonObject } from '../output.ts'
import type { ChannelHealth } from '../wiring.ts'
import { addChannelCommands } from './channel-commands.ts'

const FIELDS = [
  'id',
  'health',
  'state',
  'breaker',
  'in_flight',
  'recent_attempts',
  'recent_failures',
  'last_error',
  'last_error_at',
  'provider',
  'protocol',
  'priority',
  'weight',
  'base_url',
  'models',
  'keys',
  'reason',
]

/** Returns the later instant; null comes first. */
const laterThan = (a: string | null, b: string | null): boolean => a !== null && (b === null || a > b)

const sum = (
  reports: readonly ChannelReport[],
  field: 'recent_attempts' | 'recent_failures' | 'in_flight',
): number => reports.reduce((total, report) => total + report[field], 0)

/** Adds the `process` of a report: where breakers differ, an operator needs it. */
const located = (
  { process, pid, host }: ProcessReport,
  { channel: _, ...report }: ChannelReport,
): JsonObject => ({
  process,
  pid,
  host,
  ...report,
})

const reportsOf = ({ id }: ChannelHealth, processes: readonly ProcessReport[] | null): ChannelReport[] =>
  (processes ?? []).flatMap(({ channels }) => channels.filter(({ channel }) => channel === id))

/**
 * Joins one channel's reports. `state` and `breaker` are null where no process reports at all; `open` where any process avoids
 * the channel, `half-open` where any tests it.
 */
export function channelView(channel: ChannelHealth, processes: readonly ProcessReport[] | null): JsonObject {
  const seen = (processes ?? []).flatMap((process) =>
    process.channels.filter((report) => report.channel === channel.id).map((report) => ({ process, report })),
  )
  const reports = seen.map(({ report }) => report)
  const has = (breaker: ChannelReport['breaker']) => reports.some((report) => report.breaker === breaker)
  const last = reports
    .map(({ last_error }) => last_error)
    .reduce((a, b) => (laterThan(b?.at ?? null, a?.at ?? null) ? b : a), null)
  const held = reports.find(({ state }) => state !== 'active')
  return {
    ...channel,
    models: [...channel.models],
    keys: keysSeen(channel.keys, reports).map((key): JsonObject => ({ ...key })),
    state: processes === null || processes.length === 0 ? null : (held?.state ?? 'active'),
    in_flight: sum(reports, 'in_flight'),
    breaker:
      processes === null || processes.length === 0
        ? null
        : has('open')
          ? 'open'
          : has('half-open')
            ? 'half-open'
            : 'closed',
    recent_attempts: sum(reports, 'recent_attempts'),
    recent_failures: sum(reports, 'recent_failures'),
    last_error: last === null ? null : `${last.code}: ${last.message}`,
    last_error_at: last?.at ?? null,
    processes: seen.map(({ process, report }) => located(process, report)),
  }
}

/** Returns each key by its place and its end, and until when it rests. A channel lists its keys where it has several. */
const keyTexts = (channel: ChannelHealth, processes: readonly ProcessReport[] | null): string | string[] =>
  channel.keys.length === 0
    ? 'one'
    : keysSeen(channel.keys, reportsOf(channel, processes)).map(
        ({ position, tail, resting_until: until }) =>
          `${position}:${tail}${until === null ? '' : ` rests until ${until}`}`,
      )

export function addChannelsCommand(program: Command, context: Context): void {
  const { wiring } = context
  const command = program.command('channels').description('upstream channels')
  addChannelCommands(command, context)
  // By itself `channels` lists.
  const list = command
    .command('list', { isDefault: true })
    .description(
      'each channel: its state and circuit breaker, attempts and failures of the last five minutes, its last error',
    )
  answers(context, list, 'channels list', async () => {
    const [channels, processes] = await Promise.all([wiring.channelHealth(), wiring.processReports()])
    const views = channels.map((channel) => channelView(channel, processes))
    return answerTable(
      views,
      FIELDS,
      views.map((view, index) => ({ ...view, keys: keyTexts(channels[index]!, processes) })),
    )
  })
}
