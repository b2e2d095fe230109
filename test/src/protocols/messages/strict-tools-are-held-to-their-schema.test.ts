/** `strict` of a function reaches models that can be held to its schema. See docs/translation.md, "The request". */
import t from 'tap'
import { lookUp, sent } from './request.ts'

const OBJECT = { type: 'object', additionalProperties: false }
const parametersOf = (properties: object, more: object = {}) => ({
  ...OBJECT,
  properties,
  required: Object.keys(properties),
  ...more,
})
const strict = (parameters: object, name = 'f') => ({
  type: 'function',
  function: { name, parameters, strict: true },
})
const times = <Item>(count: number, item: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => item(index))
const named = (count: number, schema: object) =>
  Object.fromEntries(times(count, (index) => [`p${index}`, schema]))

const LEFT_OUT = 'strict (not for each tool: this model holds calls to fewer and simpler schemas)'
const strictOf = (tools: readonly object[], upstreamModel = 'claude-opus-4-6') => {
  const wire = sent({ tools }, {}, { upstreamModel })
  return {
    strict: wire.tools.map((tool: { strict?: boolean }) => tool.strict === true),
    schemas: wire.tools.map((tool: { input_schema: object }) => tool.input_schema),
    dropped: wire.dropped,
  }
}

t.test('strict: true, with the schema untouched', async (t) => {
  const schemas = [
    parametersOf({ city: { type: 'string', enum: ['Köln'] }, days: { type: ['integer', 'null'] } }),
    parametersOf({ at: { $ref: '#/$defs/at' } }, { $defs: { at: { anyOf: [{ type: 'string' }, OBJECT] } } }),
    OBJECT,
  ]
  const found = strictOf(schemas.map((schema) => strict(schema)))
  t.strictSame(found, { strict: [true, true, true], schemas, dropped: [] })
  t.strictSame(strictOf([lookUp]).strict, [false], 'of functions that ask for it')
})

t.test('no strict, and named, for a schema that the vendor refuses in it', async (t) => {
  const tree = { ...parametersOf({ next: { anyOf: [{ $ref: '#/$defs/tree' }, { type: 'null' }] } }) }
  const schemas = [
    parametersOf({ days: { type: 'integer', minimum: 1 } }),
    parametersOf({ open: { type: 'object', properties: {} } }),
    { type: 'object', properties: {} },
    parametersOf({ root: { $ref: '#' } }),
    parametersOf({ tree: { $ref: '#/$defs/tree' } }, { $defs: { tree } }),
  ]
  for (const schema of schemas) {
    const found = strictOf([strict(schema), strict(OBJECT, 'g')])
    t.strictSame(found, { strict: [false, true], schemas: [schema, OBJECT], dropped: [LEFT_OUT] })
  }
})

t.test('no strict for tools beyond the limits of one request', async (t) => {
  const count = (flags: readonly boolean[]) => flags.filter(Boolean).length
  const many = strictOf(times(22, (index) => strict(OBJECT, `f${index}`)))
  t.equal(count(many.strict), 20)
  t.strictSame(many.dropped, [LEFT_OUT])
  const maybe = { type: ['string', 'null'] }
  const unions = strictOf([
    strict(parametersOf(named(10, maybe))),
    strict(parametersOf(named(7, maybe)), 'g'),
  ])
  t.strictSame(unions.strict, [true, false], '16 parameters of several types')
  const optional = parametersOf(named(13, { type: 'string' }), { required: [] })
  t.strictSame(strictOf([strict(optional), strict(optional, 'g'), strict(OBJECT, 'h')]).strict, [
    true,
    false,
    true,
  ])
})

t.test('no strict, and named, for models without it', async (t) => {
  const found = strictOf([strict(OBJECT)], 'claude-opus-4-1')
  t.match(found, { strict: [false], dropped: ['strict'] })
})
