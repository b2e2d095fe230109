/** The responses of an operation: each status that its endpoint can answer, with headers and content. */
import { type AnswerContent, type Endpoint, EVENT_STREAM } from '../../schemas/endpoints/endpoint.ts'
import { FAILURES, type FailureCode } from '../../schemas/failure.ts'
import { MANAGEMENT_PATH } from '../../schemas/routes.ts'
import type { Answer, Content, JsonSchema } from './document.ts'

const text = { type: 'string' } as const
const object = (properties: Record<string, JsonSchema>): JsonSchema => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
})

/** One failure in three shapes; which one follows the endpoint. */
export const ERROR_SCHEMAS = {
  Error: object({ error: object({ message: text, type: text, code: text }) }),
  MessagesError: object({
    type: { const: 'error' },
    error: {
      type: 'object',
      properties: { type: text, message: text, details: { type: 'object', additionalProperties: true } },
      required: ['type', 'message'],
    },
  }),
  GenerateContentError: object({
    error: object({
      code: { type: 'integer', description: 'The HTTP status.' },
      message: text,
      status: text,
    }),
  }),
} as const

const ERROR_SCHEMA_OF = {
  'chat-completions': 'Error',
  messages: 'MessagesError',
  'generate-content': 'GenerateContentError',
} as const

const HEADERS = {
  'x-gateway-trace': 'The request id.',
  'x-request-id': 'The same, under the name that SDKs of chat-completions read.',
  'request-id': 'The same, under the name that SDKs of messages read.',
  'idempotency-replayed': 'true: the stored answer to an earlier request with this Idempotency-Key.',
  'retry-after': 'Seconds, or of an upstream a date, after which another try makes sense; where it is known.',
  'accept-encoding': 'The content encodings that a request body may have.',
  'content-range': 'The length of the file.',
  'x-ratelimit-limit': 'Where a limit is set: requests in a minute.',
  'x-ratelimit-remaining': 'Requests that are left.',
  'x-ratelimit-reset': 'Seconds until a place is free.',
  'x-ratelimit-limit-requests': 'As x-ratelimit-limit.',
  'x-ratelimit-remaining-requests': 'As x-ratelimit-remaining.',
  'x-ratelimit-reset-requests': 'As x-ratelimit-reset.',
  'x-ratelimit-limit-concurrency': 'Where a limit is set: requests in flight.',
  'x-ratelimit-remaining-concurrency': 'Requests that may begin now.',
} as const
type HeaderName = keyof typeof HEADERS
const ALWAYS: readonly HeaderName[] = ['x-gateway-trace', 'x-request-id', 'request-id']
const REQUEST_LIMIT: readonly HeaderName[] = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
]
const ALL_LIMITS = Object.keys(HEADERS).filter((name): name is HeaderName => name.startsWith('x-ratelimit-'))

const HTTP_OK = 200
const HTTP_BAD_REQUEST = 400
const HTTP_UNAUTHORIZED = 401
const HTTP_UNSUPPORTED_MEDIA_TYPE = 415
const HTTP_RANGE_NOT_SATISFIABLE = 416
const HTTP_TOO_MANY_REQUESTS = 429
const HTTP_INTERNAL_ERROR = 500
/** The key of the response to every status that is not listed. */
const OTHER = 'default'

const COMMON_FAILURES: readonly FailureCode[] = ['internal_error', 'service_unavailable']
/** The limit of the client's address, before a key is checked. */
const COUNTED_FAILURES: readonly FailureCode[] = ['rate_limit_exceeded']
/** Agent keys are denied everywhere but at one endpoint, and there an agent may be. */
const KEYED_FAILURES: readonly FailureCode[] = ['invalid_api_key', 'permission_denied']
const MANAGEMENT_FAILURES: readonly FailureCode[] = ['not_signed_in', 'permission_denied']
const BODY_FAILURES: readonly FailureCode[] = [
  'invalid_request',
  'request_too_large',
  'unsupported_content_encoding',
]
const PATH_FAILURES: readonly FailureCode[] = ['invalid_request']

export const schemaRef = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

/** One of the answers of a status. */
interface Part {
  readonly status: string
  readonly description: string
  readonly content?: { readonly type: string; readonly schema: JsonSchema }
}

function listAnswers({ answers, status: usual = HTTP_OK }: Endpoint): Part[] {
  return answers.map((answer) => {
    const status = String(answer.status ?? usual)
    if (!('contentType' in answer)) return { status, description: answer.says }
    const schema = describeAnswer(answer)
    return { status, description: 'The answer.', content: { type: answer.contentType, schema } }
  })
}

/** An event of a stream has a name, where its protocol names it, and its data. Some only say when to reconnect. */
const describeEvent = (data: JsonSchema, description?: string): JsonSchema => ({
  type: 'object',
  properties: { event: text, data },
  ...(description !== undefined && { description }),
})

