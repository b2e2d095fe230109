/** Every media adapter by the name that a channel's `protocol` has for it: those of the providers, and our own contract. */
import type { MediaWork } from '../../../schemas/media/job.ts'
import { PROVIDERS } from '../providers/presets.ts'
import type { MediaAdapter, PresetKind, PresetPlace } from './adapter.ts'
import { task } from './task/task.ts'

export const MEDIA_CHANNELS: Readonly<Record<string, MediaAdapter>> = Object.assign(
  {},
  ...Object.values(PROVIDERS).map(({ media }) => media),
  { task },
)

export const MEDIA_PROTOCOLS: readonly string[] = Object.keys(MEDIA_CHANNELS)

/** Returns the adapter of a protocol; null for the protocols of chat. */
export const findMediaAdapter = (protocol: string): MediaAdapter | null =>
  Object.hasOwn(MEDIA_CHANNELS, protocol) ? MEDIA_CHANNELS[protocol]! : null

/** Returns the kinds of work of a channel's protocol; none for chat protocols. */
export const listWorks = (protocol: string): readonly MediaWork[] => findMediaAdapter(protocol)?.works ?? []

/** Returns the source of presets. Null: the protocol has none of the kind. */
export const findPresets = (protocol: string, kind: PresetKind): PresetPlace | null =>
  findMediaAdapter(protocol)?.presets?.[kind] ?? null
