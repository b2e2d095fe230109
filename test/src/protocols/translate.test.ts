/** Translation between protocols: fields, schemas, names, numbers. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { toCanonicalBody } from '../../../src/core/json/canonical.ts'
import {
  isEmptyObject,
  schemaSubset,
} from '../../../src/protocols/generate-content/translation/schema-subset.ts'
import { protocolAdapter, READERS } from '../../../src/protocols/registry.ts'
import { everyRun } from '../../support/every-run.ts'
import { encodeOptions } from './encode-options.ts'
import * as toGenerateContent from './generate-content/requests.ts'
import { TO_GENERATE_CONTENT } from './generate-content/streams.ts'
import * as toMessages from './messages/request.ts'
import { HI, OPTIONS } from './messages/request.ts'
import { chatCall, TO_MESSAGES } from './messages/streams.ts'
import { chatWith } from './request/plain-requests.ts'

t.test('every field is translated or named', async (t) => {
  // Each field of a public chat-completions request, and those of other vendors that clients send, is said to an upstream
  // of another protocol or named in the warning. A value that changes nothing is neither.
  const FUNCTION = { name: 'f', parameters: { type: 'object', properties: { a: { type: 'string' } } } }
  const TOOL = { type: 'function', function: FUNCTION }
  const SCHEMA = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }

  interface Case {
    /** A value with a meaning. */
    readonly value: unknown
    /** Other fields that it requires. */
    readonly beside?: object
    /** Values that ask for the default. */
    readonly defaults?: readonly unknown[]
  }

  /** What the gateway itself obeys; `max_tokens` reaches the translation as the call's output limit. */
  const OBEYED = ['model', 'messages', 'stream', 'max_tokens', 'max_completion_tokens', 'stream_options']

  const PUBLIC: Readonly<Record<string, Case>> = {
    audio: { value: { voice: 'Kore', format: 'pcm16' }, beside: { modalities: ['text', 'audio'] } },
    frequency_penalty: { value: 0.5, defaults: [0] },
    function_call: { value: { name: 'f' }, beside: { functions: [FUNCTION] } },
    functions: { value: [FUNCTION], defaults: [[]] },
    logit_bias: { value: { 50256: -100 }, defaults: [{}] },
    logprobs: { value: true, defaults: [false] },
    metadata: { value: { order: '7' }, defaults: [{}] },
    modalities: { value: ['text', 'audio'], defaults: [['text']] },
    moderation: { value: { model: 'm' } },
    n: { value: 2, defaults: [1] },
    parallel_tool_calls: { value: false, beside: { tools: [TOOL] }, defaults: [true] },
    prediction: { value: { type: 'content', content: 'x' } },
    presence_penalty: { value: 0.5, defaults: [0] },
    prompt_cache_key: { value: 'k', defaults: [''] },
    prompt_cache_options: { value: { mode: 'x' }, defaults: [{}] },
    prompt_cache_retention: { value: '24h', defaults: ['in_memory'] },
    reasoning_effort: { value: 'low', defaults: ['none'] },
    response_format: {
      value: { type: 'json_schema', json_schema: { name: 'x', schema: SCHEMA } },
      defaults: [{ type: 'text' }],
    },
    safety_identifier: { value: 'u-1', defaults: [''] },
    seed: { value: 7 },
    service_tier: { value: 'flex', defaults: ['auto', 'default'] },
    stop: { value: ['END'], defaults: [[]] },
    store: { value: true, defaults: [false] },
    temperature: { value: 0.5 },
    tool_choice: { value: 'required', beside: { tools: [TOOL] } },
    tools: { value: [TOOL], defaults: [[]] },
    top_logprobs: { value: 3, beside: { logprobs: true }, defaults: [0] },
    top_p: { value: 0.5 },
    user: { value: 'u-1', defaults: [''] },
    verbosity: { value: 'low', defaults: ['medium'] },
    web_search_options: { value: {} },
  }

  const OF_OTHER_VENDORS: Readonly<Record<string, Case>> = {
    cache_control: { value: { type: 'ephemeral' } },
    enable_thinking: { value: true, defaults: [false] },
    include_reasoning: { value: false, beside: { reasoning_effort: 'low' }, defaults: [true] },
    min_p: { value: 0.1, defaults: [0] },
    reasoning: {
      value: { effort: 'low' },
      defaults: [{ effort: 'none' }, { enabled: false }, {}, { effort: null }],
    },
    repetition_penalty: { value: 1.2, defaults: [1] },
    thinking: { value: { type: 'enabled', budget_tokens: 2000 }, defaults: [{ type: 'disabled' }, {}] },
    thinking_budget: { value: 2000, beside: { enable_thinking: true } },
    top_a: { value: 0.1, defaults: [0] },
    top_k: { value: 40, defaults: [0, -1] },
    transforms: { value: ['middle-out'] },
    something_new: { value: 1 },
  }

  t.test('the list has every field that the openai SDK knows', async (t) => {
    const url = new URL(
      '../../../node_modules/openai/resources/chat/completions/completions.d.ts',
      import.meta.url,
    )
    const [, params] = readFileSync(url, 'utf8').split('export interface ChatCompletionCreateParamsBase {')
    const fields = params!.slice(0, params!.indexOf('\n}')).matchAll(/^ {4}([a-z_]+)\??:/gm)
    const listed = new Set([...OBEYED, ...Object.keys(PUBLIC)])
    t.same(
      [...fields].map(([, name]) => name!).filter((name) => !listed.has(name)),
      [],
    )
  })

  const UPSTREAMS = {
    messages: (body: object) => toMessages.sent(body),
    'generate-content': (body: object) => toGenerateContent.sent(body),
  }

  /** Without a value in it. */
  const isNothing = (value: unknown): boolean =>
    value === null ||
    (typeof value === 'object' && Object.values(value as object).every((inner) => inner === null))

  for (const [upstream, sent] of Object.entries(UPSTREAMS))
    for (const [field, { value, beside = {}, defaults = [] }] of Object.entries({
      ...PUBLIC,
      ...OF_OTHER_VENDORS,
    }))
      t.test(`${upstream}: ${field}`, async (t) => {
        const { dropped: before, ...without } = sent(beside)
        const { dropped, ...wire } = sent({ ...beside, [field]: value })
        const isSaid = JSON.stringify(wire) !== JSON.stringify(without)
        const isNamed = dropped.some((name: string) => name.split(' ')[0] === field)
        t.ok(isSaid || isNamed, `neither said nor named: ${dropped}`)
        for (const nothing of [...defaults, null]) {
          const { dropped: named, ...rest } = sent({ ...beside, [field]: nothing })
          t.same(named, before, `named although ${JSON.stringify(nothing)} says nothing`)
          if (isNothing(nothing)) t.same(rest, without, `${JSON.stringify(nothing)} changes the request`)
        }
      })

  t.test('the output limit, by either name, is what the upstream gets', async (t) => {
    t.equal(toMessages.sent({}, { outputLimit: 5 }).max_tokens, 5)
    t.equal(toGenerateContent.sent({}, {}, { outputLimit: 5 }).generationConfig.maxOutputTokens, 5)
  })

  for (const [upstream, sent] of Object.entries(UPSTREAMS))
    t.test(`${upstream}: what messages say beyond their text is named`, async (t) => {
      const named = (...messages: object[]) => sent({ messages }).dropped
      t.same(named({ role: 'user', content: 'Hi', name: 'Ann' }), ['messages.name'])
      t.same(named(toMessages.HI, { role: 'assistant', content: 'x', audio: { id: 'audio_1' } }), [
        'messages.audio',
      ])
      const image_url = { url: `data:image/png;base64,${toMessages.PNG}`, detail: 'high' }
      t.same(named({ role: 'user', content: [{ type: 'image_url', image_url }] }), ['image_url.detail'])
      t.same(sent({ stream_options: { include_obfuscation: true } }).dropped, [
        'stream_options.include_obfuscation',
      ])
    })

  const MARKED = { cache_control: { type: 'ephemeral' } }
  const PART = { type: 'text', text: 'x' }
  /** Wherever a cache marker may stand. */
  const MARKED_REQUESTS: Readonly<Record<string, object>> = {
    request: MARKED,
    message: { messages: [{ role: 'user', content: 'Hi', ...MARKED }] },
    'instruction, by its part': {
      messages: [{ role: 'system', content: [{ ...PART, ...MARKED }] }, toMessages.HI],
    },
    part: { messages: [{ role: 'user', content: [{ ...PART, ...MARKED }, PART] }] },
    'message whose last part is blank': {
      messages: [{ role: 'user', content: [PART, { type: 'text', text: ' ' }], ...MARKED }],
    },
    tool: { tools: [{ ...TOOL, ...MARKED }] },
    function: { tools: [{ type: 'function', function: { ...FUNCTION, ...MARKED } }] },
    search: { tools: [{ type: 'web_search', ...MARKED }] },
  }

  for (const [place, request] of Object.entries(MARKED_REQUESTS))
    t.test(`the cache marker of a ${place} is said or named`, async (t) => {
      const { dropped, ...wire } = toMessages.sent(request)
      t.match(JSON.stringify(wire), '"cache_control":{"type":"ephemeral"}')
      t.same(dropped, [])
      t.same(toGenerateContent.sent(request).dropped, ['cache_control'])
    })

  for (const [upstream, sent] of Object.entries(UPSTREAMS))
    t.test(`${upstream}: a breakpoint of the prompt cache is named`, async (t) => {
      const part = { ...PART, prompt_cache_breakpoint: { mode: 'explicit' } }
      t.same(sent({ messages: [{ role: 'user', content: [part] }] }).dropped, ['prompt_cache_breakpoint'])
    })

  t.test('generate-content: a voice of the client’s own is named', async (t) => {
    const audio = { voice: { id: 'voice_1' }, format: 'pcm16' }
    t.same(toGenerateContent.sent({ modalities: ['text', 'audio'], audio }).dropped, ['audio.voice'])
  })

  t.test('names of fields are bounded in number, and stand in a header', async (t) => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`field_${index}`, 1]))
    const { dropped } = toMessages.sent({ ...many, 'x: y;\r\n': 1, ü: 1, ['z'.repeat(99)]: 1 })
    t.equal(dropped.length, 103)
    t.same(dropped.slice(-3), ['x:?y???', '?', 'z'.repeat(64)])
    const beyond = Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`field_${index}`, 1]))
    t.equal(toMessages.sent(beyond).dropped.length, 1000)
  })
})

