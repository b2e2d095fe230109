import t from 'tap'
import { askGenerateContent, type Json, jsonOf } from './dialects-support.ts'
import { post, simulatorFor } from './support.ts'

const { url } = await simulatorFor(t)

const ask = askGenerateContent('')
const user = (...parts: object[]) => ({ role: 'user', parts })
const model = (...parts: object[]) => ({ role: 'model', parts })
const HI = user({ text: 'Hi' })
const call = (name: string, thoughtSignature?: string) => ({
  functionCall: { name, args: {} },
  ...(thoughtSignature === undefined ? {} : { thoughtSignature }),
})
const response = (name: string) => ({ functionResponse: { name, response: { result: 'Rain.' } } })
const declare = (...functionDeclarations: object[]) => ({ tools: [{ functionDeclarations }] })
const withParameters = (parameters: unknown) => declare({ name: 'f', parameters })
const property = (schema: object) => withParameters({ type: 'object', properties: { a: schema } })
const config = (generationConfig: object) => ({ generationConfig })
const calling = (functionCallingConfig: object) => ({ toolConfig: { functionCallingConfig } })

/** Requests that are refused, with the words of the refusal. */
const REFUSED: readonly (readonly [fields: object, message: RegExp])[] = [
  [{ contents: undefined }, /contents is not specified/],
  [{ contents: [] }, /contents is not specified/],
  [{ contents: [{ role: 'assistant', parts: [{ text: 'Hi' }] }] }, /valid role: user, model/],
  [{ contents: [user()] }, /contents\.parts must not be empty/],
  [{ contents: [user({})] }, /must have one initialized field/],
  [{ contents: [user({ thought: true })] }, /must have one initialized field/],
  [{ contents: [user({ type: 'text', text: 'Hi' })] }, /Unknown name "type" at 'contents\[0\]\.parts\[0\]'/],
  [{ contents: [user({ text: 'Hi', inlineData: { mimeType: 'image/png', data: 'aGk=' } })] }, /already set/],
  [{ contents: [user({ inlineData: { mimeType: 'image/png', data: 'a GE' } })] }, /Base64 decoding failed/],
  [{ contents: [user({ inlineData: { data: 'aGk=' } })] }, /Unsupported MIME type/],
  [{ messages: [] }, /Unknown name "messages": Cannot find field/],
  [{ systemInstruction: { parts: [] } }, /system_instruction\.parts: must not be empty/],
  [
    { contents: [model(call('f')), user(response('f'))] },
    /function call turn comes immediately after a user turn/,
  ],
  [
    { contents: [HI, model({ text: 'So' }), model(call('f')), user(response('f'))] },
    /immediately after a user turn/,
  ],
  [{ contents: [HI, user(response('f'))] }, /function response turn comes immediately after a function call/],
  [{ contents: [HI, model(call('f')), HI] }, /number of function response parts is equal/],
  [{ contents: [HI, model(call('f'), call('g')), user(response('f'))] }, /number of function response parts/],
  [{ contents: [HI, model(call('f')), user(response('call_1'))] }, /names match the function call names/],
  [
    { contents: [HI, model(call('f')), user({ functionResponse: { name: 'f', response: 'Rain.' } })] },
    /Struct/,
  ],
  [{ contents: [HI, model({ functionCall: { name: 'f', args: '{}' } }), user(response('f'))] }, /Struct/],
  [withParameters({ type: 'object', $ref: '#/$defs/a' }), /Unknown name "\$ref" at .*parameters'/],
  [property({ type: 'string', const: 'a' }), /Unknown name "const" at .*parameters\.properties\['a'\]'/],
  [property({ type: 'object', additionalProperties: false }), /Unknown name "additionalProperties"/],
  [property({ allOf: [] }), /Unknown name "allOf"/],
  [property({ type: ['string', 'null'] }), /cannot start list/],
  [property({ type: 'text' }), /v1beta\.Type\), "text"/],
  [property({ description: 'No type' }), /type: must be specified/],
  [property({ type: 'integer', enum: ['1'] }), /only allowed for STRING type/],
  [property({ type: 'string', enum: [1] }), /TYPE_STRING\), 1/],
  [property({ type: 'string', format: 'uri' }), /only 'enum' and 'date-time' are supported/],
  [property({ type: 'array' }), /items: missing field/],
  [property({ anyOf: [{ type: 'string' }, { type: 'array' }] }), /any_of\[1\]\.items: missing field/],
  [
    withParameters({ type: 'object', properties: { a: { type: 'string' } }, required: ['b'] }),
    /property is not defined/,
  ],
  [withParameters({ type: 'object', properties: {} }), /should be non-empty for OBJECT type/],
  [declare({ name: '1f' }), /Invalid function name/],
  [declare({ name: 'f' }, { name: 'f' }), /Duplicate function declaration found: f/],
  [declare({ name: 'f', parametersJsonSchema: {}, parameters: { type: 'string' } }), /mutually exclusive/],
  [{ ...declare({ name: 'f' }), ...calling({ mode: 'required' }) }, /function_calling_config\.mode/],
  [{ ...declare({ name: 'f' }), ...calling({ mode: 'AUTO', allowedFunctionNames: ['f'] }) }, /mode is ANY/],
  [
    { ...declare({ name: 'f' }), ...calling({ mode: 'ANY', allowedFunctionNames: ['g'] }) },
    /not found in the function/,
  ],
  [calling({ mode: 'ANY' }), /without function_declarations/],
  [config({ max_tokens: 5 }), /Unknown name "max_tokens" at 'generation_config'/],
  [config({ maxOutputTokens: 0 }), /range \[1, /],
  [config({ stopSequences: ['1', '2', '3', '4', '5', '6'] }), /stop sequences must not exceed 5/],
  [config({ temperature: 3 }), /range \[0\.0, 2\.0\]/],
  [config({ responseSchema: { type: 'string' } }), /only supported with response_mime_type/],
  [config({ thinkingConfig: { thinkingBudget: 5, thinkingLevel: 'low' } }), /only one of thinking budget/],
]

t.test('what the vendor refuses is refused, in its words', async (t) => {
  for (const [fields, message] of REFUSED) {
    const answer = await ask(url, '', { fields })
    t.equal(answer.status, 400, JSON.stringify(fields))
    t.match(jsonOf(answer), { error: { code: 400, status: 'INVALID_ARGUMENT', message } })
  }
})

t.test('what the vendor takes is taken, in either spelling', async (t) => {
  const schema = {
    type: 'OBJECT',
    properties: {
      a: { type: 'string', nullable: true, enum: ['x'], format: 'enum' },
      b: { type: 'ARRAY', items: { anyOf: [{ type: 'integer' }, { type: 'object' }] } },
    },
    required: ['a'],
  }
  const loose = { $defs: { a: { const: 1 } }, $ref: '#/$defs/a', additionalProperties: false }
  const taken: readonly object[] = [
    { system_instruction: { parts: [{ text: 'Be brief.' }] }, generation_config: { max_output_tokens: 5 } },
    {
      ...declare({ name: 'f', parameters: schema }),
      ...calling({ mode: 'ANY', allowedFunctionNames: ['f'] }),
    },
    declare({ name: 'f', parametersJsonSchema: loose }, { name: 'g' }),
    { contents: [HI, HI, model({ text: 'Hi' }), model({ text: 'Hi', thought: true }), HI] },
    { contents: [HI, model({ text: 'So' }, call('f'), call('g')), user(response('g'), response('f'))] },
    {
      contents: [
        user(
          { inlineData: { mimeType: 'image/png', data: 'aGk=' } },
          { fileData: { fileUri: 'https://example.com/a.png' } },
        ),
      ],
    },
    config({
      responseMimeType: 'application/json',
      responseJsonSchema: loose,
      thinkingConfig: { thinkingLevel: 'low' },
    }),
  ]
  for (const fields of taken) t.equal((await ask(url, '', { fields })).status, 200, JSON.stringify(fields))
})

t.test('a signing model wants the signatures of the current turn, and no others', async (t) => {
  const statusOf = async (contents: object[], directives = '-sig') => {
    const answer = await ask(url, directives, { fields: { contents } })
    return answer.status === 200 ? 200 : jsonOf(answer).error?.message
  }
  const unsigned = [HI, model(call('f')), user(response('f'))]
  t.match(await statusOf(unsigned), /missing a thought_signature .*default_api:f/)
  t.equal(await statusOf(unsigned, ''), 200)
  t.equal(await statusOf([...unsigned, model({ text: 'Rain.' }), HI]), 200)
  t.match(await statusOf([HI, model(call('f', 'aGk=')), user(response('f'))]), /signature is not valid/)
  t.equal(
    await statusOf([HI, model(call('f', 'skip_thought_signature_validator')), user(response('f'))]),
    200,
  )
  const turn = jsonOf(await ask(url, '-sig@tool_calls=2', { fields: declare({ name: 'f' }) }))
  const [candidate] = turn.candidates as unknown as Json[]
  const own = candidate?.content as unknown as object
  t.equal(await statusOf([HI, own, user(response('f'), response('f'))]), 200)
})

t.test('a key is required, in its header or the query', async (t) => {
  const path = '/v1beta/models/sim:generateContent'
  const body = JSON.stringify({ contents: [HI] })
  const refused = await post(url, path, body, { authorization: 'Bearer k' })
  t.equal(refused.status, 403)
  t.match(jsonOf(refused), { error: { status: 'PERMISSION_DENIED' } })
  t.equal((await post(url, `${path}?key=k`, body)).status, 200)
  t.equal((await post(url, path.replace('sim', 'other'), body, { 'x-goog-api-key': 'k' })).status, 404)
  const encoded = `/v1beta/models/${encodeURIComponent('sim@fault=status:503')}:generateContent?key=k`
  t.equal((await post(url, encoded, body)).status, 503)
  t.equal((await post(url, '/v1beta/models/%ff:generateContent?key=k', body)).status, 400)
})
