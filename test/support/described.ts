/** Compares answers of a service with its reference, `/openapi.json`. */
import { z } from 'zod'
import { ENDPOINTS } from '../../schemas/endpoints/index.ts'
import type { JsonSchema, Operation } from '../../src/openapi/document.ts'
import { openApiDocument } from '../../src/openapi/openapi.ts'

interface Described {
  readonly method: string
  readonly pattern: RegExp
  readonly operation: Operation
}

/** What HTTP itself brings, and what every answer has for browsers. */
const PLAIN_HEADERS =
  /^(?:access-control-.*|x-content-type-options|content-(?:type|length|encoding|security-policy)|cache-control|date|connection|keep-alive|transfer-encoding|uwebsockets|set-cookie|vary|x-accel-buffering)$/
/** Parameters that may have slashes. */
const LONG_PARAMETER = /\{(?:key|model)\}/g
const PARAMETER = /\{[^}]+\}/g

const document = await openApiDocument(ENDPOINTS, 'test')
const DEFINITIONS = JSON.parse(
  JSON.stringify(document.components.schemas).replaceAll('#/components/schemas/', '#/$defs/'),
)
const parsers = new Map<string, z.ZodType>()

/** Those without parameters first: an exact path wins. */
const OPERATIONS: readonly Described[] = Object.entries(document.paths)
  .toSorted(([a], [b]) => a.split('{').length - b.split('{').length)
  .flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      pattern: new RegExp(`^${path.replaceAll(LONG_PARAMETER, '.+').replaceAll(PARAMETER, '[^/]+')}$`),
      operation,
    })),
  )

function parserOf(schema: JsonSchema): z.ZodType {
  const text = JSON.stringify(schema).replaceAll('#/components/schemas/', '#/$defs/')
  const parser = parsers.get(text) ?? z.fromJSONSchema({ ...JSON.parse(text), $defs: DEFINITIONS })
  parsers.set(text, parser)
  return parser
}

function wrongBody(schema: JsonSchema, text: string): string[] {
  const { error } = parserOf(schema).safeParse(JSON.parse(text))
  return error === undefined ? [] : [z.prettifyError(error)]
}

/** Returns what the reference does not say of an answer. A request that reaches no endpoint is none of its. */
export function undescribed(
  method: string,
  path: string,
  { status, headers }: Pick<Response, 'status' | 'headers'>,
  text: string,
): string[] {
  const found = OPERATIONS.find((one) => one.method === method && one.pattern.test(path.split('?', 1)[0]!))
  if (found === undefined) return []
  const { responses } = found.operation
  const response = responses[status] ?? responses.default
  if (response === undefined) return [`status ${status}: ${text.slice(0, 500)}`]
  const named = [...headers.keys()].filter((name) => !PLAIN_HEADERS.test(name))
  const strange = named.filter((name) => !Object.hasOwn(response.headers, name))
  const problems = strange.map((name) => `status ${status} has the header ${name}`)
  if (text === '') return problems
  const type = headers.get('content-type')?.split(';', 1)[0] ?? ''
  const content = Object.entries(response.content ?? {}).find(
    ([one]) => one === '*/*' || one.split(';', 1)[0] === type,
  )?.[1]
  if (content === undefined) return [...problems, `status ${status} has the type ${type}`]
  return type === 'application/json' ? [...problems, ...wrongBody(content.schema, text)] : problems
}
