/** A request that makes media and asks for a stream is refused: nothing would answer it as it asks. */
import t from 'tap'
import type { z } from 'zod'
import { avatarRequest } from '../../schemas/media/avatars.ts'
import { clipComposeRequest, clipSubtitleRequest } from '../../schemas/media/clips.ts'
import { imageEditRequest, imageRequest } from '../../schemas/media/images.ts'
import { musicRequest } from '../../schemas/media/music.ts'
import { speechRequest } from '../../schemas/media/speech.ts'
import { transcriptRequest } from '../../schemas/media/transcripts.ts'
import {
  avatarVideoRequest,
  lipsyncRequest,
  motionRequest,
  videoRequest,
} from '../../schemas/media/videos.ts'
import { voiceRequest } from '../../schemas/media/voices.ts'

const link = 'https://example.com/a'
const film = { model: 'm', source_video_url: link, duration: 5 }
const REQUESTS: readonly (readonly [z.ZodType, object])[] = [
  [imageRequest, { model: 'm', prompt: 'A fox.' }],
  [imageEditRequest, { model: 'm', prompt: 'A fox.', image: link }],
  [videoRequest, { model: 'm', prompt: 'A fox.' }],
  [avatarVideoRequest, { model: 'm', avatar: 'a', audio_url: link, duration: 5 }],
  [lipsyncRequest, { ...film, audio_url: link }],
  [motionRequest, { ...film, content: [{ type: 'image_url', image_url: link }] }],
  [musicRequest, { model: 'm', prompt: 'A fox.' }],
  [speechRequest, { model: 'm', input: 'A fox.' }],
  [voiceRequest, { name: 'Ada', audio_url: link }],
  [avatarRequest, { name: 'Ada', source_url: link }],
  [transcriptRequest, { url: link }],
  [clipSubtitleRequest, { video_url: link }],
  [clipComposeRequest, { model: 'm', video_url: link, asr_id: 'asr' }],
]

const issuesOf = (schema: z.ZodType, asked: object) =>
  schema.safeParse(asked).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? []

t.test('stream', async (t) => {
  for (const [schema, plain] of REQUESTS) {
    for (const stream of [undefined, null, false]) t.same(issuesOf(schema, { ...plain, stream }), [])
    t.same(issuesOf(schema, { ...plain, stream: true }), [
      'stream: media are not streamed; leave it out, the answer comes whole',
    ])
  }
})

t.test('stream_format of speech', async (t) => {
  const plain = { model: 'm', input: 'A fox.' }
  t.same(issuesOf(speechRequest, { ...plain, stream_format: 'audio' }), [])
  t.same(issuesOf(speechRequest, { ...plain, stream_format: 'sse' }), [
    "stream_format: it must be 'audio'; sound is not streamed as events",
  ])
})
