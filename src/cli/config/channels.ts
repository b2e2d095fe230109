/**
 * `tollgate channels`: each channel with its state in the running processes, and whether its host takes connections.
 */
import { joinReports } from '../../../pipelines/management/channels/reports.ts'
import type { ProcessReport } from '../../../schemas/config/channel-report.ts'
import { keysSeen } from '../../core/routing/key-pools.ts'
import { answerTable, type Command, type Context } from '../context.ts'
import type { JsonObject } from '../output.ts'
import type { ChannelHealth } from '../wiring.ts'

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

/** Joins one channel's reports. `state` is null, as the breaker, where no process answers. */
function channelView(channel: ChannelHealth, processes: readonly ProcessReport[] | null): JsonObject {
  const { located, reports, joined } = joinReports(processes, channel.id)
  const { last_error: last, ...sums } = joined
  const held = reports.find(({ state }) => state !== 'active')
  return {
    ...channel,
    models: [...channel.models],
    keys: keysSeen(channel.keys, reports).map((key): JsonObject => ({ ...key })),
    state: joined.breaker === null ? null : (held?.state ?? 'active'),
    ...sums,
    last_error: last && `${last.code}: ${last.message}`,
    last_error_at: last?.at ?? null,
    // Where breakers differ, an operator needs the process of each.
    processes: located.map(({ process: { process, pid, host }, report: { channel: _, ...report } }) => ({
      process,
      pid,
      host,
      ...report,
    })),
  }
}

/** Returns each key by its place and its end, and until when it rests. A channel lists its keys where it has several. */
const keyTexts = (channel: ChannelHealth, processes: readonly ProcessReport[] | null): string | string[] =>
  channel.keys.length === 0
    ? 'one'
    : keysSeen(channel.keys, joinReports(processes, channel.id).reports).map(
        ({ position, tail, resting_until: until }) =>
          `${position}:${tail}${until === null ? '' : ` rests until ${until}`}`,
      )

export function addChannelsCommand(program: Command, { wiring }: Context): void {
  // By itself `channels` lists.
  program
    .group('channels')
    .command('list', { isDefault: true })
    .description(
      'each channel: its state and circuit breaker, attempts and failures of the last five minutes, its last error',
    )
    .example('channels list')
    .answers(async () => {
      const [channels, processes] = await Promise.all([wiring.channelHealth(), wiring.processReports()])
      const views = channels.map((channel) => channelView(channel, processes))
      return answerTable(
        views,
        FIELDS,
        views.map((view, index) => ({ ...view, keys: keyTexts(channels[index]!, processes) })),
      )
    })
}
