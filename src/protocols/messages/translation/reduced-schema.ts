/** JSON schemas as the vendor takes them where it holds a model to one: fewer keywords, and no recursion. */
import { isObject, type LooseObject, toFields } from '../../loose.ts'

const MAX_SCHEMA_DEPTH = 128
/** Bounds the search for definitions that refer to each other. */
const MAX_DEFINITIONS = 128

/** Limits that the vendor refuses in a schema. */
const REFUSED_LIMITS: ReadonlySet<string> = new Set([
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength'],
  ...['maxItems', 'uniqueItems', 'contains', 'minContains', 'maxContains', 'minProperties', 'maxProperties'],
  ...['patternProperties', 'propertyNames', 'unevaluatedProperties', 'unevaluatedItems', 'prefixItems'],
  ...['dependentRequired', 'dependentSchemas', 'if', 'then', 'else', 'not'],
])
const FORMATS: ReadonlySet<unknown> = new Set([
  ...['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'],
])
/** Keywords whose value is one schema or a list of them, and those whose value is schemas by name. */
const HOLDS_SCHEMAS: ReadonlySet<string> = new Set(['items', 'anyOf', 'allOf', 'oneOf'])
const HOLDS_NAMED_SCHEMAS: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions'])

/**
 * A schema without the keywords that the vendor refuses. The result allows what the schema allows, except for unnamed
 * properties.
 */
export class ReducedSchema {
  /** Restrictions were left out. */
  isLooser = false
  isTooDeep = false
  readonly schema: unknown

  constructor(schema: LooseObject) {
    this.schema = this.#reduce(schema, 0)
  }

  #reduce(schema: unknown, depth: number): unknown {
    if (depth > MAX_SCHEMA_DEPTH) {
      this.isTooDeep = true
      return schema
    }
    if (Array.isArray(schema)) return schema.map((one) => this.#reduce(one, depth + 1))
    if (!isObject(schema)) return schema
    const kept = Object.entries(schema).flatMap(([keyword, value]) =>
      this.#keyword(keyword, value, depth + 1),
    )
    const isOfProperties = schema.type === 'object' || schema.properties !== undefined
    return Object.fromEntries(isOfProperties ? [...kept, ['additionalProperties', false]] : kept)
  }

  #keyword(keyword: string, value: unknown, depth: number): (readonly [string, unknown])[] {
    if (keyword === 'additionalProperties') return this.#without(isObject(value))
    const isRefused =
      REFUSED_LIMITS.has(keyword) ||
      (keyword === 'minItems' && value !== 0 && value !== 1) ||
      (keyword === 'format' && !FORMATS.has(value))
    if (isRefused) return this.#without(true)
    // The vendor knows no `oneOf`.
    if (HOLDS_SCHEMAS.has(keyword))
      return [[keyword === 'oneOf' ? 'anyOf' : keyword, this.#reduce(value, depth)]]
    if (!HOLDS_NAMED_SCHEMAS.has(keyword) || !isObject(value)) return [[keyword, value]]
    const named = Object.entries(value).map(([name, one]) => [name, this.#reduce(one, depth)] as const)
    return [[keyword, Object.fromEntries(named)]]
  }

  #without(isLooser: boolean): [] {
    this.isLooser ||= isLooser
    return []
  }
}

/** Returns a schema, or a list of them, with all schemas inside. */
export function listSchemas(schema: unknown): LooseObject[] {
  const found: LooseObject[] = []
  const collect = (inner: unknown): void => {
    if (Array.isArray(inner)) for (const one of inner) collect(one)
    if (!isObject(inner)) return
    found.push(inner)
    for (const [keyword, value] of Object.entries(inner))
      if (HOLDS_SCHEMAS.has(keyword)) collect(value)
      else if (HOLDS_NAMED_SCHEMAS.has(keyword) && isObject(value)) collect(Object.values(value))
  }
  collect(schema)
  return found
}

const listRefs = (schemas: readonly LooseObject[]): Set<unknown> =>
  new Set(schemas.flatMap(({ $ref }) => ($ref === undefined ? [] : [$ref])))

/** Returns false where a schema refers to itself or to another document: the vendor refuses both. */
export function refersOnlyToDefinitions(root: LooseObject): boolean {
  const all = listRefs(listSchemas(root))
  if (all.size === 0) return true
  /** References of each definition that leads to others. */
  const open = new Map<unknown, Set<unknown>>()
  for (const keyword of ['$defs', 'definitions'])
    for (const [name, definition] of Object.entries(toFields(root[keyword])))
      open.set(`#/${keyword}/${name}`, listRefs(listSchemas(definition)))
  if (open.size > MAX_DEFINITIONS || [...all].some((ref) => !open.has(ref))) return false
  for (let before = -1; before !== open.size; ) {
    before = open.size
    for (const [ref, refs] of open) if ([...refs].every((other) => !open.has(other))) open.delete(ref)
  }
  return open.size === 0
}