t.test('schema reduced allows what it allowed', async (t) => {
  // What a schema becomes for models that take a subset of OpenAPI.
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
          properties.every(
            ([name, property]) => !Object.hasOwn(fields, name) || allows(property, fields[name]),
          )
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
    for (const schema of [
      {},
      { type: 'object' },
      { properties: {}, additionalProperties: false, title: 'x' },
    ])
      t.equal(isEmptyObject(schema), true, JSON.stringify(schema))
    const others = [
      ...[
        { type: 'string' },
        { additionalProperties: true },
        { properties: { a: {} } },
        { $ref: '#/$defs/a' },
      ],
      ...[{ allOf: [] }, { anyOf: [] }, { type: ['object', 'null'] }],
    ]
    for (const schema of others) t.equal(isEmptyObject(schema), false, JSON.stringify(schema))
  })
})

t.test('names that models choose are kept', async (t) => {
  // A name that would change an object, and names that differ only in case, come through each translation as they are.
  const CHOSEN = '{"__proto__":{"polluted":true},"Name":1,"name":2,"inner":{"__proto__":3,"NAME":4}}'
  const SCHEMA = `{"type":"object","properties":${CHOSEN.replace(/\d/g, '{"type":"string"}').replace('true', '{"type":"string"}')}}`

  const REQUEST = `{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":${SCHEMA}}}],"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":${JSON.stringify(CHOSEN)}}}]},{"role":"tool","tool_call_id":"1","content":${JSON.stringify(CHOSEN)}}]}`

  const call = () =>
    READERS['chat-completions'].read({
      query: '',
      body: Buffer.from(REQUEST),
    })

  const sentTo = (to: 'chat-completions' | 'messages' | 'generate-content', upstreamModel: string): string =>
    protocolAdapter('chat-completions', to)
      .encodeRequest(call(), encodeOptions({ upstreamModel }))
      .body.toString()

  t.afterEach(() => {
    if ('polluted' in {}) throw new Error('a prototype was changed')
  })

  t.test('requests', async (t) => {
    const messages = sentTo('messages', 'claude-sonnet-4-5')
    t.match(messages, `"input":${CHOSEN}`)
    t.match(messages, `"input_schema":${SCHEMA}`)
    t.match(messages, `"content":${JSON.stringify(CHOSEN)}`)
    const generate = sentTo('generate-content', 'gemini-2.5-pro')
    t.match(generate, `"args":${CHOSEN}`)
    t.match(generate, `"response":${CHOSEN}`)
    t.match(generate, `"parametersJsonSchema":${SCHEMA}`)
    const older = JSON.parse(sentTo('generate-content', 'gemini-1.5-pro'))
    const { properties } = older.tools[0].functionDeclarations[0].parameters
    t.same(Object.keys(properties), ['__proto__', 'Name', 'name', 'inner'])
    t.match(sentTo('chat-completions', 'theirs'), `"parameters":${SCHEMA}`)
  })

  t.test('answers', async (t) => {
    const argumentsIn = (from: 'messages' | 'generate-content', answer: string) => {
      const { body } = protocolAdapter('chat-completions', from).readWhole(call(), Buffer.from(answer))
      return JSON.parse(body.toString()).choices[0].message.tool_calls[0].function.arguments
    }
    t.equal(
      argumentsIn(
        'messages',
        `{"id":"a","type":"message","content":[{"type":"tool_use","id":"1","name":"f","input":${CHOSEN}}],"usage":{"input_tokens":1,"output_tokens":1}}`,
      ),
      CHOSEN,
    )
    t.equal(
      argumentsIn(
        'generate-content',
        `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":${CHOSEN}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1}}`,
      ),
      CHOSEN,
    )
  })
})

