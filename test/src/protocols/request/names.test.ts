/** Names in request bodies: known, foreign, missing, or of server tools. */
import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { readQuery } from '../../../../pipelines/calls/query.ts'
import { contentModelsQuery } from '../../../../schemas/accounts/models.ts'
import { chatCompletionsRequest } from '../../../../schemas/chat/chat-completions.ts'
import { translatableChatRequest } from '../../../../schemas/chat/chat-completions-conversation.ts'
import { generateContentRequest } from '../../../../schemas/chat/generate-content.ts'
import { countTokensRequest, messagesRequest } from '../../../../schemas/chat/messages.ts'
import { responsesRequest } from '../../../../schemas/chat/responses.ts'
import {
  CHAT_PROTOCOLS,
  type ChatProtocol,
  SERVER_TOOLS,
  type ServerTool,
} from '../../../../schemas/config/catalog.ts'
import { ENDPOINTS } from '../../../../schemas/endpoints/index.ts'
import type { Failure } from '../../../../schemas/failure.ts'
import { listNames, type NameSet } from '../../../../src/core/json/names.ts'
import { readAgentRequest } from '../../../../src/protocols/chat-completions/agent-body.ts'
import { readChatCall } from '../../../../src/protocols/chat-completions/dialect.ts'
import { generateContentDialect } from '../../../../src/protocols/generate-content/dialect.ts'
import { messagesCount, messagesDialect } from '../../../../src/protocols/messages/dialect.ts'
import { readJsonBody } from '../../../../src/protocols/request/client-json.ts'
import { readPlace } from '../../../../src/protocols/request/contract-place.ts'
import { PRICED_FIELDS, STORED_STATE_FIELDS } from '../../../../src/protocols/request/foreign-fields.ts'
import {
  CHAT_COMPLETIONS_NAMES,
  GENERATE_CONTENT_NAMES,
  MESSAGES_NAMES,
  RESPONSES_NAMES,
} from '../../../../src/protocols/request/known-names.ts'
import { REFUSED_MODEL_MAX_CHARS, readRefusedModel } from '../../../../src/protocols/request/refused-model.ts'
import { ROUTING_FIELDS, SERVER_FEATURES } from '../../../../src/protocols/request/routing-fields.ts'
import { responsesDialect } from '../../../../src/protocols/responses/dialect.ts'
import { everyRun } from '../../../support/every-run.ts'
import { chatWith, PLAIN_REQUESTS, readBody } from './plain-requests.ts'

