/**
 * Reduces JSON Schema to the subset of OpenAPI that older models of the generate-content protocol take. The result
 * allows all that the schema allows; a restriction that the subset cannot express is dropped.
 */
import { isRawNumber, roundRawNumber } from '../../../core/json/exact.ts'
import { isObject, toFields, toList } from '../../loose.ts'
import {
  flattenSchema,
  larger,
  mayRead,
  measureSchema,
  mergeSchemas,
  readTypes,
  type Schema,
  type SchemaSource,
  smaller,
} from './schema-flatten.ts'

/** The depth limit of all models; deeper parts are dropped. */
const MAX_DEPTH = 32

/** Position of the reduction in the schema. */
interface Place {
  readonly source: SchemaSource
  /** The definitions around it. */
  readonly within: readonly string[]
  readonly depth: number
}

/** Alternatives, none of which is null; whether null is one more; what holds for all of them. */
interface Reduced {
  readonly branches: readonly Schema[]
  readonly isNullable: boolean
}

const ANYTHING: Reduced = {
  branches: [{ type: 'STRING' }, { type: 'NUMBER' }, { type: 'BOOLEAN' }, { type: 'OBJECT' }],
  isNullable: true,
}

/** Returns true for an object without any properties: the schema of a function without parameters. */
export function isEmptyObject(schema: Schema): boolean {
  const { type, properties, additionalProperties, ...rest } = schema
  const elsewhere = ['$ref', 'allOf', 'anyOf', 'oneOf', 'patternProperties']
  return (
    (type === undefined || type === 'object') &&
    Object.keys(toFields(properties)).length === 0 &&
    (additionalProperties === undefined || additionalProperties === false) &&
    !elsewhere.some((name) => Object.hasOwn(rest, name))
  )
}

export const schemaSubset = (schema: Schema): Schema =>
  reduceSchema(schema, { source: measureSchema(schema), within: [], depth: 0 })

function reduceSchema(schema: unknown, place: Place): Schema {
  const { branches, isNullable } = reduceToBranches(schema, place)
  const nullable = isNullable ? { nullable: true } : {}
  const [first] = branches
  if (first === undefined) return { type: 'STRING', nullable: true }
  // Beside `anyOf` the subset allows no other field.
  return branches.length === 1
    ? { ...first, ...nullable }
    : { anyOf: branches.map((branch) => ({ ...branch, ...nullable })) }
}

function reduceToBranches(schema: unknown, place: Place): Reduced {
  if (place.depth > MAX_DEPTH) return ANYTHING
  const flat = flattenSchema(place.source, schema, place.within)
  const inner = { ...place, within: flat.within, depth: place.depth + 1 }
  const alternatives = toList(flat.schema.anyOf)
  return alternatives.length > 0
    ? reduceAlternatives(flat.schema, alternatives, inner)
    : reducePlain(flat.schema, inner)
}

/** Returns the branches of `anyOf`; keywords next to it apply in each of them. */
function reduceAlternatives(schema: Schema, alternatives: readonly unknown[], place: Place): Reduced {
  const { anyOf: _, title, description, ...beside } = schema
  const found = alternatives.map((branch) => {
    if (!mayRead(place.source, beside)) return ANYTHING
    const flat = flattenSchema(place.source, branch, place.within)
    const whole = mergeSchemas(flat.schema, beside)
    return reduceToBranches(whole, { ...place, within: flat.within })
  })
  const branches = dropDuplicates(found.flatMap((each) => each.branches))
  const about = pickDescription({ title, description })
  return {
    // Words about the whole are nearer to the point than those about its one kind.
    branches: branches.map((branch) =>
      branches.length === 1 ? { ...branch, ...about } : { ...about, ...branch },
    ),
    isNullable: schema.nullable === true || found.some((each) => each.isNullable),
  }
}

const dropDuplicates = (schemas: readonly Schema[]): Schema[] => [
  ...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values(),
]

function pickDescription({ title, description }: Schema): Schema {
  return {
    ...(typeof title === 'string' ? { title } : {}),
    ...(typeof description === 'string' ? { description } : {}),
  }
}

function reducePlain(schema: Schema, place: Place): Reduced {
  const values = Array.isArray(schema.enum) ? schema.enum : null
  const named = readTypes(schema)
  const types = named.length > 0 ? named : inferTypes(schema, values)
  const about = pickDescription(schema)
  if (types.length === 0) return { ...ANYTHING, branches: ANYTHING.branches.map((b) => ({ ...b, ...about })) }
  const holdsNull = types.includes('null') && (values === null || values.includes(null))
  return {
    branches: dropDuplicates(types.flatMap((type) => reduceToType(type, schema, values, place))),
    isNullable: schema.nullable === true || holdsNull,
  }
}

const WHOLE_NUMBER = /^-?\d+$/
const isNumber = (value: unknown): boolean => typeof roundRawNumber(value) === 'number'

const jsonType = (value: unknown): string => {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (isRawNumber(value)) return WHOLE_NUMBER.test(value.rawJSON) ? 'integer' : 'number'
  if (Number.isInteger(value)) return 'integer'
  return typeof value
}