function describeAnswer(answer: AnswerContent & { contentType: string }): JsonSchema {
  const isStream = answer.contentType === EVENT_STREAM
  if (!('body' in answer)) {
    if (isStream) return describeEvent(text, answer.says)
    const isText = answer.contentType.startsWith('text/')
    return { ...text, ...(!isText && { format: 'binary' }), description: answer.says }
  }
  const schema = schemaRef(answer.body.name)
  return isStream
    ? describeEvent({ ...text, contentMediaType: 'application/json', contentSchema: schema })
    : schema
}

const listStatuses = ({ failureStatus }: Endpoint, code: FailureCode): readonly number[] =>
  [failureStatus?.[code] ?? FAILURES[code].status].flat()

function listAccessFailures({ key, path }: Endpoint): readonly FailureCode[] {
  if (path.startsWith(MANAGEMENT_PATH)) return MANAGEMENT_FAILURES
  return key === 'none' ? [] : KEYED_FAILURES
}

function listRefusals(endpoint: Endpoint): Part[] {
  const { body, form, pathParameters, isProbe, isUncounted, errorShape = 'chat-completions' } = endpoint
  const codes = new Set([
    ...listAccessFailures(endpoint),
    ...endpoint.failures,
    ...((body ?? form) === undefined ? [] : BODY_FAILURES),
    ...(pathParameters === undefined ? [] : PATH_FAILURES),
    ...(isProbe || isUncounted ? [] : COUNTED_FAILURES),
    ...(isProbe ? [] : COMMON_FAILURES),
  ])
  const content = { type: 'application/json', schema: schemaRef(ERROR_SCHEMA_OF[errorShape]) }
  const own = [...codes].flatMap((code) =>
    listStatuses(endpoint, code).map((status) => ({
      status: String(status),
      description: `\`${code}\``,
      content,
    })),
  )
  const isForwarded =
    endpoint.failures.includes('upstream_error') && !endpoint.path.startsWith(MANAGEMENT_PATH)
  if (!isForwarded) return own
  return [
    ...own,
    { status: OTHER, description: 'An error of the upstream, which keeps its status.', content },
  ]
}

function describeHeaders({ failures, path, answerHeaders = {} }: Endpoint, status: string): JsonSchema {
  const code = Number(status)
  const isRefusal = !(code < HTTP_BAD_REQUEST)
  const isReplayable = failures.includes('idempotency_key_reuse') && !path.startsWith(MANAGEMENT_PATH)
  const limits = failures.includes('rate_limit_exceeded')
    ? ALL_LIMITS
    : failures.includes('logs_rate_limited')
      ? REQUEST_LIMIT
      : []
  const isLater = status === OTHER || code === HTTP_TOO_MANY_REQUESTS || code >= HTTP_INTERNAL_ERROR
  const names: readonly HeaderName[] = [
    ...ALWAYS,
    ...(code === HTTP_UNAUTHORIZED ? [] : limits),
    ...(!isRefusal && isReplayable ? (['idempotency-replayed'] as const) : []),
    ...(isLater ? (['retry-after'] as const) : []),
    ...(code === HTTP_UNSUPPORTED_MEDIA_TYPE ? (['accept-encoding'] as const) : []),
    ...(code === HTTP_RANGE_NOT_SATISFIABLE ? (['content-range'] as const) : []),
  ]
  return {
    ...Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
    ...(isRefusal ? {} : toHeaderObjects(answerHeaders)),
  }
}

const toHeaderObjects = (headers: Readonly<Record<string, string>>): JsonSchema =>
  Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: text }]),
  )

/** Returns the content of one status: answers of one type are alternatives. */
const describeContent = (parts: readonly Part[]): Content =>
  Object.fromEntries(
    [
      ...Map.groupBy(
        parts.flatMap(({ content }) => content ?? []),
        ({ type }) => type,
      ),
    ].map(([type, same]) => {
      const [only, ...others] = new Map(same.map(({ schema }) => [JSON.stringify(schema), schema])).values()
      return [type, { schema: others.length === 0 ? only! : { anyOf: [only!, ...others] } }]
    }),
  )

export function describeResponses(endpoint: Endpoint): Record<string, Answer> {
  const byStatus = Map.groupBy([...listAnswers(endpoint), ...listRefusals(endpoint)], ({ status }) => status)
  return Object.fromEntries(
    [...byStatus].map(([status, parts]) => {
      const content = describeContent(parts)
      const answer = {
        description: [...new Set(parts.map(({ description }) => description))].join(', '),
        headers: describeHeaders(endpoint, status),
        ...(Object.keys(content).length > 0 && { content }),
      }
      return [status, answer]
    }),
  )
}

/** Headers that responses refer to. */
export const HEADER_COMPONENTS = toHeaderObjects(HEADERS)
