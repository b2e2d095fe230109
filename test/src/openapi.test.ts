/** The OpenAPI document and its page. */
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { ENDPOINTS } from '../../schemas/endpoints/index.ts'
import { FAILURES } from '../../schemas/failure.ts'
import { MANAGEMENT_PATH, OPERATION_ROUTES, ROUTES } from '../../schemas/routes.ts'
import type { JsonSchema, Operation } from '../../src/openapi/document.ts'
import { openApiDocument } from '../../src/openapi/openapi.ts'
import { PAGE } from '../../src/openapi/page.ts'
import { findErrorShape } from '../../src/protocols/error-shape.ts'
import { REFERENCE } from '../../src/server/routes/console.ts'
import { emptyRouter } from '../support/empty-routes.ts'

t.test('document agrees with routes', async (t) => {
  // `GET /openapi.json` describes every public endpoint, and nothing that is not there.
  const table = emptyRouter()
  const document = await openApiDocument(ENDPOINTS, '1.2.3')
  const OPERATIONS: readonly (Operation & { path: string; method: string })[] = Object.entries(
    document.paths,
  ).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, path, method })),
  )

  const named = ({ method, path }: { method: string; path: string }) => `${method.toUpperCase()} ${path}`

  t.test('every route stands in the document, and the other way round', async (t) => {
    const { openConsole: _, openConsolePage: __, ...described } = ROUTES
    const paths = [
      ...Object.values(described).flatMap(([method, ...routed]) =>
        routed.map((path) => `${method} ${path.replace(/[+*]\}/, '}')}`),
      ),
      ...Object.values(OPERATION_ROUTES).map(([method, path]) => `${method} ${MANAGEMENT_PATH}${path}`),
    ]
    t.same(OPERATIONS.map(named).sort(), paths.sort())
    for (const { path, method } of OPERATIONS) {
      const filled = path.replaceAll(/\{\w+\}/g, 'sonata-large')
      t.ok(table.match(filled)?.methods[method.toUpperCase()], `${method} ${filled} is answered`)
    }
    for (const path of ['/nowhere', '/v1beta/models/', '/v1beta/models/m:embedContent', '/v1/messages/'])
      t.equal(table.match(path), null, path)
  })

  t.test('a model and its method are found however their path is escaped', async (t) => {
    const methodsOf = (path: string) => Object.keys(table.match(path)?.methods ?? {})
    for (const model of ['m', 'org/m', 'org%2Fm', 'm:1', 'm%3A1', 'models/m']) {
      for (const colon of [':', '%3A', '%3a'])
        for (const method of ['generateContent', 'streamGenerateContent', 'countTokens'])
          for (const version of ['v1beta', 'v1alpha', 'v1'])
            t.same(
              methodsOf(`/${version}/models/${model}${colon}${method}`),
              ['POST'],
              model + colon + method,
            )
      for (const list of ['/v1/models', '/v1beta/models', '/v1alpha/models'])
        t.same(methodsOf(`${list}/${model}`), ['GET'])
    }
    const generate = table.match('/v1beta/models/m:generateContent')?.methods
    t.equal(table.match('/v1beta/models/m%3AgenerateContent')?.methods, generate)
    t.not(table.match('/v1beta/models/m%3AcountTokens')?.methods, generate)
  })

  t.test('errors have the shape of the path', async (t) => {
    for (const { path, errorShape = 'chat-completions' } of ENDPOINTS)
      t.equal(errorShape, findErrorShape(path), path)
  })

  t.test('every answer stands under its status and its type', async (t) => {
    for (const endpoint of ENDPOINTS) {
      const { responses } = OPERATIONS.find((operation) => named(operation) === named(endpoint))!
      for (const answer of endpoint.answers) {
        const response = responses[answer.status ?? endpoint.status ?? 200]
        if (!('contentType' in answer)) {
          t.match(response?.description, answer.says, named(endpoint))
          continue
        }
        const schema = response?.content?.[answer.contentType]?.schema
        const shown = JSON.stringify(schema)
        t.match(
          shown,
          'body' in answer ? `"#/components/schemas/${answer.body.name}"` : answer.says,
          named(endpoint),
        )
      }
    }
  })

  t.test('refusals stand under the status that they have', async (t) => {
    for (const endpoint of ENDPOINTS) {
      const { path, failureStatus, failures } = endpoint
      const { responses } = OPERATIONS.find((operation) => named(operation) === named(endpoint))!
      for (const code of failures) {
        for (const status of [failureStatus?.[code] ?? FAILURES[code].status].flat())
          t.match(responses[status]?.description, `\`${code}\``, `${path}: ${code}`)
      }
    }
    t.match(document.paths['/v1/embeddings']?.post?.responses['404']?.description, 'model_not_found')
    t.match(document.paths['/v1/messages']?.post?.responses['401']?.content, {
      'application/json': { schema: { $ref: '#/components/schemas/MessagesError' } },
    })
    t.ok(document.paths['/v1/videos/clip-subtitles']?.post?.responses['202'], 'an answer of another status')
    t.same(document.paths['/api/v1/models/public']?.get?.security, [])
    t.same(document.paths['/v1/models']?.get?.security, [
      { bearer: [] },
      { x_api_key: [] },
      { x_goog_api_key: [] },
    ])
  })

  const KEYWORDS = new Set(
    (
      '$ref type properties required items additionalProperties anyOf oneOf enum const description default ' +
      'not minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems pattern format propertyNames prefixItems contentMediaType contentSchema'
    ).split(' '),
  )
  const TYPES = ['string', 'integer', 'number', 'boolean', 'object', 'array', 'null']

  /** What is wrong with a JSON schema, by where it stands. */
  function faults(schema: JsonSchema, at: string): string[] {
    const found = Object.keys(schema).flatMap((name) =>
      KEYWORDS.has(name) ? [] : [`${at}: keyword ${name}`],
    )
    const types = [schema.type ?? []].flat()
    for (const type of types) if (!TYPES.includes(type as string)) found.push(`${at}: type ${type}`)
    if (typeof schema.$ref === 'string') {
      const [, name = ''] = /^#\/components\/schemas\/(\w+)$/.exec(schema.$ref) ?? []
      if (!Object.hasOwn(document.components.schemas, name)) found.push(`${at}: ${schema.$ref} leads nowhere`)
    }
    const properties = (schema.properties ?? {}) as Record<string, JsonSchema>
    const named = ((schema.propertyNames as JsonSchema | undefined)?.enum ?? []) as string[]
    for (const name of (schema.required ?? []) as string[])
      if (!Object.hasOwn(properties, name) && !named.includes(name))
        found.push(`${at}: ${name} is required and nowhere`)
    const branches = [schema.anyOf ?? [], schema.oneOf ?? [], schema.prefixItems ?? []].flat() as JsonSchema[]
    const nested = [
      ...Object.entries(properties),
      ...branches.map((branch, index) => [String(index), branch] as const),
      ...(['items', 'additionalProperties', 'propertyNames', 'contentSchema'] as const).flatMap((name) =>
        typeof schema[name] === 'object' ? [[name, schema[name] as JsonSchema] as const] : [],
      ),
    ]
    return [...found, ...nested.flatMap(([name, inner]) => faults(inner, `${at}.${name}`))]
  }

  t.test('the document is sound OpenAPI 3.1', async (t) => {
    t.equal(JSON.stringify(JSON.parse(JSON.stringify(document))), JSON.stringify(document))
    t.match(document, {
      openapi: '3.1.0',
      info: { title: 'Tollgate', version: '1.2.3' },
      servers: [{ url: '/' }],
    })
    t.same(
      Object.entries(document.components.schemas).flatMap(([name, schema]) => faults(schema, name)),
      [],
    )
    const ids = OPERATIONS.map(({ operationId }) => operationId)
    t.equal(new Set(ids).size, ids.length, 'operation ids are unique')
    const tags = document.tags.map(({ name }) => name)
    const schemes = Object.keys(document.components.securitySchemes)
    for (const operation of OPERATIONS) {
      const { path, operationId, parameters = [], requestBody, responses } = operation
      t.match(path, /^\//)
      t.match(operationId, /^[a-z][a-z0-9_]*$/)
      t.match(operation.summary, /^[A-Z].*\.$/, `${path}: a sentence`)
      t.ok(operation.tags.every((tag) => tags.includes(tag)))
      t.ok(operation.security.flatMap((one) => Object.keys(one)).every((name) => schemes.includes(name)))
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const declared = parameters.filter((parameter) => parameter.in === 'path')
      t.same(
        declared.map(({ name }) => name),
        inPath,
        `${path}: its parameters are those in braces`,
      )
      t.ok(declared.every(({ required }) => required))
      const keys = parameters.map((parameter) => `${parameter.in} ${parameter.name}`)
      t.equal(new Set(keys).size, keys.length)
      t.same(
        parameters.flatMap(({ name, schema }) => faults(schema, `${path}?${name}`)),
        [],
      )
      t.not(Object.keys(responses).length, 0)
      const contents = [
        requestBody?.content ?? {},
        ...Object.values(responses).map(({ content = {} }) => content),
      ]
      for (const [status, { description, headers }] of Object.entries(responses)) {
        t.match(status, /^([1-5]\d\d|default)$/)
        t.not(description, '')
        for (const name of ['x-gateway-trace', 'x-request-id'])
          t.same(headers[name], { $ref: `#/components/headers/${name}` })
        const leadingNowhere = Object.entries(headers).filter(
          ([name, header]) => '$ref' in Object(header) && !Object.hasOwn(document.components.headers, name),
        )
        t.same(leadingNowhere, [])
      }
      for (const content of contents)
        for (const [type, { schema }] of Object.entries(content)) {
          t.match(type, /^([a-z]+\/[a-z-]+|\*\/\*)/)
          t.same(faults(schema, path), [])
        }
    }
  })

  t.test('the examples are requests as their schemas want them', async (t) => {
    const examples = ENDPOINTS.flatMap(({ path, body, example }) =>
      body && example ? [{ path, body, example }] : [],
    )
    t.not(examples.length, 0)
    for (const { path, body, example } of examples) t.ok(body.schema.safeParse(example).success, path)
  })
})

t.test('page needs no other host', async (t) => {
  // The reference page for people: it runs offline, and its script is the one that is served.
  t.test('the page loads nothing but the document and the script', async (t) => {
    const loaded = [...PAGE.matchAll(/\b(?:src|href|data-url)="([^"]*)"/g)].map(([, url]) => url)
    t.same(new Set(loaded), new Set(['/openapi.json', ROUTES.readReferenceScript[1]]))
    t.notMatch(PAGE, /https?:|<style|<script>/)
  })

  t.test('the script mounts on the element of the page', async (t) => {
    const script = gunzipSync(await REFERENCE.script()).toString()
    t.match(script, 'createApiReference')
    t.match(script, 'api-reference')
    t.match(PAGE, 'id="api-reference"')
  })
})
