/** The elevenlabs dialect: speech and cloned voices, in ElevenLabs' public shapes. */

import type { IncomingHttpHeaders } from 'node:http'
import { z } from 'zod'
import { BAD_KEY, findNamedModel } from '../access.ts'
import {
  type Dialect,
  type FailureReason,
  jsonAnswer,
  type OpenedRequest,
  openWith,
  parseJsonObject,
  type ReceivedRequest,
  SimulatedFailure,
  type WholeAnswer,
} from '../dialect.ts'
import type { Directives } from '../directives/grammar.ts'
import { spokenMp3 } from '../media/delivery.ts'
import { readAs } from '../requests.ts'
import { makeTaskId } from '../tasks/task-book.ts'
import { answerAfterWork, directivesInTexts } from '../tasks/work.ts'
import { PRESET_VOICES, type Voice } from '../world.ts'

const NAME = 'elevenlabs'
const MODERATED = {
  message: 'The text may break the terms of service: simulated.',
  code: 'content_policy_violation',
} as const
const DEFAULT_MODEL = 'sim-speech'
const MAX_TEXT_CHARACTERS = 10_000
/** The voice of the vendor's examples exists too. */
const PREMADE: readonly Voice[] = [{ id: 'JBFqnCBsd6RMkjVDRZzb', name: 'George' }, ...PRESET_VOICES]
/** Accepts voices of earlier runs by the form of their ids. */
const CLONED_ID = /^clone[0-9a-f]{16}$/
const CLONED_DIGITS = 16

export const elevenlabs: Dialect = {
  name: NAME,
  endpoints: [
    { method: 'POST', path: /^\/v1\/text-to-speech\/([^/]+)$/, open: openSpeech },
    { method: 'POST', path: /^\/v1\/voices\/add$/, open: openClone },
    { method: 'GET', path: /^\/v1\/voices$/, open: openList },
    { method: 'DELETE', path: /^\/v1\/voices\/([^/]+)$/, open: openRemoval },
  ],
  failure: (failure) => jsonAnswer(readStatus(failure), errorBody(failure), failure.headers),
}

const speech = z.object({
  text: z.string().min(1).max(MAX_TEXT_CHARACTERS),
  model_id: z.string().min(1).default(DEFAULT_MODEL),
  language_code: z.string().optional(),
  seed: z.int().min(0).optional(),
  voice_settings: z
    .object({
      stability: z.number().min(0).max(1).optional(),
      similarity_boost: z.number().min(0).max(1).optional(),
      style: z.number().min(0).max(1).optional(),
      use_speaker_boost: z.boolean().optional(),
      speed: z.number().min(0.7).max(1.2).optional(),
    })
    .optional(),
})

const clone = z.object({
  name: z.string().min(1),
  description: z.string().optional(),
  remove_background_noise: z.enum(['true', 'false']).optional(),
})

function openSpeech({ headers, body, path, query, world }: ReceivedRequest): OpenedRequest {
  requireKey(headers)
  const voice = path[1] as string
  const asked = readAs(speech, parseJsonObject(body), 'body')
  const format = query.get('output_format') ?? 'mp3_44100_128'
  if (!format.startsWith('mp3_')) {
    const message = 'Input should be a format of mp3: the simulated provider speaks no other.'
    throw new SimulatedFailure(400, 'invalid_request', message, { param: 'query.output_format' })
  }
  const isKnown = PREMADE.some(({ id }) => id === voice) || CLONED_ID.test(voice)
  if (!isKnown || world.voices.wasRemoved(voice)) throw noVoice(404, 'voice_not_found', voice)
  const { directives } = findNamedModel(
    asked.model_id,
    (model) => new SimulatedFailure(400, 'model_not_found', `A model with model ID ${model} does not exist.`),
  )
  const speed = asked.voice_settings?.speed
  const answer = (merged: Directives) =>
    answerAfterWork(
      { world, dialect: NAME, model: asked.model_id, directives: merged, moderated: MODERATED },
      () => ({
        kind: 'whole' as const,
        status: 200,
        headers: { 'content-type': 'audio/mpeg', 'character-cost': `${[...asked.text].length}` },
        body: spokenMp3(asked.text, { directives: merged, ...(speed === undefined ? {} : { speed }) }),
        tokens: 0,
      }),
    )
  return {
    model: asked.model_id,
    directives: [directives, directivesInTexts(asked.text)],
    answer,
  }
}