t.test('names are read in one way alone', async (t) => {
  // A body passes only if every parser reads the same fields in it, whatever it does with case, escapes and duplicates.
  const SEED = 18
  const RUNS = 2000

  /** Reads a body as each protocol does; `%` in `usual` is where more may stand, in the request and in its first part. */
  const PROTOCOLS = {
    'chat-completions': {
      read: (body: Buffer): unknown => readChatCall(body),
      usual: '{"model":"ours","messages":[{"role":"user","content":[{"type":"text","text":"hi"@}]}]%}',
    },
    agents: {
      read: (body: Buffer): unknown => readAgentRequest(body),
      usual: '{"messages":[{"role":"user","content":[{"type":"text","text":"hi"@}]}]%}',
    },
    messages: {
      read: (body: Buffer): unknown => messagesDialect.read({ query: '', body }),
      usual:
        '{"model":"ours","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"hi"@}]}]%}',
    },
    count_tokens: {
      read: (body: Buffer): unknown => messagesCount.read({ query: '', body }),
      usual: '{"model":"ours","messages":[{"role":"user","content":[{"type":"text","text":"hi"@}]}]%}',
    },
    responses: {
      read: (body: Buffer): unknown => responsesDialect.read({ query: '', body }),
      usual: '{"model":"ours","input":[{"role":"user","content":[{"type":"input_text","text":"hi"@}]}]%}',
    },
    'generate-content': {
      read: (body: Buffer): unknown => generateContentDialect.read({ model: 'ours', query: '', body }),
      usual: '{"contents":[{"role":"user","parts":[{"text":"hi"@}]}]%}',
    },
  }

  const bodyOf = (usual: string, atTop: string, inPart = ''): Buffer =>
    Buffer.from(usual.replace('%', atTop).replace('@', inPart))

  for (const [protocol, { read, usual }] of Object.entries(PROTOCOLS))
    t.test(protocol, async (t) => {
      const refused = (message: RegExp, atTop: string, inPart = '') =>
        t.throws(
          () => read(bodyOf(usual, atTop, inPart)),
          { code: 'invalid_request', status: 400, message },
          atTop + inPart,
        )
      const taken = (atTop: string, inPart = '') =>
        t.doesNotThrow(() => read(bodyOf(usual, atTop, inPart)), atTop + inPart)
      const variants = [
        ['Model', 'Model'],
        ['MODEL', 'MODEL'],
        ['mode\u217c', 'mode\u217c'],
        ['\uff4dodel', '\uff4dodel'],
        ['model\\u0000', 'model\\\\u0000'],
        ['mo\u00addel', 'mo\\\\u00addel'],
        ['Stream', 'Stream'],
        ['\\u017ftream', '\u017ftream'],
      ]
      for (const [name, shown] of variants)
        refused(new RegExp(`'${shown}' is not valid: it differs from '(model|stream)'`), `,"${name}":true`)
      refused(/'__proto__'/, ',"__proto__":{"stream":true}')
      refused(/'__proto__'/, ',"__proto\\u005f_":1')
      refused(/'x.*' is not valid: its name holds a control character/, ',"x\\u0000":1')
      refused(/'x' is not valid: it occurs more than once/, ',"x":1,"x":1')
      refused(/'x' is not valid: it occurs more than once/, ',"x":1,"\\u0078":1')
      refused(/'X' is not valid: it is given together with 'x'/, ',"x":1,"X":1')
      refused(/'k' is not valid: it is given together with '\u212a'/, ',"\u212a":1,"k":2')
      refused(/'x\.y\[0\]\.k' is not valid: it occurs more than once/, ',"x":{"y":[{"k":1,"\\u006b":2}]}')
      refused(/\[0\]\.(content|parts)\[0\]\.Text' is not valid: it differs from 'text'/, '', ',"Text":"ho"')
      refused(/\.x' is not valid: it occurs more than once/, '', ',"x":1,"x":2')
      taken(',"x":{"Model":1,"Ünïcode":2,"":3}')
      taken(',"x":{"y":[{"\u212a":1,"k":2,"K":3,"__proto__":{"__proto__":4,"a\\u0000":5}}]}')
      taken(',"x_extra":{"a":{"stream":1},"b":{"stream":2}}', ',"x":1')
      if (protocol !== 'agents' && protocol !== 'generate-content')
        refused(/'model'.*more than once/, ',"\\u006dodel":"dear"')
    })

  t.test('chat-completions: stream options hold what is known', async (t) => {
    const { read, usual } = PROTOCOLS['chat-completions']
    for (const options of [
      '{"__proto__":1}',
      '{"x":1}',
      '{"include_usage":true,"x":null}',
      '{"Include_Usage":true}',
      '{"include_usage":true,"include_usage":false}',
    ])
      t.throws(() => read(bodyOf(usual, `,"stream":true,"stream_options":${options}`)), {
        code: 'invalid_request',
        message: /stream_options/,
      })
    for (const options of ['null', '{}', '{"include_usage":null}', '{"include_obfuscation":false}'])
      t.doesNotThrow(() => read(bodyOf(usual, `,"stream":true,"stream_options":${options}`)), options)
  })

  /** Names of which two readers could take one for another; in places where nobody reads them. */
  const CHOSEN =
    '{"type":"object","Type":1,"properties":{"Name":{"type":"string"},"NAME":{},"name":{"Model":1,"model":2},"__proto__":{"TYPE":1},"größe":{},"GRÖSSE":{}}}'

  /** Where clients and models choose the names: `%` stands for the object with them. */
  const CHOSEN_PLACES: Readonly<Record<keyof typeof PROTOCOLS, readonly string[]>> = {
    'chat-completions': [
      '"tools":[{"type":"function","function":{"name":"f","parameters":%}}]',
      '"functions":[{"name":"f","parameters":%}]',
      '"response_format":{"type":"json_schema","json_schema":{"name":"f","schema":%}}',
      '"metadata":%',
      '"logit_bias":%',
      '"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":%}}]}]',
    ],
    agents: ['"metadata":%', '"response_format":{"type":"json_schema","json_schema":{"schema":%}}'],
    messages: [
      '"tools":[{"name":"f","input_schema":%,"input_examples":[%]}]',
      '"metadata":%',
      '"output_config":{"format":{"type":"json_schema","schema":%}}',
      '"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":%}]}]',
      '"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"tool_use","input":%}]}]}]',
    ],
    count_tokens: ['"tools":[{"name":"f","input_schema":%}]'],
    responses: [
      '"tools":[{"type":"function","name":"f","parameters":%}]',
      '"metadata":%',
      '"text":{"format":{"type":"json_schema","name":"f","schema":%}}',
      '"input":[{"type":"function_call","call_id":"a","name":"f","arguments":%}]',
      '"input":[{"type":"mcp_list_tools","server_label":"a","tools":[{"name":"f","input_schema":%}]}]',
    ],
    'generate-content': [
      '"tools":[{"functionDeclarations":[{"name":"f","parameters":%,"response_json_schema":%}]}]',
      '"labels":%',
      '"generationConfig":{"responseJsonSchema":%}',
      '"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":%}}]}]',
      '"contents":[{"role":"user","parts":[{"function_response":{"name":"f","response":%}}]}]',
    ],
  }

  t.test('names that clients and models choose may be any, each once', async (t) => {
    for (const [protocol, places] of Object.entries(CHOSEN_PLACES)) {
      const { read, usual } = PROTOCOLS[protocol as keyof typeof PROTOCOLS]
      for (const place of places) {
        const bodyWith = (object: string) => {
          const name = /^"(?<name>\w+)"/.exec(place)!.groups!.name!
          const { [name]: _, ...rest } = JSON.parse(usual.replace(/[@%]/g, ''))
          const others = JSON.stringify(rest).slice(1)
          return Buffer.from(`{${place.replaceAll('%', object)}${others === '}' ? '' : ','}${others}`)
        }
        t.doesNotThrow(() => read(bodyWith(CHOSEN)), `${protocol} ${place}`)
        t.throws(
          () => read(bodyWith('{"type":"object","a":{"b":1,"b":2}}')),
          { code: 'invalid_request', message: /a\.b' is not valid: it occurs more than once/ },
          `${protocol} ${place}`,
        )
      }
    }
  })

  t.test("the tools' own fields are read, also those that the gateway does not know by name", async (t) => {
    const refused = (tool: string, message: RegExp) =>
      t.throws(() => readChatCall(bodyOf(PROTOCOLS['chat-completions'].usual, `,"tools":[${tool}]`)), {
        message,
      })
    refused(
      '{"type":"function","function":{"name":"f","Parameters":{}}}',
      /'tools\[0\]\.function\.Parameters' is not valid: it differs from 'parameters'/,
    )
    refused(
      '{"type":"web_search","filters":{"allowed_domains":[],"Allowed_Domains":[]}}',
      /'tools\[0\]\.filters\.Allowed_Domains' is not valid: it is given together with 'allowed_domains'/,
    )
    refused('{"type":"function","function":{"name":"f","__proto__":{}}}', /no field may have this name/)
  })

  t.test('a name of more than 256 bytes is compared by its bytes, and not refused', async (t) => {
    const { read, usual } = PROTOCOLS['chat-completions']
    const long = `Mode${'\u00ad'.repeat(130)}l`
    t.doesNotThrow(() => read(bodyOf(usual, `,"${long}":1,"${long.toLowerCase()}":2`)))
    t.throws(() => read(bodyOf(usual, `,"${long}":1,"${long}":2`)), { message: /occurs more than once/ })
    t.throws(() => read(bodyOf(usual, `,"${long.slice(0, 90)}l":1`)), { message: /differs from 'model'/ })
  })

  /** Every name that a contract reads is one of those that must not be written otherwise. */
  t.test('the names of each contract are known', async (t) => {
    const missing = (contract: NameSet, known: NameSet, path: string): string[] =>
      [...contract.known].flatMap(([name, inside]) => {
        const place = known.known.get(name)
        return place === undefined ? [`${path}.${name}`] : missing(inside, place, `${path}.${name}`)
      })
    for (const [schema, place] of [
      [chatCompletionsRequest, CHAT_COMPLETIONS_NAMES],
      [translatableChatRequest, CHAT_COMPLETIONS_NAMES],
      [messagesRequest, MESSAGES_NAMES],
      [countTokensRequest, MESSAGES_NAMES],
      [responsesRequest, RESPONSES_NAMES],
      [generateContentRequest, GENERATE_CONTENT_NAMES],
    ] as const)
      t.same(missing(readPlace(schema), place, ''), [])
    t.ok(listNames(CHAT_COMPLETIONS_NAMES).has('include_usage'))
  })

  /** An object's fields in the order in which they are written, as some parser has them. */
  type Pairs = readonly (readonly [name: string, value: unknown])[]

  /** A parser that keeps duplicates, so that each model can do with them what its parser does. */
  function pairsOf(text: string): unknown {
    let at = 0
    const space = () => {
      while (/\s/.test(text[at] ?? '')) at++
    }
    const value = (): unknown => {
      space()
      if (text[at] === '{') {
        const pairs: [string, unknown][] = []
        at++
        for (space(); text[at] !== '}'; space()) {
          if (text[at] === ',') at++
          const name = value() as string
          space()
          at++
          pairs.push([name, value()])
        }
        at++
        return { pairs }
      }
      if (text[at] === '[') {
        const items: unknown[] = []
        at++
        for (space(); text[at] !== ']'; space()) {
          if (text[at] === ',') at++
          items.push(value())
        }
        at++
        return items
      }
      const [scalar] = /^("(?:[^"\\]|\\.)*"|[^,\]}\s]+)/.exec(text.slice(at))!
      at += scalar.length
      return JSON.parse(scalar)
    }
    return value()
  }

  type Find = (pairs: Pairs, name: string) => unknown
  /** Go's encoding/json: by simple case folding of each letter; the last that fits wins. */
  const goFold = (name: string) =>
    [...name].map((c) => (c === '\u017f' ? 's' : c === '\u212a' ? 'k' : c.toLowerCase())).join('')
  const READERS: Readonly<Record<string, Find>> = {
    python: (pairs, name) => pairs.findLast(([given]) => given === name)?.[1],
    go: (pairs, name) => pairs.findLast(([given]) => goFold(given) === goFold(name))?.[1],
    rapidjson: (pairs, name) => pairs.find(([given]) => given === name)?.[1],
    untilNul: (pairs, name) => pairs.findLast(([given]) => given.split('\0')[0] === name)?.[1],
    normalizing: (pairs, name) =>
      pairs.find(([given]) => given.normalize('NFKC').toLowerCase() === name)?.[1],
  }

  const READ_FIELDS = [
    'model',
    'stream',
    'max_tokens',
    'max_completion_tokens',
    'n',
    'tools',
    'stream_options',
  ]

  /** What one reader finds, with what it finds in the tools and the stream options. */
  function seenBy(find: Find, body: unknown): unknown {
    const { pairs } = body as { pairs: Pairs }
    const inside = (value: unknown, names: readonly string[]): unknown => {
      if (Array.isArray(value)) return value.map((item) => inside(item, names))
      const fields = (value as { pairs?: Pairs } | null)?.pairs
      return fields === undefined ? value : names.map((name) => inside(find(fields, name), names))
    }
    return READ_FIELDS.map((name) => inside(find(pairs, name), ['type', 'function', 'name', 'include_usage']))
  }

  const written = (name: string) =>
    fc.constantFrom(
      name,
      name,
      name,
      name.toUpperCase(),
      `${name[0]!.toUpperCase()}${name.slice(1)}`,
      `\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}`,
      `${name}\\u0000`,
      name.replace('s', '\u017f'),
      name.replace('k', '\u212a'),
      name.replace('m', '\uff4d'),
    )
  const field = (name: string, ...values: string[]) =>
    fc.tuple(written(name), fc.constantFrom(...values)).map(([as, value]) => `"${as}":${value}`)
  const object = (...fields: fc.Arbitrary<string>[]) =>
    fc.array(fc.oneof(...fields), { maxLength: 3 }).map((all) => `{${all.join(',')}}`)
  const tool = object(
    field('type', '"function"', '"web_search"'),
    fc.constant('"type":"function"'),
    field('name', '"a"', '"b"'),
  )
  const body = fc
    .tuple(
      fc.array(
        fc.oneof(
          field('model', '"cheap"', '"dear"'),
          field('stream', 'true', 'false'),
          field('max_tokens', '1', '1000'),
          field('max_completion_tokens', '1', '1000'),
          field('n', '1', '8'),
          fc.tuple(written('tools'), tool).map(([as, one]) => `"${as}":[${one}]`),
          fc
            .tuple(written('stream_options'), object(field('include_usage', 'true', 'false')))
            .map(([as, options]) => `"${as}":${options}`),
        ),
        { maxLength: 4 },
      ),
      fc.boolean(),
    )
    .map(([fields, first]) => {
      const usual = '"model":"cheap","messages":[{"role":"user","content":"hi"}]'
      return `{${(first ? [usual, ...fields] : [...fields, usual]).join(',')}}`
    })

  t.test('no body that passes is read differently by another parser', async (t) => {
    let taken = 0
    everyRun(t, { seed: SEED, numRuns: RUNS }, [body], (text) => {
      try {
        readChatCall(Buffer.from(text))
      } catch {
        return
      }
      taken++
      const pairs = pairsOf(text)
      const expected = seenBy(READERS.python!, pairs)
      for (const [reader, find] of Object.entries(READERS))
        deepStrictEqual(seenBy(find, pairs), expected, `${reader} of ${text}`)
    })
    t.ok(taken > 100, `${taken} bodies pass`)
  })
})

t.test('fields that are not the clients', async (t) => {
  // Fields that choose model, route, price or account past the gateway, and ids of objects that are stored at the upstream,
  // are refused in every protocol, by the name of the field.
  const fault = (field: string) => ({
    code: 'invalid_request',
    message: new RegExp(`Field '${field.replace(/[[\].]/g, '\\$&')}' is not valid: `),
  })
  const isRefused = (t: Test, protocol: ChatProtocol, more: object, field: string) =>
    t.throws(() => chatWith(protocol, more), fault(field), `${protocol} ${JSON.stringify(more)}`)
  const passes = (t: Test, protocol: ChatProtocol, more: object) =>
    t.doesNotThrow(() => chatWith(protocol, more), `${protocol} ${JSON.stringify(more)}`)

  t.test('fields of aggregators, whichever the channel', async (t) => {
    const named = [
      ...['models', 'provider', 'route', 'transforms', 'plugins', 'fallbacks', 'extra_body', 'extra_headers'],
      ...['api_base', 'base_url', 'api_key', 'custom_llm_provider', 'litellm_params', 'litellm_metadata'],
      ...['virtual_key', 'targets', 'providerOptions', 'preset', 'data_sources', 'search_parameters'],
      ...['compound_custom', 'kv_transfer_params', 'lora_path'],
    ]
    const listed = new Set(Object.values(ROUTING_FIELDS).flat())
    for (const name of named) t.ok(listed.has(name), name)
    for (const protocol of CHAT_PROTOCOLS)
      for (const name of listed) {
        // There it is left out.
        if (protocol === 'messages' && name === 'fallbacks') continue
        for (const value of [['dear'], 'dear', { order: ['x'] }, 1, true, ''])
          isRefused(t, protocol, { [name]: value }, name)
        passes(t, protocol, { [name]: null })
      }
  })

  t.test('features that an upstream charges for, and that have a price as tools alone', async (t) => {
    const read: Readonly<Partial<Record<ChatProtocol, string>>> = {
      'chat-completions': 'web_search_options',
      messages: 'mcp_servers',
    }
    const named = [
      'enable_search',
      'web_search',
      'web_plugin',
      'web_search_options',
      'mcp_servers',
      'connectors',
    ]
    const listed = new Set(Object.values(SERVER_FEATURES).flat())
    for (const name of named) t.ok(listed.has(name), name)
    for (const protocol of CHAT_PROTOCOLS)
      for (const name of listed) {
        passes(t, protocol, { [name]: null })
        if (name === read[protocol]) continue
        for (const value of [true, {}, { enable: true }, ['web'], 'on', 1])
          isRefused(t, protocol, { [name]: value }, name)
        if (/_/.test(name)) isRefused(t, protocol, { [name.toUpperCase()]: true }, name.toUpperCase())
      }
    t.same(chatWith('chat-completions', { web_search_options: {} }).builtInTools, ['web_search'])
    t.same(chatWith('messages', { mcp_servers: [{ url: 'https://a.example' }] }).builtInTools, ['mcp'])
  })

  t.test('what a proxy keeps in the metadata', async (t) => {
    for (const protocol of CHAT_PROTOCOLS) {
      for (const name of [
        'user_api_key',
        'user_api_key_team_id',
        'litellm_parent',
        'model_group',
        'api_base',
      ])
        isRefused(t, protocol, { metadata: { [name]: 'x' } }, 'metadata')
      isRefused(t, protocol, { metadata: { tags: ['paid'] } }, 'metadata')
      passes(t, protocol, { metadata: { user_id: 'u', tags: 'a,b', model: 'mine', session: '1' } })
    }
  })

  /** The fields that change the price, with values that no model can have a price for: each is refused. */
  const DEAR: Readonly<Record<ChatProtocol, Readonly<Record<string, readonly unknown[]>>>> = {
    'chat-completions': {
      service_tier: ['Priority', 7],
      speed: ['fast'],
    },
    responses: { service_tier: [{}], speed: ['fast'] },
    messages: {
      service_tier: [['priority']],
      ...{ speed: ['turbo'], inference_geo: ['us'], compaction: [{ type: 'auto' }] },
      fallback_credit_token: ['fct_1', { token: 'fct_1', mode: 'best_effort' }],
      billing_policy: [{ type: 'billing_policy', bill_to: 'user_profile' }],
    },
    'generate-content': { serviceTier: ['SERVICE_TIER_FLEX'], service_tier: [1] },
  }
  /** Fields whose values a model can have a price for: the call says what it asks for, and the model decides. */
  const TIERS: Readonly<Record<ChatProtocol, readonly string[]>> = {
    'chat-completions': ['service_tier'],
    responses: ['service_tier'],
    messages: ['service_tier'],
    'generate-content': ['serviceTier', 'service_tier'],
  }
  const USUAL: Readonly<Record<ChatProtocol, readonly object[]>> = {
    'chat-completions': [
      { service_tier: 'auto' },
      { service_tier: 'default' },
      { prediction: { type: 'content', content: 'x' } },
    ],
    responses: [{ service_tier: 'auto' }, { service_tier: 'default' }],
    messages: [{ service_tier: 'auto' }, { service_tier: 'standard_only' }, { speed: 'standard' }],
    'generate-content': [{ serviceTier: 'standard' }, { serviceTier: 'unspecified' }, { service_tier: null }],
  }

  t.test('fields that change the price', async (t) => {
    for (const protocol of CHAT_PROTOCOLS) {
      t.same(Object.keys(PRICED_FIELDS[protocol]), Object.keys(DEAR[protocol]), 'the list is this one')
      for (const [name, values] of Object.entries(DEAR[protocol]))
        for (const value of values) isRefused(t, protocol, { [name]: value }, name)
      for (const more of USUAL[protocol]) {
        passes(t, protocol, more)
        t.equal(chatWith(protocol, more).serviceTier, undefined)
      }
      for (const name of TIERS[protocol])
        for (const tier of ['priority', 'flex', 'scale'])
          t.equal(chatWith(protocol, { [name]: tier }).serviceTier, tier, `${protocol} ${name} ${tier}`)
    }
  })

  t.test('a fast answer of messages has a price', async (t) => {
    t.equal(chatWith('messages', { speed: 'fast' }).serviceTier, 'fast')
    t.equal(chatWith('messages', { speed: 'fast', service_tier: 'priority' }).serviceTier, 'fast')
  })

  t.test('other models that messages may ask', async (t) => {
    const read = (more: object) => chatWith('messages', more).otherModels
    const tools = [{ type: 'advisor_20260301', name: 'advisor', model: 'dear', max_uses: 2 }]
    t.same(read({ fallbacks: [{ model: 'dear', max_tokens: 9 }], tools }), [
      { field: 'fallbacks', name: 'dear', outputLimit: 9, mostRuns: 1 },
      { field: 'advisor', name: 'dear', outputLimit: null, mostRuns: 2 },
    ])
    t.same(chatWith('messages', { tools }).builtInTools, [])
    t.equal(read({ fallbacks: null }), undefined)
    for (const none of [{ fallbacks: 'default' }, { fallbacks: [], speed: 'fast' }, { tools, speed: 'fast' }])
      t.same(read(none), [])
  })

  t.test('fields that name the conversation', async (t) => {
    for (const protocol of ['chat-completions', 'messages', 'responses'] as const) {
      const keyOf = (more: object) => chatWith(protocol, more).conversationKey
      t.equal(keyOf({}), undefined)
      t.equal(keyOf({ metadata: { user_id: 'u1', model: 'mine' } }), 'u1')
      t.equal(keyOf({ metadata: { user_id: '' } }), undefined)
      t.equal(keyOf({ metadata: { user_id: 'u'.repeat(600) } })?.length, 512)
      t.equal(keyOf({ prompt_cache_key: 'c1', metadata: { user_id: 'u1' } }), 'c1', protocol)
    }
  })

  t.test('fields that choose the model behind the gateway’s back', async (t) => {
    for (const model of ['models/dear', 'dear', 7, { id: 'm' }])
      isRefused(t, 'generate-content', { model }, 'model')
    for (const model of ['m', 'models/m', null]) passes(t, 'generate-content', { model })
    for (const config of ['generationConfig', 'generation_config'])
      for (const name of ['routingConfig', 'routing_config', 'modelSelectionConfig', 'model_config'])
        isRefused(t, 'generate-content', { [config]: { [name]: {} } }, `${config}.${name}`)
    isRefused(
      t,
      'responses',
      { tools: [{ type: 'image_generation', model: 'gpt-image-9' }] },
      'tools[0].model',
    )
  })

  const FOUND_BY_GATEWAY = new Set(['previous_response_id', 'conversation', 'background'])

  t.test('stored state, by a field of its own', async (t) => {
    for (const protocol of CHAT_PROTOCOLS)
      for (const name of STORED_STATE_FIELDS) {
        const value = name === 'background' ? true : 'x_1'
        // Of these the gateway knows which channel has them.
        if (protocol === 'responses' && FOUND_BY_GATEWAY.has(name)) passes(t, protocol, { [name]: value })
        else isRefused(t, protocol, { [name]: value }, name)
        passes(t, protocol, { [name]: null })
      }
    isRefused(t, 'responses', { prompt: { id: 'pmpt_1' } }, 'prompt')
    isRefused(t, 'messages', { container: 'container_1' }, 'container')
    isRefused(t, 'messages', { container: { skills: [{ type: 'custom', skill_id: 's' }] } }, 'container')
    const previous = { previous_message_id: 'msg_1' }
    for (const diagnostics of [null, {}, previous, { previous_message_id: null }])
      passes(t, 'messages', { diagnostics })
    isRefused(t, 'generate-content', { modelArmorConfig: { promptTemplateName: 'x' } }, 'modelArmorConfig')
    for (const name of ['outputConfig', 'output_config', 'OutputConfig'])
      isRefused(t, 'generate-content', { [name]: { outputUriPrefix: 'gs://bucket/x' } }, name)
    isRefused(t, 'chat-completions', { audio: { format: 'mp3', voice: { id: 'voice_1' } } }, 'audio')
    passes(t, 'chat-completions', { audio: { format: 'mp3', voice: 'alloy' } })
    for (const protocol of CHAT_PROTOCOLS)
      for (const store of [true, false]) passes(t, protocol, { store, background: false })
  })

  t.test('a thread is refused as its vendor refuses one that it cannot make', async (t) => {
    for (const thread of [{ type: 'create' }, { type: 'continue', previous_message_id: 'msg_1' }, 'msg_1']) {
      isRefused(t, 'messages', { thread }, 'thread')
      const { details } = t.throws(() => chatWith('messages', { thread })) as unknown as Failure
      t.same(details, { error_code: 'thread_unsupported_request', unsupported: ['thread'] })
    }
    passes(t, 'messages', { thread: null })
    isRefused(t, 'messages', { Thread: { type: 'create' } }, 'Thread')
  })

  const FILE = { type: 'file', file_id: 'file_1' }
  const user = (content: unknown) => ({
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'user', content },
    ],
  })
  const items = (...given: object[]) => ({ input: [{ role: 'user', content: 'hi' }, ...given] })
  const parts = (...given: object[]) => ({
    contents: [
      { role: 'user', parts: [{ text: 'hi' }] },
      { role: 'user', parts: given },
    ],
  })

  t.test('ids of stored objects, wherever an upstream reads them', async (t) => {
    const cases: readonly (readonly [ChatProtocol, object, string])[] = [
      [
        'chat-completions',
        user([
          { type: 'text', text: 'x' },
          { type: 'file', file: { file_id: 'file-1' } },
        ]),
        'messages[1].content[1].file.file_id',
      ],
      [
        'chat-completions',
        { messages: [{ role: 'assistant', content: null, audio: { id: 'audio_1' } }] },
        'messages[0].audio.id',
      ],
      [
        'chat-completions',
        { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] },
        'tools[0].vector_store_ids',
      ],
      ['messages', user([{ type: 'image', source: FILE }]), 'messages[1].content[0].source.file_id'],
      ['messages', user([{ type: 'document', source: FILE }]), 'messages[1].content[0].source.file_id'],
      [
        'messages',
        user([{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'image', source: FILE }] }]),
        'messages[1].content[0].content[0].source.file_id',
      ],
      ['messages', user([{ type: 'container_upload', file_id: 'file_1' }]), 'messages[1].content[0].type'],
      ['messages', { system: [{ type: 'document', source: FILE }] }, 'system[0].source.file_id'],
      [
        'responses',
        items({ role: 'user', content: [{ type: 'item_reference', id: 'msg_1' }] }),
        'input[1].content[0].type',
      ],
      ['responses', items({ type: 'item_reference', id: 'rs_1', file_id: 'f' }), 'input[1].file_id'],
      [
        'responses',
        items({ role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] }),
        'input[1].content[0].file_id',
      ],
      [
        'responses',
        items({ role: 'user', content: [{ type: 'input_image', file_id: 'file-1' }] }),
        'input[1].content[0].file_id',
      ],
      [
        'responses',
        items({ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_file', file_id: 'f' }] }),
        'input[1].output[0].file_id',
      ],
      [
        'responses',
        items({ type: 'computer_call_output', call_id: 'c', output: { file_id: 'f' } }),
        'input[1].output.file_id',
      ],
      ['responses', items({ type: 'image_generation_call', id: 'ig_1' }), 'input[1].result'],
      [
        'responses',
        items({ type: 'shell_call', environment: { type: 'container_reference', container_id: 'c' } }),
        'input[1].environment.type',
      ],
      [
        'responses',
        { tools: [{ type: 'file_search', vector_store_ids: ['v'] }] },
        'tools[0].vector_store_ids',
      ],
      ['responses', { tools: [{ type: 'code_interpreter', container: 'cntr_1' }] }, 'tools[0].container'],
      [
        'responses',
        { tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: ['f'] } }] },
        'tools[0].container.file_ids',
      ],
      [
        'responses',
        { tools: [{ type: 'image_generation', input_image_mask: { file_id: 'f' } }] },
        'tools[0].input_image_mask.file_id',
      ],
      ...(['fileUri', 'file_uri'] as const).flatMap((uri) =>
        (['fileData', 'file_data'] as const).map(
          (data) =>
            [
              'generate-content',
              parts({ text: 'x' }, { [data]: { [uri]: 'https://files.example/v1beta/files/1' } }),
              `contents[1].parts[1].${data}.${uri}`,
            ] as const,
        ),
      ),
      [
        'generate-content',
        parts({ functionResponse: { name: 'f', response: {}, parts: [{ fileData: { fileUri: 'u' } }] } }),
        'contents[1].parts[0].functionResponse.parts[0].fileData.fileUri',
      ],
      [
        'generate-content',
        { systemInstruction: { parts: [{ fileData: { fileUri: 'u' } }] } },
        'systemInstruction.parts[0].fileData.fileUri',
      ],
      [
        'generate-content',
        { tools: [{ fileSearch: { fileSearchStoreNames: ['s'] } }] },
        'tools[0].fileSearch.fileSearchStoreNames',
      ],
    ]
    for (const [protocol, more, field] of cases) isRefused(t, protocol, more, field)
    for (const fileUri of [
      ...['files/1', 'gs://bucket/film.mp4', 'https://'],
      'https://generativelanguage.googleapis.com/v1beta/files/1',
      'https://GenerativeLanguage.googleapis.com./v1beta/files/1',
      'https://storage.googleapis.com/bucket/film.mp4',
      'https://files.example/v1beta/%66iles/1',
    ])
      isRefused(
        t,
        'generate-content',
        parts({ fileData: { fileUri } }),
        'contents[1].parts[0].fileData.fileUri',
      )
  })

  t.test('a public link of generate-content passes, and is counted and checked', async (t) => {
    const VIDEO = 'https://www.youtube.com/watch?v=abc'
    const SCAN = 'https://public.example/scan.png'
    const own = { image_url: 'http://10.0.0.1/', fileUri: 'files/1' }
    const { links } = chatWith(
      'generate-content',
      parts(
        { fileData: { fileUri: VIDEO } },
        { file_data: { mime_type: 'image/png', file_uri: SCAN } },
        { functionCall: { name: 'f', args: own } },
        { functionResponse: { name: 'f', response: own, parts: [{ fileData: { fileUri: VIDEO } }] } },
      ),
    )
    t.same(links, { image: 1, file: 2, audio: 0, urls: [VIDEO, SCAN, VIDEO] })
  })

  t.test('settings of tools that refer to what is stored, or change the price', async (t) => {
    const inTool = (protocol: ChatProtocol, tool: object, field: string) =>
      isRefused(t, protocol, { tools: [tool] }, `tools[0].${field}`)
    const interpreter = (container: unknown) => ({ type: 'code_interpreter', container })
    const shell = (environment: object) => ({ type: 'shell', environment })
    for (const protocol of ['responses', 'chat-completions'] as const) {
      inTool(protocol, interpreter('cntr_1'), 'container')
      inTool(protocol, interpreter({ type: 'auto', memory_limit: '4g' }), 'container.memory_limit')
      for (const memory_limit of [null, '1g'])
        passes(t, protocol, { tools: [interpreter({ type: 'auto', memory_limit })] })
    }
    inTool('responses', shell({ type: 'container_auto', memory_limit: '64g' }), 'environment.memory_limit')
    inTool('responses', { type: 'mcp', server_label: 's', tunnel_id: 'tunnel_1' }, 'tunnel_id')
    const secret = { authConfig: { apiKeyConfig: { apiKeySecret: 'projects/p/secrets/s/versions/1' } } }
    inTool('generate-content', { googleMaps: secret }, 'googleMaps.authConfig.apiKeyConfig.apiKeySecret')
    for (const store of ['vertexAiSearch', 'vertex_ai_search', 'vertexRagStore'])
      inTool('generate-content', { retrieval: { [store]: { engine: 'e' } } }, `retrieval.${store}`)
  })

  t.test('an id that is the client’s own, or tells of an answer, passes', async (t) => {
    const schema = {
      type: 'object',
      properties: { file_id: { type: 'string' }, fileUri: {}, container: 'x' },
    }
    const own = { file_id: 'mine', fileUri: 'mine', vector_store_ids: ['mine'], type: 'item_reference' }
    passes(t, 'chat-completions', {
      ...user([{ type: 'file', file: { file_data: 'data:,x', filename: 'x', file_id: null } }]),
      tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
      response_format: { type: 'json_schema', json_schema: { name: 's', schema } },
    })
    passes(t, 'messages', {
      messages: [
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: own }] },
        { role: 'user', content: [{ type: 'text', text: 'x', citations: [{ file_id: 'f' }] }] },
        { role: 'user', content: [{ type: 'image', source: { type: 'base64', data: '', media_type: 'x' } }] },
      ],
      tools: [{ name: 'f', input_schema: schema }],
    })
    passes(t, 'responses', {
      ...items(
        { role: 'assistant', content: [{ type: 'output_text', text: 'x', annotations: [{ file_id: 'f' }] }] },
        { type: 'function_call', call_id: 'c', name: 'f', arguments: JSON.stringify(own) },
        { type: 'function_call_output', call_id: 'c', output: JSON.stringify(own) },
        { type: 'image_generation_call', id: 'ig_1', result: 'aGk=' },
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' },
        { type: 'code_interpreter_call', id: 'ci_1', container_id: 'cntr_1', code: '1' },
        { role: 'user', content: [{ type: 'input_file', file_url: 'https://a.example/a.pdf' }] },
      ),
      tools: [
        { type: 'function', name: 'f', parameters: schema },
        { type: 'code_interpreter', container: { type: 'auto', file_ids: [] } },
      ],
      text: { format: { type: 'json_schema', name: 's', schema } },
    })
    passes(t, 'generate-content', {
      ...parts(
        { functionCall: { name: 'f', args: own } },
        { functionResponse: { name: 'f', response: own } },
        { inlineData: { mimeType: 'image/png', data: 'aGk=' } },
      ),
      tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: schema, response: schema }] }],
      generationConfig: { responseJsonSchema: schema },
    })
  })

  t.test('no way of writing the name hides it', async (t) => {
    const escaped = (text: string) =>
      text.replace('file_id', 'file\\u005fid').replace('models', '\\u006dodels')
    const withFile = (protocol: ChatProtocol, more: object) =>
      escaped(JSON.stringify({ ...PLAIN_REQUESTS[protocol], ...more }))
    const hidden: readonly (readonly [ChatProtocol, object])[] = [
      ['chat-completions', user([{ type: 'file', file: { file_id: 'f' } }])],
      ['messages', user([{ type: 'image', source: FILE }])],
      ['responses', items({ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] })],
      ...CHAT_PROTOCOLS.map((protocol) => [protocol, { models: ['dear'] }] as const),
    ]
    for (const [protocol, more] of hidden)
      t.throws(() => readBody(protocol, withFile(protocol, more)), { code: 'invalid_request' }, protocol)
  })
})

