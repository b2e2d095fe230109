/** Every media adapter by the name that a channel's `protocol` has for it. */
import type { ChannelProtocol, MEDIA_ADAPTERS } from '../../../schemas/config/catalog.ts'
import type { MediaWork } from '../../../schemas/media/job.ts'
import { arkImages } from '../providers/ark/images.ts'
import { arkVideo } from '../providers/ark/video.ts'
import { elevenlabs, elevenlabsVoices } from '../providers/elevenlabs/elevenlabs.ts'
import { fal } from '../providers/fal/fal.ts'
import { veo } from '../providers/gemini/veo.ts'
import { kling } from '../providers/kling/kling.ts'
import { minimaxImages } from '../providers/minimax/images.ts'
import { minimaxMusic } from '../providers/minimax/music.ts'
import { minimaxSpeech } from '../providers/minimax/speech.ts'
import { minimaxVideo } from '../providers/minimax/video.ts'
import { openaiImages } from '../providers/openai/images.ts'
import { OPENAI_VOICES, openaiSpeech } from '../providers/openai/speech.ts'
import { dashscope } from '../providers/qwen/dashscope.ts'
import { replicate } from '../providers/replicate/replicate.ts'
import { runway } from '../providers/runway/runway.ts'
import { suno } from '../providers/suno/suno.ts'
import type { MediaAdapter } from './adapter.ts'
import { taskPresets } from './task/catalogue.ts'
import { task } from './task/task.ts'
import type { Preset, PresetKind, PresetSource } from './voices-and-avatars.ts'

export type MediaProtocol = (typeof MEDIA_ADAPTERS)[number]

export const MEDIA_CHANNELS: Readonly<Record<MediaProtocol, MediaAdapter>> = {
  'openai-images': openaiImages,
  'ark-images': arkImages,
  'ark-video': arkVideo,
  'openai-speech': openaiSpeech,
  elevenlabs,
  suno,
  fal,
  replicate,
  kling,
  veo,
  'minimax-images': minimaxImages,
  'minimax-video': minimaxVideo,
  'minimax-speech': minimaxSpeech,
  'minimax-music': minimaxMusic,
  dashscope,
  runway,
  task,
}

const isMedia = (protocol: string): protocol is MediaProtocol => Object.hasOwn(MEDIA_CHANNELS, protocol)

/** Returns the adapter of a protocol; null for the protocols of chat. */
export const mediaAdapterOf = (protocol: string): MediaAdapter | null =>
  isMedia(protocol) ? MEDIA_CHANNELS[protocol] : null

/** Returns the kinds of work of a channel's protocol; none for chat protocols. */
export const worksOf = (protocol: string): readonly MediaWork[] => mediaAdapterOf(protocol)?.works ?? []

/** Source of the presets of a kind: built in, listed by the upstream, or none. */
type PresetPlace =
  | { readonly type: 'known'; readonly presets: readonly Preset[] }
  | { readonly type: 'asked'; readonly source: PresetSource }

const VOICES_AND_AVATARS: Partial<Record<ChannelProtocol, Partial<Record<PresetKind, PresetPlace>>>> = {
  'openai-speech': { voice: { type: 'known', presets: OPENAI_VOICES } },
  elevenlabs: { voice: { type: 'asked', source: elevenlabsVoices } },
  task: {
    avatar: { type: 'asked', source: taskPresets('avatar') },
    voice: { type: 'asked', source: taskPresets('voice') },
  },
}

/** Returns the source of presets. Null: the protocol has none of the kind. */
export const presetsOf = (protocol: string, kind: PresetKind): PresetPlace | null =>
  isMedia(protocol) ? (VOICES_AND_AVATARS[protocol]?.[kind] ?? null) : null