function openClone({ headers, form: readForm, world }: ReceivedRequest): OpenedRequest {
  requireKey(headers)
  const form = readForm()
  const asked = readAs(clone, form.fields(), 'body')
  const files = form.files('files', 'files[]')
  if (files.length === 0)
    throw new SimulatedFailure(400, 'invalid_request', 'Field required.', { param: 'body.files' })
  if (files.some(({ data }) => data.length === 0)) {
    const message = 'The file is empty or could not be read.'
    throw new SimulatedFailure(400, 'invalid_request', message, { code: 'invalid_content' })
  }
  const make = (): WholeAnswer => {
    const voice_id = `clone${makeTaskId().slice(0, CLONED_DIGITS)}`
    world.voices.add({ id: voice_id, name: asked.name })
    return jsonAnswer(200, { voice_id, requires_verification: false })
  }
  return {
    directives: [directivesInTexts([asked.name, asked.description])],
    answer: (directives) =>
      answerAfterWork({ world, dialect: NAME, model: 'voices', directives, moderated: MODERATED }, make),
  }
}

function openList({ headers, world }: ReceivedRequest): OpenedRequest {
  requireKey(headers)
  const shown = (category: string) => (voice: Voice) => ({
    ...{ voice_id: voice.id, name: voice.name, category },
    ...{ labels: {}, description: null, preview_url: null },
  })
  const voices = [...PREMADE.map(shown('premade')), ...world.voices.cloned().map(shown('cloned'))]
  return openWith({ voices })
}

function openRemoval({ headers, path, world }: ReceivedRequest): OpenedRequest {
  requireKey(headers)
  const voice = path[1] as string
  return {
    answer: () => {
      if (!world.voices.remove(voice)) throw noVoice(400, 'voice_does_not_exist', voice)
      return jsonAnswer(200, { status: 'ok' })
    },
  }
}

/** @throws {SimulatedFailure} 401 */
function requireKey(headers: IncomingHttpHeaders): void {
  const key = headers['xi-api-key']
  if (key === undefined || key === '' || key === BAD_KEY)
    throw new SimulatedFailure(401, 'invalid_api_key', 'Invalid API key')
}

function noVoice(status: number, code: string, voice: string): SimulatedFailure {
  const message = `A voice with the voice_id ${voice} was not found.`
  return new SimulatedFailure(status, 'not_found', message, { code })
}

const CODES: Readonly<Record<FailureReason, string>> = {
  invalid_request: 'invalid_request',
  invalid_api_key: 'invalid_api_key',
  model_not_found: 'model_not_found',
  not_found: 'not_found',
  method_not_allowed: 'method_not_allowed',
  request_too_large: 'request_too_large',
  rate_limited: 'too_many_concurrent_requests',
  simulated: 'internal_error',
}

/** An unreadable field is 422, with a list. */
function isUnreadable({ reason, param }: SimulatedFailure): boolean {
  return reason === 'invalid_request' && param !== null
}

function readStatus(failure: SimulatedFailure): number {
  return isUnreadable(failure) ? 422 : failure.status
}

function errorBody(failure: SimulatedFailure): object {
  const { message, param, code, reason } = failure
  if (!isUnreadable(failure)) return { detail: { status: code ?? CODES[reason], message } }
  return { detail: [{ type: 'value_error', loc: param?.split('.') ?? [], msg: message }] }
}
