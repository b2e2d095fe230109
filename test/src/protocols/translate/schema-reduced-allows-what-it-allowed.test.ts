/** What a schema becomes for models that take a subset of OpenAPI. */
import fc from 'fast-check'
import t from 'tap'
import {
  isEmptyObject,
  schemaSubset,
} from '../../../../src/protocols/translate/to-generate-content/schema-subset.ts'
import { everyRun } from '../../../support/every-run.ts'

type Schema = Readonly<Record<string, unknown>>

const SEED = 17
const RUNS = 750
const TYPES = ['STRING', 'NUMBER', 'INTEGER', 'BOOLEAN', 'ARRAY', 'OBJECT']
/** The vendor's documentation of `Schema`, as far as it is used. */
const KEYWORDS: Readonly<Record<string, readonly string[]>> = {
  STRING: ['enum', 'format', 'minLength', 'maxLength', 'pattern'],
  NUMBER: ['format', 'minimum', 'maximum'],
  INTEGER: ['format', 'minimum', 'maximum'],
  BOOLEAN: [],
  ARRAY: ['items', 'minItems', 'maxItems'],
  OBJECT: ['properties', 'required', 'minProperties', 'maxProperties'],
}
const OF_ALL = ['type', 'title', 'description', 'nullable']

/** Throws where the vendor would refuse. */
function checkSubset(schema: Schema): void {
  const fault = (why: string): never => {
    throw new Error(`${why}: ${JSON.stringify(schema)}`)
  }
  if (schema.anyOf !== undefined) {
    const branches = schema.anyOf as Schema[]
    if (Object.keys(schema).length > 1) fault('anyOf has other keywords')
    if (branches.length < 2) fault('one alternative is none')
    for (const branch of branches) {
      if (branch.anyOf !== undefined) fault('alternatives of alternatives')
      checkSubset(branch)
    }
    return
  }
  const type = String(schema.type)
  if (!TYPES.includes(type)) fault('no type')
  const unknown = Object.keys(schema).find((k) => !OF_ALL.includes(k) && !KEYWORDS[type]!.includes(k))
  if (unknown !== undefined) fault(`unknown keyword ${unknown}`)
  for (const value of (schema.enum ?? []) as unknown[])
    if (typeof value !== 'string' || value === '') fault('enum')
  if (type === 'STRING' && schema.format !== undefined && schema.format !== 'date-time') fault('format')
  if (type === 'ARRAY') checkSubset((schema.items ?? fault('no items')) as Schema)
  const properties = (schema.properties ?? {}) as Record<string, Schema>
  for (const property of Object.values(properties)) checkSubset(property)
  for (const name of (schema.required ?? []) as string[])
    if (!Object.hasOwn(properties, name)) fault(`required ${name} is no property`)
}

/** Whether the subset allows `value`. */
function allows(schema: Schema, value: unknown): boolean {
  if (schema.anyOf !== undefined) return (schema.anyOf as Schema[]).some((branch) => allows(branch, value))
  if (value === null) return schema.nullable === true
  const within = (n: number, min: string, max: string): boolean =>
    n >= Number(schema[min] ?? Number.NEGATIVE_INFINITY) &&
    n <= Number(schema[max] ?? Number.POSITIVE_INFINITY)
  switch (schema.type) {
    case 'STRING':
      return (
        typeof value === 'string' &&
        (schema.enum === undefined || (schema.enum as string[]).includes(value)) &&
        within([...value].length, 'minLength', 'maxLength')
      )
    case 'INTEGER':
    case 'NUMBER':
      return (
        typeof value === 'number' &&
        (schema.type === 'NUMBER' || Number.isInteger(value)) &&
        within(value, 'minimum', 'maximum')
      )
    case 'BOOLEAN':
      return typeof value === 'boolean'
    case 'ARRAY':
      return (
        Array.isArray(value) &&
        within(value.length, 'minItems', 'maxItems') &&
        value.every((item) => allows(schema.items as Schema, item))
      )
    default: {
      if (typeof value !== 'object' || Array.isArray(value)) return false
      const properties = Object.entries((schema.properties ?? {}) as Record<string, Schema>)
      const fields = value as Record<string, unknown>
      const required = (schema.required ?? []) as string[]
      return (
        required.every((name) => Object.hasOwn(fields, name)) &&
        properties.every(([name, property]) => !Object.hasOwn(fields, name) || allows(property, fields[name]))
      )
    }
  }
}

interface Sample {
  readonly schema: Schema | boolean
  /** Allowed by it. */
  readonly value: unknown
}

