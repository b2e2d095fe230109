/**
 * Lists what channels offer everybody: preset avatars and voices, clip templates and their categories. Each list is
 * read at most once a minute; while the upstream does not answer, the last list stays. See docs/upstream-task.md,
 * "What everybody may use".
 */
import type { ChannelEntry } from '../../schemas/config/catalog.ts'
import { Failure } from '../../schemas/failure.ts'
import type { MediaAnswer, MediaRequest, Preset, PresetKind } from '../../src/channels/media/adapter.ts'
import { findPresets } from '../../src/channels/media/registry.ts'
import {
  CATALOG_TIMEOUT_MS,
  CATALOG_TTL_MS,
  type ClipCategory,
  type ClipTemplate,
  clipCategoriesRequest,
  clipTemplatesRequest,
  readClipCategories,
  readClipTemplates,
} from '../../src/channels/media/task/catalog.ts'
import { type MediaCalls, throwUnanswered } from '../tasks/ports.ts'

const MAX_LIST_BYTES = 8 * 1024 * 1024
/** Clients name the categories of templates: the cache needs a bound. */
const MAX_CACHED_LISTS = 1_000

export interface PresetLists {
  /** Returns the channel's presets of a kind; none if it has no such kind. @throws Failure `upstream_*` */
  presets(channel: ChannelEntry, kind: PresetKind): Promise<readonly Preset[]>
}

export interface TemplateLists {
  /** Returns the templates of one category, or of all. @throws Failure `upstream_*` */
  clipTemplates(channel: ChannelEntry, categoryId: string | null): Promise<readonly ClipTemplate[]>
}

export interface ChannelLists extends PresetLists, TemplateLists {
  /** @throws Failure `upstream_*` */
  clipCategories(channel: ChannelEntry): Promise<readonly ClipCategory[]>
}

interface ListedUpstreams {
  readonly calls: MediaCalls
  readonly now?: () => number
}

export function channelLists(deps: ListedUpstreams): ChannelLists {
  const presets = cacheLists<Preset>(deps)
  const templates = cacheLists<ClipTemplate>(deps)
  const categories = cacheLists<ClipCategory>(deps)
  return {
    async presets(channel, kind) {
      const place = findPresets(channel.protocol, kind)
      if (place === null) return []
      if (place.type === 'known') return place.presets
      const { source } = place
      return presets(makeKey(channel, kind), source.request(channel), source.read)
    },
    clipTemplates: (channel, categoryId) =>
      templates(
        makeKey(channel, categoryId ?? ''),
        clipTemplatesRequest(channel, categoryId),
        readClipTemplates,
      ),
    clipCategories: (channel) =>
      categories(makeKey(channel, ''), clipCategoriesRequest(channel), readClipCategories),
  }
}

/** The base URL is part of the key: a change of the configuration may lead to another upstream. */
const makeKey = ({ id, base_url }: ChannelEntry, of: string): string => JSON.stringify([id, base_url, of])

type Read<Item> = (answer: MediaAnswer) => readonly Item[] | null
type FetchList<Item> = (key: string, params: MediaRequest, read: Read<Item>) => Promise<readonly Item[]>

interface CachedList<Item> {
  /** The last list received; null before the first. */
  items: readonly Item[] | null
  freshUntil: number
  /** Concurrent requests wait for the same answer. */
  asking: Promise<readonly Item[]> | null
}

function cacheLists<Item>({ calls, now = Date.now }: ListedUpstreams): FetchList<Item> {
  const lists = new Map<string, CachedList<Item>>()
  const keepAs = (key: string): CachedList<Item> => {
    const kept = lists.get(key) ?? { items: null, freshUntil: 0, asking: null }
    if (lists.size >= MAX_CACHED_LISTS && !lists.has(key)) lists.delete(lists.keys().next().value ?? '')
    lists.set(key, kept)
    return kept
  }
  return (key, params, read) => {
    const kept = keepAs(key)
    if (kept.items !== null && now() < kept.freshUntil) return Promise.resolve(kept.items)
    kept.asking ??= fetchList(calls, params, read)
      .then((items) => {
        kept.items = items
        kept.freshUntil = now() + CATALOG_TTL_MS
        return items
      })
      .catch((error) => {
        if (kept.items === null) throw error
        return kept.items
      })
      .finally(() => {
        kept.asking = null
      })
    return kept.asking
  }
}

async function fetchList<Item>(
  calls: MediaCalls,
  params: MediaRequest,
  read: Read<Item>,
): Promise<readonly Item[]> {
  const options = { timeoutMs: CATALOG_TIMEOUT_MS, maxAnswerBytes: MAX_LIST_BYTES }
  const items = read(await calls.send(params, options).catch(throwUnanswered))
  if (items === null) throw new Failure('upstream_error', 'The upstream could not say what there is.')
  return items
}

/**
 * Merges the lists of these channels: of items with the same id the first counts. Leaves out channels that do not
 * answer, unless none does.
 */
export async function mergeLists<Item>(
  channels: readonly ChannelEntry[],
  ask: (channel: ChannelEntry) => Promise<readonly Item[]>,
  readId: (item: Item) => string,
): Promise<Item[]> {
  const answers = await Promise.allSettled(channels.map(ask))
  const lists = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
  const [first] = answers
  if (lists.length === 0 && first?.status === 'rejected') throw first.reason
  const items = new Map<string, Item>()
  for (const item of lists.flat()) if (!items.has(readId(item))) items.set(readId(item), item)
  return [...items.values()]
}
