/** A body passes only if every parser reads the same fields in it, whatever it does with case, escapes and duplicates. */
import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { chatCompletionsRequest } from '../../../../schemas/chat/chat-completions.ts'
import { translatableChatRequest } from '../../../../schemas/chat/chat-completions-conversation.ts'
import { generateContentRequest } from '../../../../schemas/chat/generate-content.ts'
import { countTokensRequest, messagesRequest } from '../../../../schemas/chat/messages.ts'
import { responsesRequest } from '../../../../schemas/chat/responses.ts'
import type { NameSet } from '../../../../src/core/json/names.ts'
import { namesIn } from '../../../../src/core/json/names.ts'
import { readAgentRequest } from '../../../../src/protocols/chat-completions/agent-body.ts'
import { readChatCall } from '../../../../src/protocols/chat-completions/dialect.ts'
import { generateContentDialect } from '../../../../src/protocols/generate-content/dialect.ts'
import { messagesDialect } from '../../../../src/protocols/messages/dialect.ts'
import { placeOf } from '../../../../src/protocols/request/contract-place.ts'
import {
  CHAT_COMPLETIONS_NAMES,
  GENERATE_CONTENT_NAMES,
  MESSAGES_NAMES,
  RESPONSES_NAMES,
} from '../../../../src/protocols/request/known-names.ts'
import { responsesDialect } from '../../../../src/protocols/responses/dialect.ts'
import { everyRun } from '../../../support/every-run.ts'

const SEED = 18
const RUNS = 2000

const GENERATE = '/v1beta/models/ours:generateContent'
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
    read: (body: Buffer): unknown => messagesDialect.read({ path: '/v1/messages', query: '', body }),
    usual:
      '{"model":"ours","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"hi"@}]}]%}',
  },
  count_tokens: {
    read: (body: Buffer): unknown =>
      messagesDialect.read({ path: '/v1/messages/count_tokens', query: '', body }),
    usual: '{"model":"ours","messages":[{"role":"user","content":[{"type":"text","text":"hi"@}]}]%}',
  },
  responses: {
    read: (body: Buffer): unknown => responsesDialect.read({ path: '/v1/responses', query: '', body }),
    usual: '{"model":"ours","input":[{"role":"user","content":[{"type":"input_text","text":"hi"@}]}]%}',
  },
  'generate-content': {
    read: (body: Buffer): unknown => generateContentDialect.read({ path: GENERATE, query: '', body }),
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
    t.same(missing(placeOf(schema), place, ''), [])
  t.ok(namesIn(CHAT_COMPLETIONS_NAMES).has('include_usage'))
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
  normalizing: (pairs, name) => pairs.find(([given]) => given.normalize('NFKC').toLowerCase() === name)?.[1],
}

const READ_FIELDS = ['model', 'stream', 'max_tokens', 'max_completion_tokens', 'n', 'tools', 'stream_options']

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