t.test('missing fields are said to be missing', async (t) => {
  // A refusal names a field that is missing, or no number, in words that do not come from a programming language.
  const messageOf = (work: () => unknown): string => {
    try {
      work()
    } catch (error) {
      return (error as Error).message
    }
    return ''
  }

  t.test('a body without a field that it needs', async (t) => {
    const bodies = ENDPOINTS.flatMap(({ body, path }) => (body ? [{ ...body, path }] : []))
    for (const { schema, path } of bodies)
      t.notMatch(
        messageOf(() => readJsonBody(schema, Buffer.from('{}'))),
        /undefined|NaN/,
        path,
      )
    const { schema } = bodies.find(({ path }) => path === '/v1/chat/completions')!
    const refused = (text: string) => messageOf(() => readJsonBody(schema, Buffer.from(text)))
    t.equal(refused('{}'), "Field 'model' is not valid: it is missing")
    t.equal(refused('{"model":"m"}'), "Field 'messages' is not valid: it is missing")
    const withTool = '{"model":"m","messages":[{"role":"user","content":"Hi"}],"tools":[{}]}'
    t.equal(refused(withTool), "Field 'tools[0].type' is not valid: it is missing")
    t.match(refused('{"model":7}'), 'expected string, received number')
  })

  t.test('a parameter that is no number', async (t) => {
    t.equal(
      messageOf(() => readQuery(contentModelsQuery, 'pageSize=x')),
      'Parameter pageSize: it is not a number.',
    )
  })
})