t.test('numbers keep their digits', async (t) => {
  // A number passes through a translation, and into what two requests are compared by, with the digits it was written with.
  const ARGUMENTS = '{"id":12345678901234567890,"huge":1e400,"exact":1.0,"small":-0.10000000000000000001}'

  t.test('arguments of a call in a request', async (t) => {
    const call = { id: 'call_1', type: 'function', function: { name: 'find', arguments: ARGUMENTS } }
    const messages = [
      HI,
      { role: 'assistant', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: ARGUMENTS },
    ]
    const body = chatCall({ messages })
    t.match(TO_MESSAGES.encodeRequest(body, OPTIONS).body.toString(), `"input":${ARGUMENTS}`)
    const wire = TO_GENERATE_CONTENT.encodeRequest(body, OPTIONS).body.toString()
    t.match(wire, `"args":${ARGUMENTS}`)
    t.match(wire, `"response":${ARGUMENTS}`)
  })

  t.test('arguments of a call in an answer', async (t) => {
    const input = '{"id":12345678901234567890,"huge":1e400}'
    const quoted = JSON.stringify(input)
    const message = `{"type":"message","id":"m","content":[{"type":"tool_use","id":"a","name":"find","input":${input}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}`
    t.match(TO_MESSAGES.readWhole(chatCall(), Buffer.from(message)).body.toString(), `"arguments":${quoted}`)
    const candidate = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"find","args":${input}}}]},"finishReason":"STOP"}]}`
    t.match(
      TO_GENERATE_CONTENT.readWhole(chatCall(), Buffer.from(candidate)).body.toString(),
      `"arguments":${quoted}`,
    )
    const stream = TO_GENERATE_CONTENT.openStream(chatCall())
    t.match(String(stream.push(Buffer.from(`data: ${candidate}\n\n`))), `"arguments":${quoted}`)
  })

  t.test('an answer that nests too deep is none', async (t) => {
    const args = `${'{"a":'.repeat(3000)}1${'}'.repeat(3000)}`
    const candidate = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"find","args":${args}}}]},"finishReason":"STOP"}]}`
    t.equal(TO_GENERATE_CONTENT.readWhole(chatCall(), Buffer.from(candidate)).isAnswer, false)
    const message = `{"type":"message","content":[{"type":"tool_use","id":"a","name":"find","input":${args}}]}`
    t.equal(TO_MESSAGES.readWhole(chatCall(), Buffer.from(message)).isAnswer, false)
  })

  t.test('two bodies that differ in one digit are two', async (t) => {
    const canonical = (text: string) => String(toCanonicalBody(Buffer.from(text)))
    t.not(canonical('{"a":9007199254740993}'), canonical('{"a":9007199254740992}'))
    t.not(canonical('{"a":1e400}'), canonical('{"a":null}'))
    t.not(canonical('{"a":1e400}'), canonical('{"a":1e401}'))
    t.equal(canonical('{"a":9007199254740993.0, "b": [1.0]}'), canonical('{"b":[1],"a":9007199254740993}'))
  })
})

