/**
 * JSON Schema with what `$ref` points to and the members of `allOf` merged into the schema itself, one level at a time.
 * It follows JSON Schema 2020-12.
 */
import { roundRawNumber } from '../../../core/json/exact.ts'
import { isObject, type LooseObject, toFields, toList, toText } from '../../loose.ts'

/** A schema, or a map of them. A client may send any value as one. */
export type Schema = LooseObject

/** A definition may contain itself this often; deeper, only its type is kept. */
const MAX_SELF_NESTING = 2
/** Nested alternatives multiply: the maximum that is written out. */
const MAX_BRANCHES = 32
/** Of `allOf` in `allOf`, and of definitions that name others. */
const MAX_MERGED_LEVELS = 64

const JSON_TYPES: ReadonlySet<string> = new Set([
  ...['string', 'integer', 'number', 'boolean', 'array', 'object', 'null'],
])

/** Returns the types of a schema, in lower case, each once; none where it names none. */
export const readTypes = ({ type }: Schema): readonly string[] => [
  ...new Set(
    (Array.isArray(type) ? type : [type])
      .flatMap((t) => (typeof t === 'string' ? [t.toLowerCase()] : []))
      .filter((t) => JSON_TYPES.has(t)),
  ),
]

/** The whole that schemas are part of, and what may still be read of it. */
export interface SchemaSource {
  readonly root: Schema
  readonly left: { schemas: number; characters: number }
}

/** Definitions can refer to each other so that they multiply: further ones are dropped. */
const MAX_SCHEMAS = 2048
/** So are those that would be read, or merged with others, over and over: so many characters for each of the whole. */
const READ_TIMES = 8
const ALWAYS_READ_CHARS = 65_536
/** An item of a list and a name cost as much as so many characters of a text. */
const ITEM_CHARS = 16

export function measureSchema(root: Schema): SchemaSource {
  let characters = 0
  const open: unknown[] = [root]
  while (open.length > 0) {
    const value = open.pop()
    characters += toText(value).length
    for (const [name, inner] of Object.entries(toFields(value))) {
      characters += ITEM_CHARS + name.length
      open.push(inner)
    }
  }
  return { root, left: { schemas: MAX_SCHEMAS, characters: ALWAYS_READ_CHARS + READ_TIMES * characters } }
}

/** Returns about how many characters a keyword has without the schemas in it. */
function measureKeyword(keyword: string, value: unknown): number {
  if (typeof value === 'string') return value.length
  if (keyword === 'enum') return JSON.stringify(value).length
  if (Array.isArray(value))
    return value.reduce<number>((sum, item) => sum + ITEM_CHARS + toText(item).length, 0)
  return isObject(value) ? Object.keys(value).reduce((sum, name) => sum + ITEM_CHARS + name.length, 0) : 1
}

/** Returns whether a schema may be read once more. */
export function mayRead({ left }: SchemaSource, schema: Schema): boolean {
  for (const [keyword, value] of Object.entries(schema))
    left.characters -= keyword.length + measureKeyword(keyword, value)
  return left.characters >= 0
}

interface Flattened {
  readonly schema: Schema
  /** The definitions around the schema. */
  readonly within: readonly string[]
}

/** Returns `#/$defs/thing` in `root`; undefined for a missing one, or one in another document. */
function resolvePointer(root: Schema, pointer: string): unknown {
  if (pointer !== '#' && !pointer.startsWith('#/')) return undefined
  let found: unknown = root
  for (const step of pointer.split('/').slice(1)) {
    const name = unescapeStep(step)
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined
    found = (found as Schema)[name]
  }
  return found
}

function unescapeStep(step: string): string {
  const plain = step.replaceAll('~1', '/').replaceAll('~0', '~')
  try {
    return decodeURIComponent(plain)
  } catch {
    return plain
  }
}

/**
 * Returns `schema` without `$ref`, `allOf`, `oneOf` and `const` on its own level; those of its parts stay. `within`
 * are the definitions around it.
 */