t.test('the model of a refused request', async (t) => {
  // A refused request is not parsed for the name of its model: its beginning and its end are searched.
  const modelIn = (body: string): string => readRefusedModel(Buffer.from(body))
  const LONG = JSON.stringify([{ role: 'user', content: 'x'.repeat(100_000) }])

  t.test('the model is found at the beginning and at the end', async (t) => {
    t.equal(modelIn('{"model":"m"}'), 'm')
    t.equal(modelIn(` { "stream": true , "model" : "a\\u0062c" }`), 'abc')
    t.equal(modelIn(`{"model":"m","messages":${LONG}}`), 'm')
    t.equal(modelIn(`{"messages":${LONG},"model":"m"}`), 'm')
    t.equal(
      modelIn(`{"messages":${LONG}, "model": "m/n", "stream": true, "temperature": 0.5, "user":"u" } `),
      'm/n',
    )
  })

  t.test('what is not plainly the model of the request is none', async (t) => {
    for (const body of [
      '',
      'no JSON',
      '{"model":5}',
      '[{"model":"m"}]',
      `{"messages":${LONG},"metadata":{"a":1,"model":"m"}}`,
      `{"messages":${LONG},"user":"x,\\"model\\":\\"m\\"}"}`,
      `{"messages":${LONG},"model":"m","metadata":{"a":1},"messages":${LONG}}`,
      `{"model":"${'m'.repeat(3000)}"}`,
    ])
      t.equal(modelIn(body), '', body.slice(-80))
    t.equal(modelIn(`{"model":"${'m'.repeat(500)}"}`).length, REFUSED_MODEL_MAX_CHARS)
  })
})