const word = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 4 })
const scalar: fc.Arbitrary<Sample> = fc.oneof(
  word.map((value) => ({ schema: { type: 'string', minLength: 1, maxLength: 40, format: 'uri' }, value })),
  fc
    .uniqueArray(word, { minLength: 1, maxLength: 3 })
    .map((values) => ({ schema: { enum: values }, value: values[0] })),
  fc
    .integer()
    .map((value) => ({ schema: { type: 'integer', exclusiveMinimum: value - 1, multipleOf: 1 }, value })),
  fc.integer().map((value) => ({ schema: { minimum: value, exclusiveMaximum: value + 0.5 }, value })),
  fc
    .uniqueArray(fc.integer(), { minLength: 1, maxLength: 3 })
    .map((values) => ({ schema: { enum: values }, value: values.at(-1) })),
  fc.constantFrom<Sample>(
    { schema: { type: 'boolean' }, value: true },
    { schema: { const: false }, value: false },
    { schema: { const: null }, value: null },
    { schema: { const: 'only', description: 'one' }, value: 'only' },
    { schema: { const: 5 }, value: 5 },
    { schema: { enum: ['', 'a', null, 3, true] }, value: '' },
    { schema: { enum: ['', 'a', null, 3, true] }, value: 3 },
    { schema: { enum: ['', 'a', null, 3, true] }, value: null },
    { schema: { type: ['string', 'null'], title: 'maybe' }, value: null },
    { schema: { type: ['string', 'integer'], minLength: 1, minimum: 3 }, value: 3 },
    { schema: {}, value: 'anything' },
    { schema: true, value: 7 },
    { schema: { not: { type: 'string' }, $comment: 'x' }, value: { a: 1 } },
    { schema: { type: 'string', nullable: true }, value: null },
  ),
)

const propertyName = fc.constantFrom('a', 'b', 'c', 'type', 'properties', '$ref', 'x y')

/** Schemas of all kinds, each with a value that it allows. References point to definitions named by their order. */
const sample = fc.letrec<{ any: Sample; array: Sample; object: Sample; mixed: Sample }>((tie) => ({
  any: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    tie('array'),
    tie('object'),
    tie('mixed'),
  ),
  array: fc.tuple(tie('any'), fc.nat({ max: 2 })).map(([item, count]) => ({
    schema: { type: 'array', items: item.schema, minItems: count, uniqueItems: false },
    value: Array.from({ length: count }, () => item.value),
  })),
  object: fc
    .uniqueArray(fc.tuple(propertyName, tie('any'), fc.boolean()), {
      maxLength: 3,
      selector: ([name]) => name,
    })
    .map((properties) => ({
      schema: {
        type: 'object',
        properties: Object.fromEntries(properties.map(([name, { schema }]) => [name, schema])),
        required: properties.filter(([, , isRequired]) => isRequired).map(([name]) => name),
        additionalProperties: false,
        $schema: 'http://json-schema.org/draft-07/schema#',
      },
      value: Object.fromEntries(properties.map(([name, { value }]) => [name, value])),
    })),
  mixed: fc
    .tuple(tie('any'), tie('any'), fc.constantFrom('anyOf', 'oneOf', 'null', 'allOf', 'beside'))
    .map(([one, other, how]): Sample => {
      switch (how) {
        case 'null':
          return { schema: { anyOf: [one.schema, { type: 'null' }], description: 'or none' }, value: null }
        case 'allOf':
          return { schema: { allOf: [one.schema, {}, true], title: 'all' }, value: one.value }
        case 'beside':
          return { schema: { anyOf: [one.schema, other.schema], nullable: true }, value: other.value }
        default:
          return { schema: { [how]: [one.schema, other.schema] }, value: one.value }
      }
    }),
}))

/** Every second subschema moved into `$defs`. */
function withReferences(schema: Schema | boolean): Schema {
  const $defs: Record<string, unknown> = {}
  let count = 0
  const moved = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value
    const inner = Array.isArray(value) ? value.map(schemaOrValue) : fieldsMoved(value as Schema)
    return inner
  }
  const schemaOrValue = (value: unknown): unknown => {
    const inner = moved(value)
    const isSchema = typeof inner === 'object' && inner !== null && !Array.isArray(inner)
    if (!isSchema || ++count % 2 === 0) return inner
    const name = `d/${count}~`
    $defs[name] = inner
    return { $ref: `#/$defs/d~1${count}~0` }
  }
  const fieldsMoved = (fields: Schema): Schema =>
    Object.fromEntries(
      Object.entries(fields).map(([name, value]) => {
        if (name === 'properties')
          return [
            name,
            Object.fromEntries(Object.entries(value as Schema).map(([n, v]) => [n, schemaOrValue(v)])),
          ]
        if (name === 'items') return [name, schemaOrValue(value)]
        return [name, ['anyOf', 'oneOf', 'allOf'].includes(name) ? moved(value) : value]
      }),
    )
  const whole = typeof schema === 'boolean' ? {} : (moved(schema) as Schema)
  return { ...whole, $defs }
}

t.test('no unsupported keyword is left, and what the schema allowed the subset allows', async (t) => {
  everyRun(t, { seed: SEED, numRuns: RUNS }, [sample.any, fc.boolean()], ({ schema, value }, refers) => {
    const source = refers ? withReferences(schema) : typeof schema === 'boolean' ? {} : schema
    const before = JSON.stringify(source)
    const subset = schemaSubset(source)
    checkSubset(subset)
    if (!allows(subset, value))
      throw new Error(`${JSON.stringify(value)} is refused by ${JSON.stringify(subset)}`)
    if (JSON.stringify(source) !== before) throw new Error('the source was changed')
  })
})