t.test('searches are translated by every name', async (t) => {
  // A search is translated under each name that it may have, and where its options stand in place of a tool.
  type Upstream = 'messages' | 'generate-content'

  function sent(upstream: Upstream, more: object) {
    const { body, dropped } = protocolAdapter('chat-completions', upstream).encodeRequest(
      chatWith('chat-completions', more),
      encodeOptions(),
    )
    return { tools: JSON.parse(body.toString()).tools as readonly object[], dropped }
  }

  function sentTools(upstream: Upstream, more: object): readonly object[] {
    const { tools, dropped } = sent(upstream, more)
    t.same(dropped, [])
    return tools
  }

  const ASKED = [
    ...['web_search', 'web_search_preview', 'googleSearch', 'google_search_retrieval'].map((type) => ({
      tools: [{ type }],
    })),
    { web_search_options: {} },
    { web_search_options: {}, tools: [{ type: 'googleSearch' }] },
  ]

  for (const asked of ASKED)
    t.test(JSON.stringify(asked), async (t) => {
      t.match(sentTools('messages', asked), [{ type: /^web_search_\d{8}$/, name: 'web_search' }])
      t.same(sentTools('generate-content', asked), [{ googleSearch: {} }])
      t.equal(sentTools('messages', asked).length, 1)
    })

  t.test('where the searcher is goes with it', async (t) => {
    const approximate = { country: 'CH' }
    const asked = { web_search_options: { user_location: { type: 'approximate', approximate } } }
    t.match(sentTools('messages', asked), [{ user_location: { type: 'approximate', country: 'CH' } }])
  })

  t.test('options that the upstream does not have are named', async (t) => {
    const options = { search_context_size: 'high', user_location: { type: 'approximate', country: 'CH' } }
    for (const asked of [{ web_search_options: options }, { tools: [{ type: 'web_search', ...options }] }]) {
      t.same(sent('messages', asked).dropped, ['search_context_size'])
      t.same(sent('generate-content', asked).dropped, ['search_context_size', 'user_location'])
    }
  })

  t.test('the default of an option is not named', async (t) => {
    const asked = { web_search_options: { search_context_size: 'medium' } }
    for (const upstream of ['messages', 'generate-content'] as const)
      t.same(sent(upstream, asked).dropped, [])
  })
})
