import t from 'tap'
import { askResponses, jsonOf } from './dialects-support.ts'
import { simulatorFor } from './support.ts'

const { url } = await simulatorFor(t)

const user = (content: unknown) => ({ role: 'user', content })
const HI = user('Hi')
const call = { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' }
const output = { type: 'function_call_output', call_id: 'call_1', output: 'Rain.' }
const FUNCTION = { type: 'function', name: 'f', parameters: { type: 'object' } }
const thought = { type: 'reasoning', id: 'rs_1', summary: [] }

/** Requests that are refused, with the field that is named and the words of the refusal. */
const REFUSED: readonly (readonly [fields: object, param: string, message: RegExp])[] = [
  [{ messages: [HI] }, 'messages', /Unknown parameter: 'messages'/],
  [{ max_tokens: 5 }, 'max_tokens', /Unknown parameter/],
  [{ model: undefined }, 'model', /Missing required parameter: 'model'/],
  [{ input: undefined }, 'input', /Missing required parameter: 'input'/],
  [{ input: [] }, 'input', /empty array/],
  [{ input: [{ role: 'tool', content: 'Hi' }] }, 'input[0]', /Invalid value: 'tool'/],
  [{ input: [{ content: 'Hi' }] }, 'input[0].role', /Missing required/],
  [{ input: [{ role: 'user' }] }, 'input[0].content', /Missing required/],
  [
    { input: [user([{ type: 'text', text: 'Hi' }])] },
    'input[0].content[0]',
    /Invalid value: 'text'.*'input_text'/,
  ],
  [
    { input: [{ role: 'assistant', content: [{ type: 'input_text', text: 'Hi' }] }, HI] },
    'input[0].content[0]',
    /'output_text'/,
  ],
  [
    { input: [user([{ type: 'input_image', image_url: { url: 'https://example.com/a.png' } }])] },
    'input[0].content[0].image_url',
    /got an object/,
  ],
  [
    { input: [user([{ type: 'input_image', image_url: 'file:///a.png' }])] },
    'input[0].content[0].image_url',
    /valid URL/,
  ],
  [{ input: [{ type: 'tool_call' }] }, 'input[0].type', /Invalid value: 'tool_call'/],
  [{ input: [HI, { ...call, call_id: undefined }] }, 'input[1].call_id', /Missing required/],
  [{ input: [HI, { ...call, arguments: {} }] }, 'input[1].arguments', /expected a string/],
  [{ input: [HI, { ...call, id: 'call_1' }, output] }, 'input[1].id', /begins with 'fc'/],
  [{ input: [HI, call] }, 'input', /No tool output found for function call call_1/],
  [{ input: [HI, output] }, 'input', /No tool call found for function call output with call_id call_1/],
  [{ input: [HI, call, output, output] }, 'input', /No tool call found/],
  [{ input: [HI, thought, HI] }, 'input', /'rs_1' of type 'reasoning' was provided without its required/],
  [{ tools: [{ type: 'function', function: { name: 'f' } }] }, 'tools[0].name', /Missing required/],
  [{ tools: [{ name: 'f' }] }, 'tools[0].type', /Missing required/],
  [{ tools: [{ type: 'function', name: 'a b' }] }, 'tools[0].name', /does not match pattern/],
  [
    { tools: [FUNCTION], tool_choice: { type: 'function', function: { name: 'f' } } },
    'tool_choice.name',
    /Missing/,
  ],
  [
    { tools: [FUNCTION], tool_choice: { type: 'function', name: 'g' } },
    'tool_choice',
    /not found in 'tools'/,
  ],
  [{ tools: [FUNCTION], tool_choice: { type: 'web_search' } }, 'tool_choice', /not found in 'tools'/],
  [{ tool_choice: 'required' }, 'tool_choice', /must be specified with 'tools'/],
  [{ max_output_tokens: 15 }, 'max_output_tokens', /Expected a value >= 16/],
  [{ temperature: 2.5 }, 'temperature', /from 0 to 2/],
  [{ reasoning: { effort: 'most' } }, 'reasoning.effort', /Invalid value: 'most'/],
  [{ text: { format: { type: 'json_schema', schema: {} } } }, 'text.format.name', /Missing required/],
  [{ previous_response_id: 'resp_1' }, 'previous_response_id', /not found/],
]

t.test('what the vendor refuses is refused, with the field', async (t) => {
  for (const [fields, param, message] of REFUSED) {
    const answer = await askResponses(url, '', { fields })
    t.equal(answer.status, 400, JSON.stringify(fields))
    t.match(jsonOf(answer), { error: { message, type: 'invalid_request_error', param, code: null } })
  }
})

t.test('what the vendor takes is taken', async (t) => {
  const image = { type: 'input_image', image_url: 'data:image/png;base64,aGk=', detail: 'low' }
  const taken: readonly object[] = [
    { input: 'Hi', instructions: undefined },
    { input: [user([{ type: 'input_text', text: 'Hi' }, image])], max_output_tokens: 16, store: false },
    { input: [{ type: 'message', role: 'developer', content: 'Be brief.' }, HI] },
    { input: [HI, thought, call, { ...call, call_id: 'call_2' }, { ...output, call_id: 'call_2' }, output] },
    {
      input: [HI, { role: 'assistant', content: [{ type: 'output_text', text: 'Hi', annotations: [] }] }, HI],
    },
    { tools: [FUNCTION, { type: 'web_search' }], tool_choice: { type: 'web_search' }, top_p: 0.5 },
  ]
  for (const fields of taken)
    t.equal((await askResponses(url, '', { fields })).status, 200, JSON.stringify(fields))
})

t.test('a turn of the simulator itself can be handed back', async (t) => {
  const tools = [FUNCTION, { type: 'web_search' }, { type: 'image_generation' }]
  const first = jsonOf(await askResponses(url, '@tool_calls=1,reasoning=2', { fields: { tools } }))
  const turn = first.output as unknown as { type: string; call_id?: string }[]
  t.same(
    turn.map(({ type }) => type),
    ['reasoning', 'web_search_call', 'image_generation_call', 'function_call'],
  )
  const input = [HI, ...turn, { ...output, call_id: turn.at(-1)?.call_id }]
  t.equal((await askResponses(url, '', { fields: { tools, input } })).status, 200)
})

t.test('strict_input refuses a string, and a request without instructions', async (t) => {
  const refusal = async (fields: object) =>
    jsonOf(await askResponses(url, '@strict_input', { fields })).error?.message
  t.equal(await refusal({ input: 'Hi' }), 'Input must be a list.')
  t.equal(await refusal({ instructions: undefined }), "Missing required parameter: 'instructions'.")
  t.equal((await askResponses(url, '@strict_input')).status, 200)
})

t.test('an unknown model and a bad key are refused', async (t) => {
  const unknown = await askResponses(url, '', { fields: { model: 'other' } })
  t.equal(unknown.status, 400)
  t.match(jsonOf(unknown), { error: { code: 'model_not_found', param: 'model' } })
  const refused = await askResponses(url, '', { headers: { authorization: 'Bearer sim-bad-key' } })
  t.match(jsonOf(refused), { error: { code: 'invalid_api_key' } })
})