t.test('whatever a client sends for a schema gives one that is taken', async (t) => {
  const keyword = fc.constantFrom(
    ...['type', 'enum', 'const', 'anyOf', 'oneOf', 'allOf', '$ref', 'properties', 'required', 'items'],
    ...[
      'prefixItems',
      'minimum',
      'exclusiveMaximum',
      'minLength',
      'nullable',
      'description',
      'format',
      '__proto__',
    ],
  )
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom(
        null,
        true,
        false,
        0,
        -1.5,
        '',
        'string',
        'OBJECT',
        'array',
        'null',
        '#',
        '#/items',
        '#/%',
        'http://x',
      ),
      fc.array(tie('any'), { maxLength: 3 }),
      tie('object'),
    ),
    object: fc
      .array(fc.tuple(keyword, tie('any')), { maxLength: 4 })
      .map((entries) =>
        JSON.parse(`{${entries.map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`).join(',')}}`),
      ),
  }))
  everyRun(t, { seed: SEED, numRuns: RUNS }, [value.object], (schema) => {
    checkSubset(schemaSubset(schema as Schema))
  })
})

t.test('recursion is bounded: a definition within itself is given twice, then by type alone', async (t) => {
  const leaf = { type: 'OBJECT', nullable: true }
  const node = (next: object) => ({ type: 'OBJECT', properties: { next } })
  const schema = {
    type: 'object',
    properties: { list: { $ref: '#/$defs/node' } },
    $defs: {
      node: {
        type: 'object',
        properties: { next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
      },
    },
  }
  t.strictSame(schemaSubset(schema), {
    type: 'OBJECT',
    properties: { list: node({ ...node(leaf), nullable: true }) },
  })
  t.strictSame(schemaSubset({ $ref: '#' }), schemaSubset({}))
  const lists = (levels: number): Schema => ({
    type: 'ARRAY',
    items: levels === 0 ? schemaSubset({}) : lists(levels - 1),
  })
  t.strictSame(schemaSubset({ type: 'array', items: { $ref: '#' } }), lists(3))
})

t.test('definitions that multiply are cut off', async (t) => {
  const maxBytes = 1_000_000
  const levels = 40
  const doubled = (level: (next: object) => object): Schema => {
    const $defs: Record<string, object> = { [`d${levels}`]: { type: 'string' } }
    for (let i = 0; i < levels; i++) $defs[`d${i}`] = level({ $ref: `#/$defs/d${i + 1}` })
    return { $ref: '#/$defs/d0', $defs }
  }
  const schemas = [
    doubled((next) => ({ type: 'object', properties: { a: next, b: next } })),
    doubled((next) => ({ allOf: [next, next] })),
    doubled((next) => ({ anyOf: [next, next, { type: 'object', properties: { next } }] })),
    doubled((next) => ({
      allOf: [{ anyOf: [next, { type: 'null' }] }, { anyOf: [next, { type: 'integer' }] }],
    })),
  ]
  for (const schema of schemas) {
    const subset = schemaSubset(schema)
    checkSubset(subset)
    t.ok(JSON.stringify(subset).length < maxBytes)
  }
  let nested: Schema = { type: 'string' }
  for (let i = 0; i < 10_000; i++) nested = i % 2 === 0 ? { allOf: [nested] } : { anyOf: [nested] }
  checkSubset(schemaSubset(nested))
})

t.test('what the subset cannot say is described in words', async (t) => {
  t.strictSame(schemaSubset({ type: 'integer', enum: [3, 1], description: 'Level.' }), {
    type: 'INTEGER',
    description: 'Level. One of: 3, 1.',
    minimum: 1,
    maximum: 3,
  })
  t.strictSame(schemaSubset({ const: true }), { type: 'BOOLEAN', description: 'One of: true.' })
})

t.test('allOf: what holds of all members', async (t) => {
  const schema = {
    allOf: [
      { type: 'object', properties: { a: { type: 'number', minimum: 1 } }, required: ['a'] },
      {
        properties: { a: { type: 'integer', minimum: 3, maximum: 9 }, b: { enum: ['x', 'y'] } },
        required: ['b'],
      },
      { properties: { b: { enum: ['y', 'z'] } }, description: 'second' },
    ],
    description: 'first',
  }
  t.strictSame(schemaSubset(schema), {
    type: 'OBJECT',
    description: 'first',
    properties: {
      a: { type: 'INTEGER', minimum: 3, maximum: 9 },
      b: { type: 'STRING', enum: ['y'] },
    },
    required: ['a', 'b'],
  })
})

t.test('an object that can hold nothing', async (t) => {
  for (const schema of [{}, { type: 'object' }, { properties: {}, additionalProperties: false, title: 'x' }])
    t.equal(isEmptyObject(schema), true, JSON.stringify(schema))
  const others = [
    ...[{ type: 'string' }, { additionalProperties: true }, { properties: { a: {} } }, { $ref: '#/$defs/a' }],
    ...[{ allOf: [] }, { anyOf: [] }, { type: ['object', 'null'] }],
  ]
  for (const schema of others) t.equal(isEmptyObject(schema), false, JSON.stringify(schema))
})
