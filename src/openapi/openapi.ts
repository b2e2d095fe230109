/** The OpenAPI 3.1 document of the public endpoints, made of their schemas. */
import { z } from 'zod'
import type { AnswerContent, Endpoint, NamedSchema } from '../../schemas/endpoints/endpoint.ts'
import { FAILURES, type FailureCode } from '../../schemas/failure.ts'

export type JsonSchema = { readonly [name: string]: unknown }

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly description?: string
  readonly schema: JsonSchema
}

interface Content {
  readonly [contentType: string]: { readonly schema: JsonSchema; readonly example?: object }
}

export interface Answer {
  readonly description: string
  readonly headers: JsonSchema
  readonly content?: Content
}

export interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  readonly security: readonly JsonSchema[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly required: true; readonly content: Content }
  readonly responses: { readonly [status: string]: Answer }
}

export interface OpenApiDocument {
  readonly openapi: '3.1.0'
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string }[]
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } }
  readonly components: {
    readonly schemas: { readonly [name: string]: JsonSchema }
    readonly headers: JsonSchema
    readonly securitySchemes: { readonly [name: string]: JsonSchema }
  }
}

const FAILURE_ROWS = Object.entries(FAILURES).map(
  ([code, { status, type, messagesType, generateStatus }]) =>
    `| ${status} | \`${code}\` | ${type} | ${messagesType} | ${generateStatus} |`,
)

/** Markdown. */
const DESCRIPTION = `One key, one wallet, many upstream channels. Amounts are in credits, as decimal strings unless said
otherwise. Every response carries its request id in x-gateway-trace and in x-request-id. An unknown path answers 404
not_found, a method that a path does not take 405 method_not_allowed. A request body may be compressed:
content-encoding gzip, deflate, br or zstd. Its limit counts what it expands to.

# Keys

One key works everywhere. It is read from the first of these that is there: the header \`x-api-key\`, the header
\`x-goog-api-key\`, the query parameter \`key\`, the header \`authorization: Bearer\`. The last is the advised form.

# Errors

The body has the shape of the endpoint's protocol: \`{error: {message, type, code}}\`; for messages
\`{type: "error", error: {type, message}}\`; for generate-content \`{error: {code, message, status}}\` with the HTTP
status as the code. An error of the upstream keeps its status.

| Status | Code | Type | Messages type | Generate-content status |
|---|---|---|---|---|
${FAILURE_ROWS.join('\n')}`

const SECURITY_SCHEMES = {
  bearer: { type: 'http', scheme: 'bearer', description: 'Works on every endpoint; the advised form.' },
  x_api_key: { type: 'apiKey', in: 'header', name: 'x-api-key' },
  x_goog_api_key: { type: 'apiKey', in: 'header', name: 'x-goog-api-key' },
  key: { type: 'apiKey', in: 'query', name: 'key' },
} as const

/** Ways into the management API, which no key of an account opens. */
const MANAGEMENT_SCHEMES = {
  management_token: { type: 'http', scheme: 'bearer', description: 'A management token, `tgm_…`.' },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: '__Host-tollgate',
    description:
      'The session of the console; a request that changes something has the header X-CSRF-Token too.',
  },
} as const

const ANYWHERE = Object.keys(SECURITY_SCHEMES).map((name) => ({ [name]: [] }))
const SECURITY: Readonly<Record<Endpoint['key'], readonly JsonSchema[]>> = {
  anywhere: ANYWHERE,
  authorization_or_x_api_key: [{ bearer: [] }, { x_api_key: [] }],
  management: Object.keys(MANAGEMENT_SCHEMES).map((name) => ({ [name]: [] })),
  none: [],
}

const text = { type: 'string' } as const
const object = (properties: Record<string, JsonSchema>): JsonSchema => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
})

/** One failure in three shapes; which one follows the endpoint. */
const ERROR_SCHEMAS = {
  Error: object({ error: object({ message: text, type: text, code: text }) }),
  MessagesError: object({ type: { const: 'error' }, error: object({ type: text, message: text }) }),
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

const TRACE = {
  'x-gateway-trace': { $ref: '#/components/headers/x-gateway-trace' },
  'x-request-id': { $ref: '#/components/headers/x-request-id' },
}
const HTTP_OK = 200
const COMMON_FAILURES: readonly FailureCode[] = ['internal_error', 'service_unavailable']
/** Agent keys are denied everywhere but at one endpoint, and there an agent may be. */
const KEYED_FAILURES: readonly FailureCode[] = ['invalid_api_key', 'permission_denied']
const MANAGEMENT_FAILURES: readonly FailureCode[] = ['not_signed_in', 'permission_denied']
const BODY_FAILURES: readonly FailureCode[] = ['unsupported_content_encoding']

const schemaRef = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

/** Returns the schema of a client's input: defaults are optional, and fields that are parsed later are still texts. */
function jsonSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema: made }) => {
      // A double bounds whole numbers in any case, as in all JSON.
      if (made.minimum === Number.MIN_SAFE_INTEGER) delete made.minimum
      if (made.maximum === Number.MAX_SAFE_INTEGER) delete made.maximum
    },
  })
  return rest
}

