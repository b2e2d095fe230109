/** The Model Context Protocol. */
import t from 'tap'
import { Failure } from '../../../schemas/failure.ts'
import { call, NEWEST, PAGE, speak, speakNewest, tools } from './support.ts'

t.test('protocol is spoken', async (t) => {
  // The rules of the Model Context Protocol, "Streamable HTTP" and "Lifecycle", as far as a server without sessions has them.
  const initialize = (protocolVersion: string) => ({
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  })

  t.test('a version that both know is agreed on; else the server names its own', async (t) => {
    for (const version of ['2025-03-26', '2025-06-18', '2025-11-25']) {
      const { status, contentType, json } = await speak(initialize(version))
      t.equal(status, 200)
      t.equal(contentType, 'application/json')
      t.match(json, {
        id: 0,
        result: {
          protocolVersion: version,
          capabilities: { tools: {} },
          serverInfo: { name: 'tollgate', version: '1.2.3' },
          instructions: /search_wiki/,
        },
      })
    }
    const { json } = await speak(initialize('1999-01-01'))
    t.match(json.result?.protocolVersion, /^20\d\d-\d\d-\d\d$/)
  })

  t.test('no session is begun, and none is asked for', async (t) => {
    const { status, json } = await speak({ jsonrpc: '2.0', id: 'a', method: 'tools/list' })
    t.equal(status, 200)
    t.equal(json.id, 'a')
    t.same(Array.isArray(json.result?.tools) && json.result.tools.length, 6)
  })

  t.test('what wants no answer gets none', async (t) => {
    for (const message of [
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } },
      { jsonrpc: '2.0', method: 'notifications/nobody-knows' },
      { jsonrpc: '2.0', id: 1, result: {} },
    ])
      t.match(await speak(message), { status: 202, body: '' }, JSON.stringify(message))
  })

  t.test('ping is answered, an unknown method refused', async (t) => {
    t.same((await speak({ jsonrpc: '2.0', id: 5, method: 'ping' })).json, {
      jsonrpc: '2.0',
      id: 5,
      result: {},
    })
    for (const method of ['prompts/list', 'resources/list', 'tasks/get', 'nothing', '__proto__'])
      t.match(
        (await speak({ jsonrpc: '2.0', id: 5, method })).json,
        { id: 5, error: { code: -32601 } },
        method,
      )
  })

  t.test('what is not JSON is a parse error', async (t) => {
    for (const body of ['', '{'])
      t.match(await speak(body), { status: 400, json: { id: null, error: { code: -32700 } } }, body)
  })

  t.test('JSON that is no message is an invalid request', async (t) => {
    for (const body of [
      'null',
      '"text"',
      '7',
      '{}',
      '[]',
      '{"jsonrpc":"1.0","id":1,"method":"ping"}',
      '{"jsonrpc":"2.0","id":null,"method":"ping"}',
      '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
      '{"jsonrpc":"2.0","id":1}',
    ])
      t.match(await speak(body), { status: 400, json: { error: { code: -32600 } } }, body)
    t.match(await speak('[{"jsonrpc":"2.0","id":1,"method":"ping"},{}]'), {
      status: 400,
      json: { id: null, error: { code: -32600, message: /batch contains an invalid message/ } },
    })
    const many = new Array(101).fill({ jsonrpc: '2.0', id: 1, method: 'ping' })
    t.match(await speak(many), {
      status: 400,
      json: { error: { code: -32600, message: /must not exceed 100 messages/ } },
    })
  })

  t.test('wrong params are named, under the id of the request', async (t) => {
    for (const params of [[], 'text', { _meta: 5 }])
      t.match(
        await speak({ jsonrpc: '2.0', id: 4, method: 'ping', params }),
        { status: 400, json: { id: 4, error: { code: -32600 } } },
        JSON.stringify(params),
      )
    const wrong: [string, unknown, RegExp][] = [
      ['initialize', undefined, /params: /],
      [
        'initialize',
        { protocolVersion: 5, capabilities: {}, clientInfo: {} },
        /params\.protocolVersion: .*name: /,
      ],
      ['tools/list', { cursor: 5 }, /params\.cursor: /],
      ['tools/call', undefined, /params: /],
      ['tools/call', { name: 5 }, /params\.name: /],
      ['tools/call', { name: 'read_page', arguments: [] }, /params\.arguments: /],
    ]
    for (const [method, params, message] of wrong) {
      const { status, json } = await speak({ jsonrpc: '2.0', id: 'a', method, params })
      t.match({ status, json }, { status: 200, json: { id: 'a', error: { code: -32602, message } } }, method)
    }
    const { json } = await speak([
      { jsonrpc: '2.0', id: 1, method: 'tools/call' },
      { jsonrpc: '2.0', id: 2, method: 'ping' },
    ])
    t.match(
      json,
      [
        { id: 1, error: { code: -32602 } },
        { id: 2, result: {} },
      ],
      'the rest of a batch is answered',
    )
  })

  t.test('a call that asks for a task is answered at once', async (t) => {
    const asked = call('read_page', { id: 'page_1' })
    const { json } = await speak({ ...asked, params: { ...asked.params, task: { ttl: 1000 } } })
    t.match(json.result?.structuredContent, { id: 'page_1' })
  })

  t.test('a protocol version that does not exist is refused', async (t) => {
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    t.match(await speak(ping, { protocolVersion: '2025-06-18' }), { status: 200 })
    t.match(await speak(ping, { protocolVersion: '2019-01-01' }), {
      status: 400,
      json: { error: { message: /Unsupported protocol version/ } },
    })
    t.equal((await speak(ping, { protocolVersion: 'vé\u4e16' })).status, 400)
  })

  t.test('a client that takes JSON is answered, and JSON is what must be sent', async (t) => {
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    for (const accept of [
      '',
      '*/*',
      'application/json',
      'application/*',
      'text/event-stream, application/json',
    ])
      t.equal((await speak(ping, { accept })).status, 200, accept)
    for (const accept of ['text/event-stream', 'text/html', 'text/h\u4e16'])
      t.equal((await speak(ping, { accept })).status, 406, accept)
    t.equal((await speak(ping, { contentType: 'application/json; charset=utf-8' })).status, 200)
    for (const contentType of ['', 'text/plain', 'x/\u4e16'])
      t.equal((await speak(ping, { contentType })).status, 415, contentType)
  })

  t.test('a batch is answered as a batch, one call after the other', async (t) => {
    let running = 0
    let most = 0
    const set = tools({
      list_by_tag: async ({ tag }) => {
        most = Math.max(most, ++running)
        await new Promise(setImmediate)
        running--
        return { tag, returned: 0, has_more: false, pages: [] }
      },
    })
    const { status, json } = await speak(
      [call('list_by_tag', { tag: 'a' }, 1), call('nothing', {}, 2), call('list_by_tag', { tag: 'b' }, 3)],
      { tools: set },
    )
    t.equal(status, 200)
    const answers = json as unknown as { id: number; result?: unknown; error?: unknown }[]
    t.same(
      answers.map(({ id, error }) => [id, error !== undefined]),
      [
        [1, false],
        [2, true],
        [3, false],
      ],
    )
    t.equal(most, 1)
  })

  t.test('a call that its own batch cancels is abandoned', async (t) => {
    const set = tools({ read_page: () => new Promise(() => undefined) })
    const batch = [
      call('read_page', { id: 'a' }, 9),
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9 } },
    ]
    await t.rejects(speak(batch, { tools: set, boundMs: 50 }), { code: 'service_unavailable' })
  })

  t.test('a client that leaves ends the work', async (t) => {
    const abort = new AbortController()
    const set = tools({
      read_page: () => {
        abort.abort(new Error('gone'))
        return new Promise(() => undefined)
      },
    })
    await t.rejects(speak(call('read_page', { id: 'a' }), { tools: set, signal: abort.signal }), {
      message: 'gone',
    })
  })

  t.test('a message that nests too deep is refused', async (t) => {
    const deep = `${'['.repeat(3000)}${']'.repeat(3000)}`
    const message = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_wiki","arguments":{"q":${deep}}}}`
    await t.rejects(speak(message), { code: 'invalid_request', status: 400 })
  })
})

