/** Avatars and voices that everybody may use, and where an upstream lists them. */
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import type { MediaAnswer, MediaRequest } from './adapter.ts'

export type PresetKind = 'avatar' | 'voice'

export interface Preset {
  readonly id: string
  readonly name: string
}

export interface PresetSource {
  request(channel: ChannelEntry): MediaRequest
  /** Returns the presets. Null: the upstream failed to answer. */
  read(answer: MediaAnswer): readonly Preset[] | null
}
