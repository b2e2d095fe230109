/** `POST /v1/audio/transcriptions` in OpenAI's public shape. */

import { z } from 'zod'
import { findNamedModel, requireBearer } from '../../access.ts'
import type { Frame } from '../../answers/sse.ts'
import {
  type Answer,
  type Dialect,
  eventStream,
  failuresAs,
  jsonAnswer,
  type OpenedRequest,
  type ReceivedRequest,
  SimulatedFailure,
} from '../../dialect.ts'
import type { Directives } from '../../directives/grammar.ts'
import { readAs } from '../../requests.ts'
import { directivesInTexts } from '../../tasks/work.ts'
import { errorBody } from '../chat-completions/error.ts'

const NO_KEY = 'Incorrect API key provided: sim-*****key.'
const USUAL_TEXT = 'The river runs north.'
const USUAL_SECONDS = 7

export const openaiTranscriptions: Dialect = {
  name: 'openai-transcriptions',
  endpoints: [{ method: 'POST', path: /^\/v1\/audio\/transcriptions$/, open }],
  failure: failuresAs(errorBody),
}

const request = z.strictObject({
  model: z.string().min(1),
  language: z.string().optional(),
  prompt: z.string().optional(),
  response_format: z.enum(['json', 'text', 'srt', 'verbose_json', 'vtt']).default('json'),
  temperature: z.coerce.number().min(0).max(1).optional(),
  stream: z.enum(['true', 'false']).default('false'),
  'timestamp_granularities[]': z.string().optional(),
  'include[]': z.string().optional(),
})
type Asked = z.infer<typeof request>

function open({ headers, form: readForm }: ReceivedRequest): OpenedRequest {
  requireBearer(headers, NO_KEY)
  const form = readForm()
  const asked = readAs(request, form.fields())
  const [file, ...others] = form.files('file')
  if (file === undefined || others.length > 0 || file.data.length === 0)
    throw new SimulatedFailure(400, 'invalid_request', 'One file is required.', { param: 'file' })
  const { directives } = findNamedModel(asked.model, (name) => `The model '${name}' does not exist.`)
  return {
    model: asked.model,
    stream: asked.stream === 'true',
    directives: [directives, asked.prompt === undefined ? null : directivesInTexts(asked.prompt)],
    answer: (merged) => answer(asked, merged),
  }
}

function answer({ response_format: format, stream }: Asked, directives: Directives): Answer {
  const text = directives.text ?? USUAL_TEXT
  const seconds = directives.seconds ?? USUAL_SECONDS
  const usage = makeUsage(seconds, directives)
  if (stream === 'true') return eventStream(makeFrames(text, usage))
  if (format === 'json') return jsonAnswer(200, { text, ...usage })
  if (format === 'verbose_json') {
    const duration = directives.no_seconds === true ? {} : { duration: seconds }
    return jsonAnswer(200, { task: 'transcribe', language: 'english', text, segments: [], ...duration })
  }
  const cue = '00:00:00.000 --> 00:00:07.000'
  const body =
    format === 'vtt'
      ? `WEBVTT\n\n${cue}\n${text}\n`
      : format === 'srt'
        ? `1\n${cue.replaceAll('.', ',')}\n${text}\n`
        : `${text}\n`
  return {
    kind: 'whole',
    status: 200,
    headers: { 'content-type': 'text/plain; charset=utf-8' },
    body,
    tokens: 0,
  }
}

/** Seconds, as `whisper` models report; tokens as those do that `prompt_tokens` is given for. */
function makeUsage(seconds: number, { no_seconds, prompt_tokens: input }: Directives): object {
  if (input !== undefined)
    return { usage: { type: 'tokens', input_tokens: input, output_tokens: 5, total_tokens: input + 5 } }
  return no_seconds === true ? {} : { usage: { type: 'duration', seconds } }
}

function* makeFrames(text: string, usage: object): Iterator<Frame, void> {
  for (const delta of text.match(/\s*\S+/g) ?? [])
    yield { data: JSON.stringify({ type: 'transcript.text.delta', delta }), tokens: 1 }
  const done = { type: 'transcript.text.done', text, ...usage }
  yield { data: JSON.stringify(done), tokens: 0, terminator: true }
}
