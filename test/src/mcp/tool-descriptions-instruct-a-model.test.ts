import t from 'tap'
import { Failure } from '../../../schemas/failure.ts'
import { call, PAGE, speak, tools } from './support.ts'

interface ToolJson {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: Schema
  readonly outputSchema: Schema
  readonly annotations: Record<string, unknown>
}
interface Schema {
  readonly type: string
  readonly required: string[]
  readonly properties: Record<string, Record<string, unknown>>
}

const listed = async () =>
  (await speak({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).json.result?.tools as ToolJson[]

t.test('six tools that only read, with their documented parameters', async (t) => {
  const found = await listed()
  t.same(
    found.map(({ name, inputSchema }) => [name, Object.keys(inputSchema.properties), inputSchema.required]),
    [
      ['search_wiki', ['q', 'limit', 'offset'], ['q']],
      ['read_page', ['id'], ['id']],
      ['read_pages', ['ids'], ['ids']],
      ['list_by_tag', ['tag'], ['tag']],
      ['backlinks', ['id'], ['id']],
      ['get_source', ['id'], ['id']],
    ],
  )
  for (const { name, title, description, inputSchema, outputSchema, annotations } of found) {
    t.match(annotations, { readOnlyHint: true, idempotentHint: true, openWorldHint: false }, name)
    t.ok(title && description.length > 50, name)
    t.equal(inputSchema.type, 'object')
    t.equal(outputSchema.type, 'object')
    for (const [parameter, { description: told }] of Object.entries(inputSchema.properties))
      t.match(told, /\.$/, `${name}: ${parameter} is explained`)
  }
  t.match(found[0]?.inputSchema.properties, {
    q: { maxLength: 1000 },
    limit: { type: 'integer', default: 10, minimum: 1, maximum: 50 },
    offset: { type: 'integer', default: 0, minimum: 0 },
  })
  t.match(found[2]?.inputSchema.properties.ids, { type: 'array', minItems: 1, maxItems: 25 })
})

t.test('what is found comes as data and as text', async (t) => {
  const { json } = await speak(call('read_page', { id: PAGE.id }))
  t.same(json.result?.structuredContent, PAGE)
  t.same(json.result?.content, [{ type: 'text', text: JSON.stringify(PAGE) }])
  t.not(json.result?.isError, true)
})

t.test('defaults stand in for what is left out', async (t) => {
  const asked: unknown[] = []
  const set = tools({
    search_wiki: async (input) => {
      asked.push(input)
      return { query: input.q, total_hits: 0, offset: 0, returned: 0, has_more: false, results: [] }
    },
  })
  await speak(call('search_wiki', { q: ' tides\0 ' }), { tools: set })
  await speak(call('search_wiki', { q: '潮汐', limit: 50, offset: 7 }), { tools: set })
  t.same(asked, [
    { q: 'tides', limit: 10, offset: 0 },
    { q: '潮汐', limit: 50, offset: 7 },
  ])
})

t.test('arguments that do not fit are named, and the model may try again', async (t) => {
  const cases: readonly (readonly [string, unknown, RegExp])[] = [
    ['search_wiki', undefined, /q: is required/],
    ['search_wiki', { q: '  ' }, /q: is required/],
    ['search_wiki', { q: 'a'.repeat(1001) }, /q: must have at most 1000 characters/],
    ['search_wiki', { q: 'a', limit: 51 }, /limit: .*50/],
    ['search_wiki', { q: 'a', limit: 0 }, /limit: .*1/],
    ['search_wiki', { q: 'a', limit: 1.5, offset: -1 }, /limit: .*int.*; offset: .*0/],
    ['read_page', { page: 'a' }, /id: .*It takes: id\.$/],
    ['read_page', { id: ' ' }, /id: must not be empty/],
    ['read_pages', { ids: [] }, /ids: must name a page/],
    ['read_pages', { ids: 'a,b' }, /ids: .*array/],
    ['read_pages', { ids: Array(26).fill('a') }, /ids: .*25/],
    ['read_pages', { ids: ['a', 7] }, /ids\.1: /],
    ['list_by_tag', {}, /tag: /],
  ]
  for (const [name, args, says] of cases) {
    const { status, json } = await speak(call(name, args))
    t.equal(status, 200)
    t.match(json.result, { isError: true, content: [{ type: 'text', text: says }] }, JSON.stringify(args))
    t.notOk(json.result && 'structuredContent' in json.result)
  }
})

t.test('a refusal goes to the model, in its own words', async (t) => {
  const set = tools({
    read_page: async () => {
      throw new Failure('not_found', 'There is no page "x" that this key can read.', { internal: 'secret' })
    },
  })
  const { body, json } = await speak(call('read_page', { id: 'x' }), { tools: set })
  t.same(json.result, {
    content: [{ type: 'text', text: 'There is no page "x" that this key can read.' }],
    isError: true,
  })
  t.notMatch(body, 'secret')
})

t.test('a tool that does not exist is an error of the protocol that names those that do', async (t) => {
  for (const name of ['write_page', '__proto__', 'toString', ''])
    t.match((await speak(call(name, {}))).json, {
      error: { code: -32602, message: /There is no tool .*search_wiki, read_page, read_pages/ },
    })
  t.match((await speak({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} })).json, {
    error: { code: /-3260[23]/ },
  })
})

t.test('what nobody foresaw ends the request and is shown to nobody', async (t) => {
  const set = tools({
    read_page: async () => {
      throw new Error('select * from secrets')
    },
  })
  await t.rejects(speak(call('read_page', { id: 'x' }), { tools: set }), { message: /secrets/ })
})
