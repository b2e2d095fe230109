/**
 * Finds avatars and voices by the client's id: the account's own that are ready, and presets. Only the channels that
 * have one can use it. See docs/api-rules.md, "Digital humans" and "Music, voices, avatars, transcripts".
 */
import type { ChannelEntry } from '../../schemas/config/catalog.ts'
import { Failure } from '../../schemas/failure.ts'
import { TASK_RULES } from '../../schemas/tasks/task.ts'
import type { PresetKind } from '../../src/channels/media/adapter.ts'
import type { Route } from '../../src/core/routing/catalog.ts'
import { invalidField } from '../../src/protocols/request/client-json.ts'
import type { Caller } from '../calls/authenticate.ts'
import type { PresetLists } from './channel-lists.ts'
import { type TaskFinder, throwUnavailable } from './task-records.ts'

/** Where voices and avatars are found: an account's own, and the presets of channels. */
export interface MediaResources {
  readonly tasks: TaskFinder
  readonly lists: PresetLists
}

interface MediaResource {
  /** Its id at the channels. */
  readonly upstreamId: string
  /** True if it was made for the account; false for a preset. */
  readonly isOwn: boolean
  /** Routes to the channels that have it; at least one. */
  readonly routes: readonly Route[]
}

/**
 * Finds a voice or an avatar among the channels of `routes`. `field` is the field that names it.
 * @throws Failure `invalid_request` for one that is unknown, another account's or not ready; `no_channel_available` where
 *   the channel that has it is not available; `upstream_*`, `service_unavailable`
 */
export async function resolveMediaResource(
  deps: MediaResources,
  { known }: Caller,
  kind: PresetKind,
  { field, id, routes }: { readonly field: string; readonly id: string; readonly routes: readonly Route[] },
): Promise<MediaResource> {
  const isOwn = id.startsWith(`${TASK_RULES[kind].idPrefix}_`)
  const task = isOwn ? await deps.tasks.find(known.account.id, kind, id).catch(throwUnavailable) : null
  if (task === null) return findPreset(deps, kind, field, id, routes)
  const madeId = task.result?.made_id ?? null
  if (task.state !== 'succeeded' || madeId === null) throw invalidField(field, `the ${kind} is not ready`)
  const own = routes.filter(({ channel }) => channel.id === task.channelId)
  if (own.length > 0) return { upstreamId: madeId, isOwn: true, routes: own }
  throw new Failure('no_channel_available', `No channel is available that has this ${kind}.`)
}

async function findPreset(
  { lists }: MediaResources,
  kind: PresetKind,
  field: string,
  id: string,
  routes: readonly Route[],
): Promise<MediaResource> {
  const has = async (channel: ChannelEntry) =>
    (await lists.presets(channel, kind)).some((listed) => listed.id === id)
  const answers = await Promise.allSettled(routes.map(({ channel }) => has(channel)))
  const having = routes.filter((_, index) => {
    const answer = answers[index]
    return answer?.status === 'fulfilled' && answer.value
  })
  if (having.length > 0) return { upstreamId: id, isOwn: false, routes: having }
  // A channel that did not answer might have it.
  const silent = answers.find((answer) => answer.status === 'rejected')
  if (silent !== undefined) throw silent.reason
  throw invalidField(field, `there is no such ${kind}`)
}
