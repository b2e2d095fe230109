/** Operations of channels: what the processes report of them, and what operators set them to. */
import type { ChannelEntry, Strategy } from '../../../schemas/config/catalog.ts'
import type { ChannelHold, HeldState, ProcessReport } from '../../../schemas/config/channel-report.ts'
import { Failure } from '../../../schemas/failure.ts'
import * as operations from '../../../schemas/management/channels.ts'
import type { Catalog } from '../../../src/core/routing/catalog.ts'
import { hasAccess, maskAllButTail } from '../../../src/core/routing/channel-access.ts'
import { keysSeen } from '../../../src/core/routing/key-pools.ts'
import { type Context, implementWith } from '../operation.ts'
import { toWholeList } from '../page.ts'
import { joinReports } from './reports.ts'
import { callChannel, type OpenUpstream } from './test-call.ts'

export interface ChannelServices {
  readonly catalog: () => Catalog
  /** Asks every running process for its channels; null without an answer. */
  readonly processReports: () => Promise<readonly ProcessReport[] | null>
  readonly openUpstream: OpenUpstream
}

const implement = implementWith<ChannelServices>()

/** @throws Failure `not_found` */
export function findChannel({ catalog }: ChannelServices, id: string): ChannelEntry {
  const found = catalog().channels.find((channel) => channel.id === id)
  if (found === undefined) throw new Failure('not_found', `The configuration has no channel ${id}.`)
  return found
}

/** Returns the greatest value that is there; null without one. */
const findGreatest = (values: readonly (number | null)[]): number | null =>
  values.reduce((most, value) => (value !== null && (most === null || value > most) ? value : most), null)

interface Seen {
  /** Null where no process answers. */
  readonly processes: readonly ProcessReport[] | null
  readonly holds: readonly ChannelHold[]
  readonly openTasks: ReadonlyMap<string, number>
}

/** Returns the orders in which the channel is chosen among its equals, each once: models may differ in it. */
function listStrategies(catalog: Catalog, { models }: ChannelEntry): Strategy[] {
  const strategies = Object.keys(models).flatMap((name) => catalog.resolve(name)?.strategy ?? [])
  return [...new Set(strategies)].sort()
}

/** Joins what every process reports of a channel. */
function channelShape(
  { catalog }: ChannelServices,
  channel: ChannelEntry,
  { processes, holds, openTasks }: Seen,
) {
  const { id, protocol, base_url, models, priority, weight } = channel
  const { located, reports, joined } = joinReports(processes, id)
  const hold = holds.find((held) => held.id === id)
  const { in_flight, recent_attempts: attempts, recent_failures: failures } = joined
  const open = openTasks.get(id) ?? 0
  return {
    ...joined,
    id,
    provider: channel.provider ?? null,
    protocol,
    base_url,
    models,
    priority,
    weight,
    strategies: listStrategies(catalog(), channel),
    keys: keysSeen(channel.api_keys.map(maskAllButTail), reports),
    configured: hasAccess(channel),
    state: hold?.state ?? ('active' as const),
    held_by: hold?.createdBy ?? null,
    held_since: hold?.createdAt.toISOString() ?? null,
    drained: hold?.state === 'draining' && processes !== null && in_flight === 0 && open === 0,
    open_tasks: open,
    error_rate: attempts === 0 ? null : failures / attempts,
    latency_p50_ms: findGreatest(reports.map(({ latency_p50_ms }) => latency_p50_ms)),
    latency_p99_ms: findGreatest(reports.map(({ latency_p99_ms }) => latency_p99_ms)),
    processes: located.map(({ process, report: { channel: _, ...report } }) => ({ ...process, ...report })),
  }
}

async function look({ database }: Context, { processReports }: ChannelServices): Promise<Seen> {
  const [processes, holds, openTasks] = await Promise.all([
    processReports(),
    database.channels.listHolds(),
    database.channels.countTasks(),
  ])
  return { processes, holds, openTasks }
}

async function hold(context: Context, services: ChannelServices, id: string, state: HeldState) {
  const channel = findChannel(services, id)
  await context.write((writing) => writing.channels.hold(id, state))
  return channelShape(services, channel, await look(context, services))
}

export const channelOperations = [
  implement(operations.listChannels, async (context, _, services) => {
    const seen = await look(context, services)
    const data = services.catalog().channels.map((channel) => channelShape(services, channel, seen))
    return toWholeList(data)
  }),
  implement(operations.showChannel, async (context, { id }, services) =>
    channelShape(services, findChannel(services, id), await look(context, services)),
  ),
  implement(operations.pauseChannel, (context, { id }, services) => hold(context, services, id, 'paused')),
  implement(operations.drainChannel, (context, { id }, services) => hold(context, services, id, 'draining')),
  implement(operations.resumeChannel, async (context, { id }, services) => {
    const channel = findChannel(services, id)
    await context.write((writing) => writing.channels.resume(id))
    return channelShape(services, channel, await look(context, services))
  }),
  implement(operations.testChannel, async ({ write, now }, { id, model }, services) => {
    const channel = findChannel(services, id)
    const { catalog, openUpstream } = services
    return callChannel(openUpstream, {
      channel,
      name: model,
      catalog: catalog(),
      now,
      // Before the call: it costs money, and the record has whatever may have been sent.
      onCall: (sent) => write((writing) => writing.channels.recordTest(id, sent)),
    })
  }),
]
