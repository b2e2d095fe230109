/** Avatars as clients register and read them. See docs/api-rules.md, "Music, voices, avatars, transcripts". */
import { z } from 'zod'
import { boundText, callerLink, mediaFields } from './fields.ts'

export const AVATAR_MODEL = 'dh-avatar-create'
/** The model that has the presets. */
export const AVATAR_VIDEO_MODEL = 'dh-avatar'
export const AVATAR_NAME_MAX_CHARS = 20
export const AVATAR_LIST_MAX = 200

export const avatarRequest = z.looseObject({
  ...mediaFields,
  name: boundText(AVATAR_NAME_MAX_CHARS),
  source_url: callerLink.describe('A public direct link to a picture or a video.'),
  source_kind: z.enum(['image', 'video']).nullish().describe('image where it is left out.'),
})
export type AvatarRequest = z.infer<typeof avatarRequest>

export const avatarRecord = z.object({
  id: z.string().describe('What `avatar` of a video request takes.'),
  name: z.string(),
  source_kind: z.enum(['image', 'video']),
  status: z.enum(['pending', 'ready', 'failed']),
  error: z.string().nullable(),
  created_at: z.iso.datetime(),
})
export type AvatarRecord = z.infer<typeof avatarRecord>

export const avatarList = z.object({
  object: z.literal('list'),
  avatars: z.array(avatarRecord).describe(`The newest first, up to ${AVATAR_LIST_MAX}.`),
  data: z.array(avatarRecord).describe('The same, where other lists have them.'),
  has_more: z.boolean(),
})

export const deletedRecord = z.object({ id: z.string(), deleted: z.literal(true) })

export const avatarPresets = z.object({ avatars: z.array(z.object({ id: z.string(), name: z.string() })) })
