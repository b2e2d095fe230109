/**
 * Reads requests of the task contract, docs/upstream-task.md, kind by kind, and lists what they may name. Unknown fields
 * are ignored.
 */

import { z } from 'zod'
import { type OpenedRequest, openWith, type ReceivedRequest, SimulatedFailure } from '../../dialect.ts'
import { readAs } from '../../requests.ts'
import { PRESET_VOICES } from '../../world.ts'

const FILE = /^(https?:\/\/[^\s]+|data:[a-z0-9.+-]+\/[a-z0-9.+-]+;base64,[A-Za-z0-9+/]*={0,2})$/i
const MAX_ID_CHARACTERS = 200
const MAX_PORTRAITS = 7

const file = z.string().refine((text) => FILE.test(text), 'it is neither a link nor a data URI')
const text = z.string()
const seconds = z.number().positive()
const id = z.string().min(1).max(MAX_ID_CHARACTERS)
const milliseconds = z.number().min(0)
const sentence = z.object({ showRange: z.tuple([milliseconds, milliseconds]), content: z.string().min(1) })
const extra = z.record(z.string(), z.unknown()).optional()

const image = z.object({
  prompt: text,
  n: z.int().min(1).max(10),
  size: z
    .string()
    .regex(/^\d{1,4}x\d{1,4}$/)
    .optional(),
  images: z.array(file).optional(),
  mask: file.optional(),
  extra,
})

const video = z.object({
  content: z
    .array(
      z.discriminatedUnion('type', [
        z.object({ type: z.literal('text'), text }),
        z.object({ type: z.literal('image'), file, role: text.optional() }),
        z.object({ type: z.literal('video'), file, role: text.optional() }),
      ]),
    )
    .min(1),
  duration: seconds.optional(),
  resolution: text.optional(),
  ratio: text.optional(),
  seed: z.int().optional(),
  fps: z.int().optional(),
  watermark: z.boolean().optional(),
  camera_fixed: z.boolean().optional(),
  generate_audio: z.boolean().optional(),
  extra,
})

const INPUTS = {
  transcript: z.object({ url: z.string().min(1) }),
  avatar: z.object({ name: z.string().min(1), source: file, source_kind: z.enum(['image', 'video']) }),
  avatar_video: z
    .object({
      avatar: id,
      audio: file.optional(),
      voice: id.optional(),
      text: z.string().min(1).optional(),
      duration: seconds,
    })
    .refine(
      (input) => (input.audio === undefined) === (input.voice !== undefined && input.text !== undefined),
      'either audio, or voice and text',
    ),
  lipsync: z.object({ source_video: file, audio: file, duration: seconds }),
  motion: z.object({
    source_video: file,
    portraits: z.array(file).min(1).max(MAX_PORTRAITS),
    face_count: z.int().min(1).max(MAX_PORTRAITS),
    resolution: z.enum(['fast', 'standard', 'max']),
    duration: seconds,
  }),
  subtitle: z.object({ video: file }),
  clip_compose: z.object({
    video: file,
    asr_id: id,
    video_style_id: id.optional(),
    enable_title_effect: z.boolean(),
    enable_caption_effect: z.boolean(),
    enable_keyword_effect: z.boolean(),
    title: text.optional(),
    music: file.optional(),
    name_card: z.object({ name: text, description: text }).optional(),
    sentences: z.array(sentence).optional(),
    pip_config: z
      .array(z.object({ media: file, begin_time: milliseconds, end_time: milliseconds }))
      .optional(),
  }),
  video,
  music: z
    .object({
      prompt: text.optional(),
      lyrics: text.optional(),
      title: text.optional(),
      tags: text.optional(),
      negative_tags: text.optional(),
      instrumental: z.boolean(),
    })
    .refine((input) => input.prompt === undefined || input.lyrics === undefined, 'prompt or lyrics, not both')
    .refine(
      (input) => input.instrumental || input.prompt !== undefined || input.lyrics !== undefined,
      'neither prompt nor lyrics',
    ),
  voice: z.object({ name: z.string().min(1), audio: file }),
  speech: z.object({ input: z.string().min(1), voice: id.optional(), speed: z.number().positive() }),
  image,
  image_edit: image.extend({ images: z.array(file).min(1) }),
} as const

