/** The generate-content dialect: `:generateContent`, `:streamGenerateContent` and `:countTokens` in Google's public shapes. */

import { BAD_KEY, findNamedModel } from '../../access.ts'
import { countPromptTokens, writeScript } from '../../answers/script.ts'
import {
  type Answer,
  type Dialect,
  failuresAs,
  jsonAnswer,
  type OpenedRequest,
  type ReceivedRequest,
  SimulatedFailure,
} from '../../dialect.ts'
import type { Directives } from '../../directives/grammar.ts'
import { splitChunks, wholeAnswer } from './answer.ts'
import { type GenerateContentRequest, readCounted, readGenerateContent } from './request.ts'
import { invalid } from './schema.ts'
import { isSigning } from './turns.ts'

const NO_KEY =
  "Method doesn't allow unregistered callers (callers without established identity). " +
  'Please use API Key or other form of API consumer identity to call this API.'

export const generateContent: Dialect = {
  name: 'generate-content',
  endpoints: [
    {
      method: 'POST',
      path: /^\/v1(?:alpha|beta)?\/models\/(.+):(generateContent|streamGenerateContent|countTokens)$/,
      open,
    },
  ],
  failure: failuresAs(errorBody),
}

function open(request: ReceivedRequest): OpenedRequest {
  refuseStrangers(request)
  const name = decode(request.path[1] ?? '')
  const method = request.path[2] ?? ''
  const { model, directives } = findNamedModel(
    name,
    (model) =>
      `models/${model} is not found for API version v1beta, or is not supported for ${method}. Call ListModels to see the list of available models and their supported methods.`,
  )
  if (method === 'countTokens') return openCount(request.body, name, { model, directives })
  const asked = readGenerateContent(request.body, model)
  const stream = method === 'streamGenerateContent'
  const framing = stream && request.query.get('alt') === 'sse' ? 'events' : 'array'
  return {
    model: name,
    stream,
    directives: [directives, asked.messageDirectives, asked.bodyDirectives],
    answer: (merged) => answer(asked, model, stream ? framing : null, merged),
  }
}

function openCount(
  body: Buffer,
  name: string,
  { model, directives }: Pick<ReturnType<typeof findNamedModel>, 'model' | 'directives'>,
): OpenedRequest {
  const asked = readCounted(body, name, model)
  return {
    model: name,
    directives: [directives, asked.messageDirectives, asked.bodyDirectives],
    answer: ({ prompt_tokens: tokens }) => {
      const totalTokens = tokens ?? countPromptTokens(asked.prompt.json)
      return jsonAnswer(200, {
        totalTokens,
        promptTokensDetails: [{ modality: 'TEXT', tokenCount: totalTokens }],
      })
    },
  }
}

function answer(
  { prompt }: GenerateContentRequest,
  model: string,
  framing: 'events' | 'array' | null,
  directives: Directives,
): Answer {
  const script = writeScript({ ...prompt, model }, directives)
  const options = { script, directives, modelVersion: model, responseId: script.id, signs: isSigning(model) }
  if (framing === null) return { ...jsonAnswer(200, wholeAnswer(options)), tokens: script.usage.completion }
  return {
    kind: 'streamed',
    headers: {
      'content-type': framing === 'array' ? 'application/json; charset=UTF-8' : 'text/event-stream',
    },
    framing: framing === 'array' ? 'array' : ['crlf'],
    frames: splitChunks(options),
  }
}

function refuseStrangers({ headers, query }: ReceivedRequest): void {
  const key = headers['x-goog-api-key'] ?? query.get('key')
  if (key === BAD_KEY)
    throw new SimulatedFailure(400, 'invalid_api_key', 'API key not valid. Please pass a valid API key.')
  if (key === null || key === '') throw new SimulatedFailure(403, 'invalid_api_key', NO_KEY)
}

function decode(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    throw invalid(`Invalid resource name: models/${name}`)
  }
}

const STATUS_NAMES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

function errorBody({ status, message, reason, headers }: SimulatedFailure): unknown {
  const name = STATUS_NAMES[status] ?? (status >= 500 ? 'UNKNOWN' : 'FAILED_PRECONDITION')
  const type = 'type.googleapis.com/google.rpc'
  const seconds = headers['retry-after']
  const details = [
    ...(reason === 'invalid_api_key' && status === 400
      ? [{ '@type': `${type}.ErrorInfo`, reason: 'API_KEY_INVALID', domain: 'googleapis.com' }]
      : []),
    ...(seconds === undefined ? [] : [{ '@type': `${type}.RetryInfo`, retryDelay: `${seconds}s` }]),
  ]
  return { error: { code: status, message, status: name, ...(details.length > 0 ? { details } : {}) } }
}