function parametersIn(where: Parameter['in'], schema: z.ZodObject | undefined): Parameter[] {
  if (schema === undefined) return []
  const { properties = {}, required = [] } = jsonSchema(schema) as {
    properties?: Record<string, JsonSchema & { description?: string }>
    required?: readonly string[]
  }
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: where,
    required: required.includes(name),
    ...(description !== undefined && { description }),
    schema: rest,
  }))
}

const schemaOf = (answer: AnswerContent): JsonSchema =>
  'body' in answer ? schemaRef(answer.body.name) : { type: 'string', description: answer.says }

/** Returns the content of one status: answers of one type are alternatives. */
const contentOf = (answers: readonly AnswerContent[]): Content =>
  Object.fromEntries(
    [...Map.groupBy(answers, ({ contentType }) => contentType)].map(([type, same]) => {
      const [only, ...others] = same.map(schemaOf)
      return [type, { schema: others.length === 0 ? only! : { anyOf: [only!, ...others] } }]
    }),
  )

function successes({ answers, status: usual }: Endpoint): (readonly [string, Answer])[] {
  if (answers.length === 0)
    return usual === undefined ? [] : [[String(usual), { description: 'Sends elsewhere.', headers: TRACE }]]
  const byStatus = Map.groupBy(
    answers,
    (one) => ('status' in one ? one.status : undefined) ?? usual ?? HTTP_OK,
  )
  return [...byStatus].map(([status, same]) => [
    String(status),
    { description: 'The answer.', headers: TRACE, content: contentOf(same) },
  ])
}

const statusOf = (endpoint: Endpoint, code: FailureCode): number =>
  endpoint.failureStatus?.[code] ?? FAILURES[code].status

function refusals(endpoint: Endpoint): (readonly [string, Answer])[] {
  const codes = [
    ...(endpoint.key === 'none' ? [] : endpoint.key === 'management' ? MANAGEMENT_FAILURES : KEYED_FAILURES),
    ...endpoint.failures,
    ...(endpoint.body === undefined ? [] : BODY_FAILURES),
    ...(endpoint.isProbe ? [] : COMMON_FAILURES),
  ].filter((code, index, all) => all.indexOf(code) === index)
  const schema = schemaRef(ERROR_SCHEMA_OF[endpoint.errorShape ?? 'chat-completions'])
  return [...Map.groupBy(codes, (code) => statusOf(endpoint, code))]
    .sort(([a], [b]) => a - b)
    .map(([status, same]) => [
      String(status),
      {
        description: same.map((code) => `\`${code}\``).join(', '),
        headers: TRACE,
        content: { 'application/json': { schema } },
      },
    ])
}

/** Returns an id such as `post_v1_chat_completions`. */
const operationId = ({ method, path }: Endpoint): string =>
  `${method}_${path}`
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/_$/, '')

const bodyContent = ({ name }: NamedSchema, example: object | undefined) => ({
  schema: schemaRef(name),
  ...(example && { example }),
})

function operation(endpoint: Endpoint): Operation {
  const parameters = [
    ...parametersIn('path', endpoint.pathParameters),
    ...parametersIn('query', endpoint.query),
    ...parametersIn('header', endpoint.headers),
  ]
  const { body, form, example, details } = endpoint
  return {
    operationId: operationId(endpoint),
    tags: [endpoint.tag],
    summary: endpoint.summary,
    ...(details !== undefined && { description: details }),
    security: SECURITY[endpoint.key],
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: true,
        content: {
          'application/json': bodyContent(body, example),
          ...(form && { 'multipart/form-data': bodyContent(form, undefined) }),
        },
      },
    }),
    responses: Object.fromEntries([...successes(endpoint), ...refusals(endpoint)]),
  }
}

const namedSchemas = (endpoints: readonly Endpoint[]): NamedSchema[] =>
  endpoints.flatMap(({ body, form, answers }) => [
    ...(body ? [body] : []),
    ...(form ? [form] : []),
    ...answers.flatMap((answer) => ('body' in answer ? [answer.body] : [])),
  ])

/** @param pause awaited between one endpoint and the next, for other work: all of them take a twentieth of a second */
export async function openApiDocument(
  endpoints: readonly Endpoint[],
  version: string,
  pause: () => Promise<unknown> = async () => undefined,
): Promise<OpenApiDocument> {
  const paths: Record<string, Record<string, Operation>> = {}
  for (const endpoint of endpoints) {
    paths[endpoint.path] = { ...paths[endpoint.path], [endpoint.method.toLowerCase()]: operation(endpoint) }
    await pause()
  }
  const schemas: Record<string, JsonSchema> = { ...ERROR_SCHEMAS }
  for (const { name, schema } of namedSchemas(endpoints)) {
    if (name in schemas) continue
    schemas[name] = jsonSchema(schema)
    await pause()
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Tollgate', version, description: DESCRIPTION },
    servers: [{ url: '/' }],
    tags: [...new Set(endpoints.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas,
      headers: {
        'x-gateway-trace': { description: 'The request id.', schema: text },
        'x-request-id': { description: 'The same, under the name that SDKs read.', schema: text },
      },
      securitySchemes: { ...SECURITY_SCHEMES, ...MANAGEMENT_SCHEMES },
    },
  }
}