type TaskKind = keyof typeof INPUTS
export type InputOf<Kind extends TaskKind> = z.infer<(typeof INPUTS)[Kind]>
export type TaskInput = { [Kind in TaskKind]: { kind: Kind; input: InputOf<Kind> } }[TaskKind]

const request = z.object({
  reference: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  kind: z.enum(Object.keys(INPUTS) as [TaskKind, ...TaskKind[]]),
  model: z.string().min(1),
  input: z.record(z.string(), z.unknown()),
})

export type TaskRequest = TaskInput & { readonly reference: string; readonly model: string }

/** @throws {SimulatedFailure} 400 */
export function readTaskRequest(body: Record<string, unknown>): TaskRequest {
  const { reference, kind, model, input } = readAs(request, body)
  const read = { reference, model, kind, input: readAs(INPUTS[kind], input, 'input') } as TaskRequest
  if (read.kind === 'clip_compose') refuseEmptyTimes(read.input)
  return read
}

function refuseEmptyTimes({ pip_config = [] }: InputOf<'clip_compose'>): void {
  const at = pip_config.findIndex(({ begin_time, end_time }) => end_time <= begin_time)
  if (at < 0) return
  const param = `input.pip_config.${at}.end_time`
  throw new SimulatedFailure(400, 'invalid_request', `${param}: it is not after begin_time.`, { param })
}

export const PRESET_AVATARS = [
  { id: 'sim-face-mei', name: 'Mei' },
  { id: 'sim-face-jon', name: 'Jon' },
  { id: 'sim-face-noor', name: 'Noor' },
] as const

const CATEGORIES = [
  { cate_id: 'sim-cate-talk', cate_name: 'Talk', sort: 1 },
  { cate_id: 'sim-cate-food', cate_name: 'Food', sort: 2 },
] as const

const STYLES = [
  { style_id: 'sim-style-bold', name: 'Bold', scene: 'vertical', category: CATEGORIES[0] },
  { style_id: 'sim-style-quiet', name: 'Quiet', scene: 'horizontal', category: CATEGORIES[0] },
  { style_id: 'sim-style-crust', name: 'Crust', scene: 'vertical', category: CATEGORIES[1] },
] as const

const COVER = { kind: 'png', widthPixels: 270, heightPixels: 480 } as const
const DEMO = { kind: 'mp4', widthPixels: 270, heightPixels: 480, seconds: 3 } as const

export function isTemplate(id: string): boolean {
  return STYLES.some((style) => style.style_id === id)
}

export function openPresets(request: ReceivedRequest): OpenedRequest {
  const kind = request.query.get('kind')
  if (kind !== 'avatar' && kind !== 'voice')
    throw new SimulatedFailure(400, 'invalid_request', 'kind: it is avatar or voice.', { param: 'kind' })
  const voices = PRESET_VOICES.map(({ id, name }) => ({ id, name }))
  return openWith({ presets: kind === 'avatar' ? PRESET_AVATARS : voices })
}

export function openTemplates({ query, world, origin }: ReceivedRequest): OpenedRequest {
  const category = query.get('cate_id')
  const shown = STYLES.filter((style) => category === null || style.category.cate_id === category)
  const list = shown.map(({ style_id, name, scene, category: { cate_name } }, index) => {
    const options = { origin, name: style_id, directives: {} }
    const cover_url = world.files.link({ ...COVER, seed: index }, options)
    const demo_url = world.files.link({ ...DEMO }, options)
    return { style_id, name, cover_url, demo_url, cate_name, scene }
  })
  return openWith({ list })
}

export function openCategories(): OpenedRequest {
  return openWith({ list: CATEGORIES })
}