t.test('the revision without a handshake is spoken', async (t) => {
  const IDENTITY = { 'io.modelcontextprotocol/serverInfo': { name: 'tollgate', version: '1.2.3' } }
  const LASTS = { resultType: 'complete', ttlMs: Number, cacheScope: 'public', _meta: IDENTITY }

  t.test('a client discovers what the server is', async (t) => {
    const { status, contentType, json } = await speakNewest('server/discover')
    t.equal(status, 200)
    t.equal(contentType, 'application/json')
    t.match(json.result, {
      ...LASTS,
      supportedVersions: [NEWEST],
      capabilities: { tools: {} },
      instructions: /search_wiki/,
    })
  })

  t.test('tools are listed and called, with the result of any revision', async (t) => {
    const listed = await speakNewest('tools/list')
    t.match(listed.json.result, LASTS)
    t.same(
      listed.json.result?.tools,
      (await speak({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).json.result?.tools,
    )
    const { json } = await speakNewest('tools/call', { name: 'read_page', arguments: { id: PAGE.id } })
    t.match(json.result, { resultType: 'complete', structuredContent: PAGE, _meta: IDENTITY })
    t.match((await speakNewest('tools/call', { name: 'read_page', arguments: {} })).json.result, {
      isError: true,
      content: [{ text: /id: it is missing/ }],
    })
  })

  t.test('another revision is refused with those that are spoken', async (t) => {
    t.match(await speakNewest('tools/list', {}, { version: '2030-01-01' }), {
      status: 400,
      json: { id: 1, error: { code: -32022, data: { supported: [NEWEST], requested: '2030-01-01' } } },
    })
  })

  t.test('headers say what the body says', async (t) => {
    const params = { name: 'read_page', arguments: { id: PAGE.id } }
    for (const wrong of [
      { method: 'tools/list' },
      { method: '' },
      { name: 'backlinks' },
      { name: '' },
      { protocolVersion: '2025-11-25' },
      { protocolVersion: '' },
    ])
      t.match(
        await speakNewest('tools/call', params, wrong),
        { status: 400, json: { id: 1, error: { code: -32020 } } },
        JSON.stringify(wrong),
      )
    const bare = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    t.match(await speak(bare, { protocolVersion: NEWEST, method: 'tools/list' }), {
      status: 400,
      json: { error: { code: -32602 } },
    })
  })

  t.test('wrong params are named', async (t) => {
    t.match(await speakNewest('tools/list', { cursor: 5 }), {
      status: 200,
      json: { id: 1, error: { code: -32602, message: /params\.cursor: / } },
    })
    t.match(await speakNewest('tools/call', { name: 'nothing' }), {
      json: { id: 1, error: { code: -32602, message: /There is no tool "nothing"/ } },
    })
  })

  t.test('what the revision or this server does not have is no method', async (t) => {
    for (const method of ['ping', 'initialize', 'prompts/list', 'subscriptions/listen', 'nothing'])
      t.match(
        await speakNewest(method, { notifications: {} }),
        { status: 404, json: { id: 1, error: { code: -32601 } } },
        method,
      )
  })

  t.test('what nobody foresaw ends the request', async (t) => {
    const set = tools({
      read_page: async () => {
        throw new Error('select * from secrets')
      },
    })
    const params = { name: 'read_page', arguments: { id: 'x' } }
    await t.rejects(speakNewest('tools/call', params, { tools: set }), { message: /secrets/ })
  })

  t.test('time and clients that leave end it too', async (t) => {
    const set = tools({ read_page: () => new Promise(() => undefined) })
    const params = { name: 'read_page', arguments: { id: 'x' } }
    await t.rejects(speakNewest('tools/call', params, { tools: set, boundMs: 50 }), {
      code: 'service_unavailable',
    })
    const abort = new AbortController()
    const leaving = tools({
      read_page: () => {
        abort.abort(new Error('gone'))
        return new Promise(() => undefined)
      },
    })
    const left = speakNewest('tools/call', params, { tools: leaving, signal: abort.signal })
    await t.rejects(left, { message: 'gone' })
  })
})

t.test('tool descriptions instruct a model', async (t) => {
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
})
