/** A body that nests too deep is a 400 at every endpoint, before anything goes through it level by level. */
import t from 'tap'
import type { ZodType } from 'zod'
import { readGeneration } from '../../../pipelines/media/images/request.ts'
import { VIDEO_BODY } from '../../../pipelines/media/videos/jobs.ts'
import { avatarRequest } from '../../../schemas/media/avatars.ts'
import { clipSubtitleRequest } from '../../../schemas/media/clips.ts'
import { modelNamed } from '../../../schemas/media/fields.ts'
import { imageEditRequest } from '../../../schemas/media/images.ts'
import { musicRequest } from '../../../schemas/media/music.ts'
import { speechRequest } from '../../../schemas/media/speech.ts'
import { transcriptRequest } from '../../../schemas/media/transcripts.ts'
import { videoRequest } from '../../../schemas/media/videos.ts'
import { voiceRequest } from '../../../schemas/media/voices.ts'
import { jsonIn } from '../../../src/channels/media/answer.ts'
import { MAX_JSON_LEVELS } from '../../../src/core/json/exact.ts'
import { readAgentRequest } from '../../../src/protocols/chat-completions/agent-body.ts'
import { readChatCall } from '../../../src/protocols/chat-completions/dialect.ts'
import { generateContentDialect } from '../../../src/protocols/generate-content/dialect.ts'
import { messagesDialect } from '../../../src/protocols/messages/dialect.ts'
import { readJsonBody } from '../../../src/protocols/request/client-json.ts'
import { responsesDialect } from '../../../src/protocols/responses/dialect.ts'

const USUAL = `"model":"m","prompt":"A mill","max_tokens":1,"input":"hi",
  "messages":[{"role":"user","content":"hi"}],"contents":[{"parts":[{"text":"hi"}]}]`

/** One level is the body itself. */
const nested = (levels: number, open = '[', close = ']') =>
  Buffer.from(`{${USUAL},"x":${open.repeat(levels - 1)}${close.repeat(levels - 1)}}`)

const schemas: Readonly<Record<string, ZodType>> = {
  imageEditRequest,
  avatarRequest,
  clipSubtitleRequest,
  musicRequest,
  speechRequest,
  transcriptRequest,
  voiceRequest,
}
const READERS: Readonly<Record<string, (body: Buffer) => unknown>> = {
  chat: readChatCall,
  agents: readAgentRequest,
  messages: (body) => messagesDialect.read({ path: '/v1/messages', query: '', body }),
  count: (body) => messagesDialect.read({ path: '/v1/messages/count_tokens', query: '', body }),
  // Here a prompt is one that the upstream has stored, and is refused.
  responses: (body) =>
    responsesDialect.read({
      path: '/v1/responses',
      query: '',
      body: Buffer.from(body.toString().replace('"prompt":"A mill",', '')),
    }),
  contents: (body) =>
    generateContentDialect.read({ path: '/v1beta/models/m:generateContent', query: '', body }),
  images: (body) => readGeneration({ body }),
  videos: (body) => readJsonBody(videoRequest, body, VIDEO_BODY),
  anyVideo: (body) => readJsonBody(modelNamed, body, VIDEO_BODY),
  ...Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, (body: Buffer) => readJsonBody(schema, body)]),
  ),
}
/** Whose contract the usual body keeps. */
const TAKES_IT = [
  'chat',
  'agents',
  'messages',
  'count',
  'responses',
  'contents',
  'images',
  'videos',
  'anyVideo',
]

for (const [name, read] of Object.entries(READERS))
  t.test(name, async (t) => {
    const tooDeep = { code: 'invalid_request', status: 400, message: /deeper than 512 levels/ }
    t.throws(() => read(nested(MAX_JSON_LEVELS + 1)), tooDeep)
    t.throws(() => read(nested(2500, '{"a":', '}')), tooDeep)
    t.throws(() => read(nested(1_000_000)), tooDeep)
    if (TAKES_IT.includes(name)) t.doesNotThrow(() => read(nested(MAX_JSON_LEVELS)))
  })

t.test('an upstream answer that nests too deep is no JSON', async (t) => {
  const answer = (levels: number) => ({
    status: 200,
    headers: new Map(),
    body: Buffer.from(`{"data":${'['.repeat(levels)}${']'.repeat(levels)}}`),
  })
  t.equal(jsonIn(answer(3000) as unknown as Parameters<typeof jsonIn>[0]), undefined)
  t.not(jsonIn(answer(300) as unknown as Parameters<typeof jsonIn>[0]), undefined)
})