t.test('server tools by every name', async (t) => {
  // Tools that upstreams run are known by each of their names in every protocol; a tool that is not known is refused.
  type Names = Partial<Record<ServerTool, readonly string[]>>

  const SEARCHES = ['web_search', 'web_search_preview', 'web_search_20250305', 'googleSearch']
  /** What vendors, and gateways that translate, call them where a tool is known by its type. */
  const TYPES: Names = {
    web_search: [
      ...SEARCHES,
      ...['google_search', 'googleSearchRetrieval', 'google_search_retrieval', 'web_search_2025_08_26'],
      ...['web_search_preview_2025_03_11', 'web_search_20260209', 'enterpriseWebSearch'],
    ],
    image_generation: ['image_generation'],
    code_interpreter: ['code_interpreter', 'code_execution', 'code_execution_20250825', 'codeExecution'],
    computer_use: ['computer_use', 'computer_use_preview', 'computer-use-preview', 'computerUse'],
    file_search: ['file_search', 'fileSearch', 'retrieval'],
    maps: ['google_maps', 'googleMaps'],
    mcp: ['mcp', 'mcp_toolset'],
    tool_search: ['tool_search', 'tool_search_tool_regex_20251119', 'tool_search_tool_bm25'],
    url_context: ['url_context', 'urlContext', 'web_fetch_20250910'],
  }
  const CLIENTS: Readonly<Record<ChatProtocol, readonly object[]>> = {
    'chat-completions': [
      { type: 'function', function: { name: 'f', parameters: { type: 'object' } } },
      { type: 'custom', custom: { name: 'c' } },
    ],
    messages: [
      { name: 'f', input_schema: {} },
      { type: 'custom', name: 'f', input_schema: {} },
      ...['bash_20250124', 'text_editor_20250728', 'computer_20250124', 'memory_20250818'].map((type) => ({
        type,
        name: 'x',
      })),
      ...['computer_toolset_20260801', 'browser_toolset_20260801'].map((type) => ({ type })),
    ],
    responses: [
      { type: 'function', name: 'f' },
      ...['custom', 'local_shell', 'apply_patch', 'shell'].map((type) => ({ type, name: 'x' })),
      { type: 'shell', environment: { type: 'local' } },
      {
        type: 'namespace',
        name: 'n',
        tools: [
          { type: 'function', name: 'f' },
          { type: 'custom', name: 'c' },
        ],
      },
      { type: 'tool_search', execution: 'client', description: 'd', parameters: {} },
    ],
    'generate-content': [
      { functionDeclarations: [{ name: 'f' }] },
      { function_declarations: [{ name: 'f' }] },
      { googleSearch: null },
      {},
    ],
  }

  const offered = (protocol: ChatProtocol, type: string): object =>
    protocol === 'generate-content' ? { [type]: {} } : { type, name: 'x' }
  const toolsIn = (protocol: ChatProtocol, ...tools: readonly object[]) =>
    chatWith(protocol, { tools }).builtInTools

  for (const protocol of CHAT_PROTOCOLS) {
    t.test(`${protocol}: each server tool under all its names`, async (t) => {
      for (const tool of SERVER_TOOLS) {
        const types = TYPES[tool] ?? []
        t.not(types.length, 0, tool)
        for (const type of types) t.same(toolsIn(protocol, offered(protocol, type)), [tool], type)
      }
      t.same(
        toolsIn(
          protocol,
          ...SEARCHES.map((type) => offered(protocol, type)),
          offered(protocol, 'url_context'),
        ),
        ['web_search', 'url_context'],
        'each once',
      )
    })

    t.test(`${protocol}: what the client runs is no server tool`, async (t) => {
      for (const tool of CLIENTS[protocol]) t.same(toolsIn(protocol, tool), [], JSON.stringify(tool))
      t.same(toolsIn(protocol, ...CLIENTS[protocol]), [])
      t.same(toolsIn(protocol, ...CLIENTS[protocol], offered(protocol, 'googleSearch')), ['web_search'])
    })

    t.test(`${protocol}: what is not known is refused`, async (t) => {
      // Of messages it is left out.
      const advisor = protocol === 'messages' ? [] : ['advisor_20260301']
      const unknown = [...advisor, 'web_searcher', '', 'constructor', 'Function ', 'x'.repeat(500)]
      for (const type of unknown)
        t.throws(
          () => toolsIn(protocol, ...CLIENTS[protocol], offered(protocol, type)),
          { code: 'tool_not_supported', message: /^The tool type '.{0,60}' is not known/ },
          type,
        )
    })
  }

  t.test('vendors’ client tools are known in their own protocol alone', async (t) => {
    const refused = { code: 'tool_not_supported' }
    t.throws(() => toolsIn('chat-completions', { type: 'bash_20250124' }), refused)
    t.throws(() => toolsIn('responses', { type: 'bash_20250124' }), refused)
    t.throws(() => toolsIn('messages', { type: 'local_shell', name: 'x' }), refused)
    t.same(toolsIn('responses', { type: 'computer' }), ['computer_use'])
  })

  t.test('tools by another door', async (t) => {
    t.same(chatWith('chat-completions', { web_search_options: {} }).builtInTools, ['web_search'])
    t.same(chatWith('chat-completions', { web_search_options: null }).builtInTools, [])
    t.same(
      chatWith('chat-completions', { web_search_options: {}, tools: [{ type: 'web_search' }] }).builtInTools,
      ['web_search'],
    )
    t.same(chatWith('messages', { mcp_servers: [{ type: 'url', url: 'https://a.example' }] }).builtInTools, [
      'mcp',
    ])
    t.same(chatWith('messages', { mcp_servers: [] }).builtInTools, [])
    t.same(toolsIn('responses', { type: 'shell', environment: { type: 'container_auto' } }), [
      'code_interpreter',
    ])
    t.same(toolsIn('responses', { type: 'namespace', name: 'n', tools: [{ type: 'web_search' }] }), [
      'web_search',
    ])
    const found = { type: 'tool_search_output', tools: [{ type: 'web_search_preview' }] }
    t.same(chatWith('responses', { input: [found] }).builtInTools, ['web_search'])
  })

  t.test('tools that the conversation adds', async (t) => {
    const input = (...tools: object[]) => ({
      input: [{ type: 'additional_tools', role: 'developer', tools }],
    })
    t.same(
      chatWith('responses', input({ type: 'function', name: 'f' }, { type: 'web_search' })).builtInTools,
      ['web_search'],
    )
    const addition = (definition: object) => ({
      ...{ type: 'tool_addition', tool: { type: 'tool_definition', definition } },
    })
    const saying = (...blocks: object[]) => {
      const { builtInTools, toolCallLimit } = chatWith('messages', {
        messages: [
          { role: 'user', content: [{ type: 'text', text: 'hi' }, ...blocks] },
          { role: 'assistant', content: 'Well.' },
        ],
      })
      return { builtInTools, toolCallLimit }
    }
    const search = addition({ type: 'web_search_20260318', name: 'web_search', max_uses: 2 })
    t.same(saying(search), { builtInTools: ['web_search'], toolCallLimit: 2 })
    t.same(saying({ type: 'compaction', content: 'x', tool_changes: [search] }).builtInTools, ['web_search'])
    t.same(saying(addition({ name: 'f', input_schema: {} })).builtInTools, [])
    for (const tool of [{ type: 'tool_reference', name: 'f' }, null])
      t.same(saying({ type: 'tool_addition', tool }, { type: 'tool_removal', tool }).builtInTools, [])
    const advisor = addition({ type: 'advisor_20260301', name: 'advisor', model: 'dear' })
    t.throws(() => saying(advisor), { code: 'tool_not_supported' })
  })

  t.test('the client may limit the calls of server tools', async (t) => {
    const search = { type: 'web_search_20250305', name: 'web_search' }
    const fetcher = { type: 'web_fetch_20250910', name: 'web_fetch', max_uses: 2 }
    const own = { name: 'f', input_schema: {} }
    const messages = (more: object) => chatWith('messages', more).toolCallLimit
    t.equal(messages({ tools: [own, { ...search, max_uses: 3 }, fetcher] }), 5)
    for (const max_uses of [undefined, null, '3', -1, 0.5])
      t.equal(messages({ tools: [{ ...search, max_uses }, fetcher] }), null, `${max_uses}`)
    t.equal(messages({ tools: [fetcher], mcp_servers: [{ url: 'https://a.example' }] }), null)
    const responses = (max_tool_calls: unknown) =>
      chatWith('responses', { tools: [{ type: 'web_search' }], max_tool_calls }).toolCallLimit
    t.equal(responses(4), 4)
    for (const none of [undefined, null, '4', -1]) t.equal(responses(none), null, `${none}`)
  })
})
