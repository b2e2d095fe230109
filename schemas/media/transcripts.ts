/** Transcripts of a video in requests and answers. See docs/api-rules.md, "Music, voices, avatars, transcripts". */
import { z } from 'zod'
import { boundText, isGiven, mediaFields } from './fields.ts'

export const TRANSCRIPT_MODEL = 'video-transcript'
export const TRANSCRIPT_URL_MAX_CHARS = 2000

const source = boundText(TRANSCRIPT_URL_MAX_CHARS, 0).nullish()

export const transcriptRequest = z
  .looseObject({
    ...mediaFields,
    url: source.describe(
      `A share link, or the text around one as an app copies it, at most ${TRANSCRIPT_URL_MAX_CHARS} characters.`,
    ),
    input: source.describe('Another name of `url`; where both are given it does not count.'),
  })
  .refine(({ url, input }) => isGiven(url) || isGiven(input), { path: ['url'], error: 'it is required' })
export type TranscriptRequest = z.infer<typeof transcriptRequest>

export const transcript = z.object({
  model: z.string(),
  content: z.string(),
  title: z.string().describe('Empty where it is not known.'),
  cover: z.string().describe('A link that opens for 24 hours; empty where there is none.'),
  platform: z.string().describe('Empty where it is not known.'),
  duration_sec: z.number().nullable(),
  origin_link: z.string().describe('Where the video is; empty where it is not known.'),
})
export type Transcript = z.infer<typeof transcript>