const IMPLIED: readonly (readonly [type: string, keywords: readonly string[]])[] = [
  ['object', ['properties', 'required', 'additionalProperties', 'patternProperties', 'minProperties']],
  ['array', ['items', 'prefixItems', 'minItems', 'maxItems', 'contains']],
  ['number', ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']],
  ['string', ['pattern', 'minLength', 'maxLength', 'format']],
]

/** Returns the implied types: the subset needs a type where the schema names none. */
function inferTypes(schema: Schema, values: readonly unknown[] | null): readonly string[] {
  if (values !== null) return [...new Set(values.map(jsonType))]
  return IMPLIED.flatMap(([type, keywords]) => (keywords.some((k) => Object.hasOwn(schema, k)) ? [type] : []))
}

/** Returns the schema for one of its types; none where its values are of other types. */
function reduceToType(
  type: string,
  schema: Schema,
  values: readonly unknown[] | null,
  place: Place,
): Schema[] {
  const fits = (value: unknown) =>
    jsonType(value) === type || (type === 'number' && jsonType(value) === 'integer')
  const own = values === null ? null : values.filter(fits)
  if (own !== null && own.length === 0) return []
  const about = pickDescription(schema)
  switch (type) {
    case 'string':
      return [{ type: 'STRING', ...about, ...reduceString(schema, own) }]
    case 'integer':
    case 'number':
      return [{ type: type.toUpperCase(), ...describeValues(about, own), ...reduceNumber(schema, type, own) }]
    case 'boolean':
      return [{ type: 'BOOLEAN', ...describeValues(about, own?.length === 1 ? own : null) }]
    case 'array':
      return [{ type: 'ARRAY', ...describeValues(about, own), ...reduceArray(schema, place) }]
    case 'object':
      return [{ type: 'OBJECT', ...describeValues(about, own), ...reduceObject(schema, place) }]
    default:
      return []
  }
}

/** Values that the subset cannot list are described to the model in words. */
function describeValues(about: Schema, values: readonly unknown[] | null): Schema {
  if (values === null) return about
  const words = `One of: ${values.map((value) => JSON.stringify(value)).join(', ')}.`
  return { ...about, description: about.description === undefined ? words : `${about.description} ${words}` }
}

/** Returns the fields of `schema` among `names` that are numbers. */
const numbers = (schema: Schema, names: readonly string[]): Schema =>
  Object.fromEntries(names.flatMap((name) => (isNumber(schema[name]) ? [[name, schema[name]]] : [])))

function pickFormat({ format }: Schema, known: readonly string[]): Schema {
  return typeof format === 'string' && known.includes(format) ? { format } : {}
}

function reduceString(schema: Schema, values: readonly unknown[] | null): Schema {
  // The subset cannot list an empty value, and a value outside the list would be refused.
  if (values !== null) return values.includes('') ? {} : { enum: [...new Set(values)] }
  const pattern = typeof schema.pattern === 'string' ? { pattern: schema.pattern } : {}
  return { ...pickFormat(schema, ['date-time']), ...numbers(schema, ['minLength', 'maxLength']), ...pattern }
}

function reduceNumber(schema: Schema, type: string, values: readonly unknown[] | null): Schema {
  const step = type === 'integer' ? 1 : 0
  const own = (values ?? []).filter(isNumber)
  const least = own.length === 0 ? undefined : own.reduce((a, b) => smaller(a, b))
  const greatest = own.length === 0 ? undefined : own.reduce((a, b) => larger(a, b))
  const minimum = tightest([schema.minimum, above(schema.exclusiveMinimum, step), least], larger)
  const maximum = tightest([schema.maximum, below(schema.exclusiveMaximum, step), greatest], smaller)
  return {
    ...pickFormat(schema, type === 'integer' ? ['int32', 'int64'] : ['float', 'double']),
    ...(minimum === null ? {} : { minimum }),
    ...(maximum === null ? {} : { maximum }),
  }
}

function tightest(bounds: readonly unknown[], of: (a: unknown, b: unknown) => unknown): unknown {
  const given = bounds.filter(isNumber)
  return given.length === 0 ? null : given.reduce((a, b) => of(a, b))
}

/** Returns an inclusive bound, the only kind in the subset: the next whole number, or the bound itself. */
const above = (bound: unknown, step: number): unknown =>
  typeof bound === 'number' && step > 0 ? Math.floor(bound) + step : bound
const below = (bound: unknown, step: number): unknown =>
  typeof bound === 'number' && step > 0 ? Math.ceil(bound) - step : bound

function reduceArray(schema: Schema, place: Place): Schema {
  const counts = numbers(schema, ['minItems', 'maxItems'])
  const tuple = [...toList(schema.prefixItems), ...toList(schema.items)]
  const { items } = schema
  if (tuple.length === 0) return { items: reduceSchema(items === false ? {} : items, place), ...counts }
  const rest = isObject(items) ? [items] : items === false || schema.additionalItems === false ? [] : [{}]
  return { items: reduceSchema({ anyOf: [...tuple, ...rest] }, place), ...counts }
}

function reduceObject(schema: Schema, place: Place): Schema {
  const properties = Object.entries(toFields(schema.properties))
    .filter(([, property]) => property !== false)
    .map(([name, property]) => [name, reduceSchema(property, place)] as const)
  const names = new Set(properties.map(([name]) => name))
  const required = toList(schema.required).filter((name) => typeof name === 'string' && names.has(name))
  return {
    ...(properties.length > 0 ? { properties: Object.fromEntries(properties) } : {}),
    ...(required.length > 0 ? { required: [...new Set(required)] } : {}),
    ...numbers(schema, ['minProperties', 'maxProperties']),
  }
}
