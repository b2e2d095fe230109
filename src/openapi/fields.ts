/** A JSON schema as rows of a table: each field by the way that leads to it, such as `messages[].role`. */
import type { JsonSchema } from './openapi.ts'

export interface FieldRow {
  readonly name: string
  readonly type: string
  readonly isRequired: boolean
  readonly description: string
}

/** Deeper fields are left to the document for programs. */
const MAX_DEPTH = 4

type Schemas = readonly JsonSchema[]

const listOf = (value: unknown): Schemas => (Array.isArray(value) ? (value as Schemas) : [])
const isNull = (schema: JsonSchema): boolean => schema.type === 'null'

/** The branches of a schema, null left out: what may be null may as well be left out. */
function branchesOf(schema: JsonSchema): Schemas {
  const branches = [...listOf(schema.anyOf), ...listOf(schema.oneOf)]
  if (branches.length === 0) return [schema]
  return branches.filter((branch) => !isNull(branch)).flatMap(branchesOf)
}

function bounds({ minimum, maximum, minLength, maxLength, minItems }: JsonSchema): string {
  if (minimum !== undefined && maximum !== undefined) return `, ${minimum} to ${maximum}`
  if (typeof maxLength === 'number') return `, at most ${maxLength} characters`
  if (typeof minimum === 'number') return `, at least ${minimum}`
  return minLength === 1 || minItems === 1 ? ', not empty' : ''
}

const NAMES = /^(string|object|integer|number|boolean)$/

function plural(schema: JsonSchema): string {
  const text = typeText(schema)
  return NAMES.test(text) ? `${text}s` : text
}

function branchText(schema: JsonSchema): string {
  if (isNull(schema)) return 'null'
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  const values = listOf(schema.enum) as readonly unknown[]
  if (values.length > 0) return values.map((value) => JSON.stringify(value)).join(', ')
  if (schema.type === 'array')
    return `array of ${plural((schema.items as JsonSchema) ?? {})}${bounds(schema)}`
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((type) => type !== 'null')
  const [type] = types as readonly (string | undefined)[]
  return `${type ?? 'any'}${bounds(schema)}`
}

export const typeText = (schema: JsonSchema): string =>
  [...new Set(branchesOf(schema).map(branchText))].join(' or ')

type Properties = Readonly<Record<string, JsonSchema>>

/** Fields of the objects that `schema` may be, each with whether all of them need it. */
function propertiesOf(schema: JsonSchema): readonly (readonly [string, JsonSchema, boolean])[] {
  const objects = branchesOf(schema).filter(({ properties }) => properties !== undefined)
  const names = new Set(objects.flatMap(({ properties }) => Object.keys(properties as Properties)))
  return [...names].map((name) => {
    const holders = objects.filter(({ properties }) => Object.hasOwn(properties as Properties, name))
    const isRequired = holders.every(({ required }) =>
      (listOf(required) as readonly unknown[]).includes(name),
    )
    const schemas = holders.map(({ properties }) => (properties as Properties)[name]!)
    const one = schemas.length === 1 ? schemas[0]! : { anyOf: schemas }
    return [name, one, isRequired && holders.length === objects.length]
  })
}

function rowsBelow(schema: JsonSchema, prefix: string, depth: number): FieldRow[] {
  if (depth > MAX_DEPTH) return []
  const rows = propertiesOf(schema).flatMap(([name, field, isRequired]) => [
    {
      name: `${prefix}${name}`,
      type: typeText(field),
      isRequired,
      description: typeof field.description === 'string' ? field.description : '',
    },
    ...rowsBelow(field, `${prefix}${name}.`, depth + 1),
  ])
  const items = branchesOf(schema).flatMap(({ type, items }) =>
    type === 'array' && items ? [items as JsonSchema] : [],
  )
  return [...rows, ...items.flatMap((item) => rowsBelow(item, prefix.replace(/\.?$/, '[].'), depth))]
}

export const fieldRows = (schema: JsonSchema): FieldRow[] => rowsBelow(schema, '', 1)
