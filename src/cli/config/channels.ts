/**
 * `tollgate channels`: each channel with its state in the running processes, and whether its host takes connections.
 * `tollgate providers`: the presets of `channels[].provider`.
 */
import { connect } from 'node:net'
import { joinReports } from '../../../pipelines/management/channels/reports.ts'
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import type { ProcessReport } from '../../../schemas/config/channel-report.ts'
import { fillPresetFields, PRESETS } from '../../channels/providers/presets.ts'
import { listProtocols } from '../../channels/providers/provider.ts'
import { hasAccess, maskAllButTail } from '../../core/routing/channel-access.ts'
import { keysSeen } from '../../core/routing/key-pools.ts'
import { answerTable, type Command, type Context } from '../context.ts'
import type { JsonObject } from '../output.ts'

const CONNECT_BOUND_MS = 3_000
const PORTS: Record<string, number> = { 'http:': 80, 'https:': 443 }

/** Joins one channel's reports. `state` is null, as the breaker, where no process answers. */
async function viewChannel(channel: ChannelEntry, processes: readonly ProcessReport[] | null) {
  const { id, provider = null, protocol, priority, weight, base_url, models } = channel
  const { located, reports, joined } = joinReports(processes, id)
  const { breaker, last_error: last, ...sums } = joined
  const isOff = !hasAccess(channel)
  const reason = isOff ? null : await reach(new URL(base_url))
  const held = reports.find(({ state }) => state !== 'active')
  return {
    id,
    health: isOff ? 'off' : reason === null ? 'reachable' : 'unreachable',
    state: breaker === null ? null : (held?.state ?? 'active'),
    breaker,
    ...sums,
    last_error: last && `${last.code}: ${last.message}`,
    last_error_at: last?.at ?? null,
    provider,
    protocol,
    priority,
    weight,
    base_url,
    models: Object.keys(models),
    keys: keysSeen(channel.api_keys.map(maskAllButTail), reports).map((key) => ({ ...key })),
    reason,
    // Where breakers differ, an operator needs the process of each.
    processes: located.map(({ process: { process, pid, host }, report: { channel: _, ...report } }) => ({
      process,
      pid,
      host,
      ...report,
    })),
  }
}

/** Connects, and sends nothing: a call might cost money. Returns null, or the reason of the failure. */
function reach({ protocol, hostname, port }: URL): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || PORTS[protocol]),
      timeout: CONNECT_BOUND_MS,
    })
    const end = (reason: string | null) => {
      socket.destroy()
      resolve(reason)
    }
    socket.once('connect', () => end(null))
    socket.once('timeout', () => end(`no connection within ${CONNECT_BOUND_MS} ms`))
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message))
  })
}

export function addChannelsCommand(program: Command, { wiring }: Context): void {
  // By itself `channels` lists.
  program
    .group('channels')
    .command('list', { isDefault: true })
    .description(
      'List the channels: state and circuit breaker, attempts and failures of the last five minutes, last error',
    )
    .example('channels list')
    .answers(async () => {
      const [channels, processes] = await Promise.all([wiring.channels(), wiring.processReports()])
      const views = await Promise.all(channels.map((channel) => viewChannel(channel, processes)))
      // A channel lists its keys where it has several.
      const shown = views.map(({ processes: _, ...view }) => ({
        ...view,
        keys: view.keys.length === 0 ? 'one' : view.keys.map(describeKey),
      }))
      return answerTable(views, shown)
    })
}

const describeKey = ({ position, tail, resting_until: until }: ReturnType<typeof keysSeen>[number]): string =>
  `${position}:${tail}${until === null ? '' : ` rests until ${until}`}`

/** Fields that a preset leaves to the default, and a base URL that is made of the channel's own fields. */
const NOT_FILLED: JsonObject = {
  base_url: "made of the channel's own fields",
  key_header: null,
  output_limit_field: null,
  quirks: [],
  keeps_responses_days: null,
  keeps_conversations: null,
}

const listPresets = (): JsonObject[] =>
  Object.entries(PRESETS).flatMap(([provider, preset]) =>
    listProtocols(preset).map((protocol): JsonObject => {
      const { quirks = [], ...filled } = fillPresetFields(preset, protocol, {})
      return { provider, title: preset.title, protocol, ...NOT_FILLED, ...filled, quirks: [...quirks] }
    }),
  )

export function addProvidersCommand(program: Command): void {
  program
    .command('providers')
    .description('List the presets of channels: what "provider" fills in, for each protocol of each')
    .example('providers')
    .answers(async () => answerTable(listPresets()))
}
