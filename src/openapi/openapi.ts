/** The OpenAPI 3.1 document of the public endpoints, made of their schemas. */
import { z } from 'zod'
import type { Endpoint, NamedSchema } from '../../schemas/endpoints/endpoint.ts'
import { FAILURES } from '../../schemas/failure.ts'
import type { JsonSchema, OpenApiDocument, Operation, Parameter } from './document.ts'
import { describeResponses, ERROR_SCHEMAS, HEADER_COMPONENTS, schemaRef } from './responses.ts'

const FAILURE_ROWS = Object.entries(FAILURES).map(
  ([code, { status, type, messagesType, generateStatus }]) =>
    `| ${status} | \`${code}\` | ${type} | ${messagesType} | ${generateStatus} |`,
)

/** Markdown. */
const DESCRIPTION = `One key, one wallet, many upstream channels. Amounts are in credits, as decimal strings unless said
otherwise. Every response carries its request id in x-gateway-trace, x-request-id and request-id. HEAD is answered
wherever GET is, by the head alone. An unknown path answers 404 not_found, a method that a path does not take 405
method_not_allowed. A request body may be compressed: content-encoding gzip, deflate, br or zstd. Its limit counts what
it expands to.

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
  headers: [{ bearer: [] }, { x_api_key: [] }, { x_goog_api_key: [] }],
  management: Object.keys(MANAGEMENT_SCHEMES).map((name) => ({ [name]: [] })),
  none: [],
}

/** Returns the schema of a client's input: defaults are optional, and fields that are parsed later are still texts. */
function toJsonSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema: made }) => {
      // A double bounds whole numbers in any case, as in all JSON.
      if (made.minimum === Number.MIN_SAFE_INTEGER) delete made.minimum
      if (made.maximum === Number.MAX_SAFE_INTEGER) delete made.maximum
      // A number in a query is read from its text.
      if (made.type === 'integer') delete made.pattern
    },
  })
  return rest
}

function listParameters(where: Parameter['in'], schema: z.ZodObject | undefined): Parameter[] {
  if (schema === undefined) return []
  const { properties = {}, required = [] } = toJsonSchema(schema) as {
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

/** Returns an id such as `post_v1_chat_completions`. */
const makeOperationId = ({ method, path }: Endpoint): string =>
  `${method}_${path}`
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/_$/, '')

/** The management API takes no body for an empty one. */
const isOptional = ({ key }: Endpoint, schema: z.ZodType): boolean =>
  schema.safeParse(key === 'management' ? {} : undefined).success

const describeBody = ({ name }: NamedSchema, example: object | undefined) => ({
  schema: schemaRef(name),
  ...(example && { example }),
})

function describeOperation(endpoint: Endpoint): Operation {
  const parameters = [
    ...listParameters('path', endpoint.pathParameters),
    ...listParameters('query', endpoint.query),
    ...listParameters('header', endpoint.headers),
  ]
  const { body, form, example, details } = endpoint
  return {
    operationId: makeOperationId(endpoint),
    tags: [endpoint.tag],
    summary: endpoint.summary,
    ...(details !== undefined && { description: details }),
    security: SECURITY[endpoint.key],
    ...(parameters.length > 0 && { parameters }),
    ...((body ?? form) && {
      requestBody: {
        required: body === undefined || !isOptional(endpoint, body.schema),
        content: {
          ...(body && { 'application/json': describeBody(body, example) }),
          ...(form && { 'multipart/form-data': describeBody(form, undefined) }),
        },
      },
    }),
    responses: describeResponses(endpoint),
  }
}

const listNamedSchemas = (endpoints: readonly Endpoint[]): NamedSchema[] =>
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
    paths[endpoint.path] = {
      ...paths[endpoint.path],
      [endpoint.method.toLowerCase()]: describeOperation(endpoint),
    }
    await pause()
  }
  const schemas: Record<string, JsonSchema> = { ...ERROR_SCHEMAS }
  const named = new Map<string, z.ZodType>()
  for (const { name, schema } of listNamedSchemas(endpoints)) {
    if (named.get(name) === schema) continue
    if (named.has(name)) throw new Error(`Two schemas have the name ${name}.`)
    named.set(name, schema)
    schemas[name] = toJsonSchema(schema)
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
      headers: HEADER_COMPONENTS,
      securitySchemes: { ...SECURITY_SCHEMES, ...MANAGEMENT_SCHEMES },
    },
  }
}