export function flattenSchema(
  source: SchemaSource,
  schema: unknown,
  within: readonly string[],
  level = 0,
): Flattened {
  const isBeyond = --source.left.schemas < 0 || level > MAX_MERGED_LEVELS
  if (!isObject(schema) || isBeyond || !mayRead(source, schema)) return { schema: {}, within }
  const { $ref, allOf, oneOf, const: only, ...rest } = schema
  let own: Schema = Object.hasOwn(schema, 'const') ? { ...rest, enum: [only] } : rest
  if (Array.isArray(oneOf) && own.anyOf === undefined) own = { ...own, anyOf: oneOf }
  let around = within
  const take = (inner: Flattened) => {
    if (!mayRead(source, own)) return
    own = mergeSchemas(own, inner.schema)
    around = [...around, ...inner.within.slice(within.length)]
  }
  if (typeof $ref === 'string') {
    const target = resolvePointer(source.root, $ref)
    source.left.characters -= within.length
    const nesting = within.filter((name) => name === $ref).length
    if (nesting >= MAX_SELF_NESTING) own = mergeSchemas(own, typeOnly(target))
    else take(flattenSchema(source, target, [...within, $ref], level + 1))
  }
  for (const member of toList(allOf)) take(flattenSchema(source, member, within, level + 1))
  return { schema: own, within: around }
}

const typeOnly = (target: unknown): Schema => {
  const { type } = toFields(target)
  return type === undefined ? {} : { type }
}

type Combine = (a: unknown, b: unknown) => unknown

/** Returns a function that picks the number that `isBetter` prefers, as written; the first where one is no number. */
const better =
  (isBetter: (a: number, b: number) => boolean): Combine =>
  (a, b) => {
    const [first, second] = [roundRawNumber(a), roundRawNumber(b)]
    return typeof first === 'number' && typeof second === 'number' && isBetter(second, first) ? b : a
  }
export const larger = better((a, b) => a > b)
export const smaller = better((a, b) => a < b)
const both: Combine = (a, b) => ({ allOf: [a, b] })
const union: Combine = (a, b) => [...new Set([...toList(a), ...toList(b)])]

const sameValues: Combine = (a, b) => {
  const known = new Set(toList(b).map((value) => JSON.stringify(value)))
  return toList(a).filter((value) => known.has(JSON.stringify(value)))
}

const commonTypes: Combine = (a, b) => {
  const [mine, theirs] = [readTypes({ type: a }), readTypes({ type: b })]
  const isWithin = (type: string, types: readonly string[]) =>
    types.includes(type) || (type === 'integer' && types.includes('number'))
  const common = [...mine.filter((t) => isWithin(t, theirs)), ...theirs.filter((t) => isWithin(t, mine))]
  return common.length === 0 ? a : [...new Set(common)]
}

const bothProperties: Combine = (a, b) => {
  const [mine, theirs] = [toFields(a), toFields(b)]
  const names = [...new Set([...Object.keys(mine), ...Object.keys(theirs)])]
  return Object.fromEntries(
    names.map((name) => {
      if (!Object.hasOwn(mine, name)) return [name, theirs[name]]
      return [name, Object.hasOwn(theirs, name) ? both(mine[name], theirs[name]) : mine[name]]
    }),
  )
}

const everyPair: Combine = (a, b) =>
  toList(a).length * toList(b).length > MAX_BRANCHES
    ? a
    : toList(a).flatMap((mine) => toList(b).map((theirs) => both(mine, theirs)))

/** The keyword that satisfies both schemas. For any other keyword the first one applies. */
const COMBINE: Readonly<Record<string, Combine>> = {
  type: commonTypes,
  enum: sameValues,
  properties: bothProperties,
  required: union,
  items: both,
  anyOf: everyPair,
  nullable: (a, b) => a === true || b === true,
  minimum: larger,
  exclusiveMinimum: larger,
  minLength: larger,
  minItems: larger,
  minProperties: larger,
  maximum: smaller,
  exclusiveMaximum: smaller,
  maxLength: smaller,
  maxItems: smaller,
  maxProperties: smaller,
}

/** Returns one schema that allows what both allow. */
export function mergeSchemas(a: Schema, b: Schema): Schema {
  const fields = new Map(Object.entries(a))
  for (const [name, value] of Object.entries(b)) {
    const combine = Object.hasOwn(COMBINE, name) ? COMBINE[name] : undefined
    if (!fields.has(name)) fields.set(name, value)
    else if (combine !== undefined) fields.set(name, combine(fields.get(name), value))
  }
  return Object.fromEntries(fields)
}
