/** The openai-speech dialect: `POST /v1/audio/speech` in OpenAI's public shape. */

import { z } from 'zod'
import { findNamedModel, requireBearer } from '../../access.ts'
import {
  type Dialect,
  failuresAs,
  type OpenedRequest,
  parseJsonObject,
  type ReceivedRequest,
} from '../../dialect.ts'
import { spokenMp3 } from '../../media/delivery.ts'
import { readAs } from '../../requests.ts'
import { answerAfterWork, directivesInTexts } from '../../tasks/work.ts'
import { errorBody } from '../chat-completions/error.ts'

const NAME = 'openai-speech'
const MODERATED = {
  message: 'Your request was rejected by the safety system: simulated.',
  code: 'content_policy_violation',
} as const
const NO_KEY = 'Incorrect API key provided: sim-*****key.'
const MAX_INPUT_CHARACTERS = 4_096
const VOICES = [
  ...['alloy', 'ash', 'ballad', 'cedar', 'coral', 'echo', 'fable', 'marin', 'nova', 'onyx', 'sage'],
  ...['shimmer', 'verse'],
] as const

export const openaiSpeech: Dialect = {
  name: NAME,
  endpoints: [{ method: 'POST', path: /^\/v1\/audio\/speech$/, open }],
  failure: failuresAs(errorBody),
}

const request = z.strictObject({
  model: z.string().min(1),
  input: z.string().min(1).max(MAX_INPUT_CHARACTERS),
  voice: z.enum(VOICES),
  response_format: z.literal('mp3', 'MP3 is all that the simulated provider speaks').optional(),
  speed: z.number().min(0.25).max(4).optional(),
  instructions: z.string().optional(),
  stream_format: z.literal('audio').optional(),
  simulate: z.unknown().optional(),
})

function open({ headers, body, world }: ReceivedRequest): OpenedRequest {
  requireBearer(headers, NO_KEY)
  const asked = readAs(request, parseJsonObject(body))
  const { directives } = findNamedModel(asked.model, (model) => `The model '${model}' does not exist.`)
  return {
    model: asked.model,
    directives: [directives, directivesInTexts(asked.input), asked.simulate],
    answer: (merged) =>
      answerAfterWork(
        { world, dialect: NAME, model: asked.model, directives: merged, moderated: MODERATED },
        () => ({
          kind: 'whole',
          status: 200,
          headers: { 'content-type': 'audio/mpeg' },
          body: spokenMp3(asked.input, { ...asked, directives: merged }),
          tokens: 0,
        }),
      ),
  }
}
