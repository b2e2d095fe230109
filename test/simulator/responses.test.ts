/** The simulated responses protocol. */
import t from 'tap'
import { askResponses, eventsOf, jsonOf, type StreamEvent } from './dialects-support.ts'
import { simulatorFor } from './support.ts'

t.test('responses', async (t) => {
  // The simulated responses protocol.
  t.test('responses shapes', async (t) => {
    const { url } = await simulatorFor(t)

    const TOOLS = [
      {
        type: 'function',
        name: 'weather',
        parameters: { type: 'object', properties: { city: { type: 'string' } } },
      },
    ]

    t.test('a stream tells the response, its items, and its end, numbered from 0', async (t) => {
      const answer = await askResponses(url, '@tokens=2', { stream: true })
      t.match(answer.head, /content-type: text\/event-stream; charset=utf-8/i)
      const events = eventsOf(answer.body)
      t.same(
        events.map(({ event }) => event),
        [
          ...['response.created', 'response.in_progress', 'response.output_item.added'],
          ...['response.content_part.added', 'response.output_text.delta', 'response.output_text.delta'],
          ...['response.output_text.done', 'response.content_part.done', 'response.output_item.done'],
          'response.completed',
        ],
      )
      for (const [index, { event, data }] of events.entries()) {
        t.equal(data.type, event)
        t.equal(data.sequence_number, index)
      }
      const created = events[0]?.data.response
      t.match(created, {
        id: /^resp_[0-9a-f]{24}$/,
        object: 'response',
        status: 'in_progress',
        output: { length: 0 },
        usage: null,
      })
      t.match(created, { model: 'sim', instructions: 'Be brief.', error: null, incomplete_details: null })
      t.match(created, {
        reasoning: { effort: null, summary: null },
        tool_choice: 'auto',
        parallel_tool_calls: true,
      })
      const itemId = events[2]?.data.item?.id
      t.match(itemId, /^msg_[0-9a-f]{24}$/)
      for (const { data } of events.slice(3, 8))
        t.match(data, { item_id: itemId, output_index: 0, content_index: 0 })
      t.match(events[9]?.data.response, { status: 'completed', usage: { output_tokens: 2 } })
    })

    t.test('whole and streamed say the same', async (t) => {
      const fields = { tools: TOOLS, reasoning: { effort: 'low', summary: 'auto' } }
      for (const directives of [
        '@tokens=5',
        '@tool_calls=2',
        '@tokens=0',
        '@reasoning=3,reasoning_text=false',
      ]) {
        const whole = jsonOf(await askResponses(url, directives, { fields }))
        const events = eventsOf((await askResponses(url, directives, { fields, stream: true })).body)
        t.same(events.at(-1)?.data.response, whole, directives)
        const done = events.filter(({ event }) => event === 'response.output_item.done')
        t.same(
          done.map(({ data }) => data.item),
          whole.output,
        )
        t.same(textsOf(events, 'delta'), textsOf(events, 'done'), 'the pieces are the whole')
      }
    })

    t.test('reasoning comes first: hidden, as a summary, or sealed', async (t) => {
      const items = async (directives: string, fields: object = {}) =>
        jsonOf(await askResponses(url, directives, { fields })).output
      const message = { type: 'message' }
      t.match(await items('', { reasoning: { effort: 'high' } }), [
        { type: 'reasoning', summary: { length: 0 } },
        message,
      ])
      t.match(await items('@reasoning=3,reasoning_text'), [
        { id: /^rs_/, type: 'reasoning', summary: [{ type: 'summary_text', text: /\S/ }] },
        message,
      ])
      const include = ['reasoning.encrypted_content']
      t.match(await items('@reasoning=3', { include }), [
        { type: 'reasoning', encrypted_content: String },
        message,
      ])
      t.match(await items('', { reasoning: { effort: 'none' } }), [message])
    })

    t.test('functions are called by items of their own', async (t) => {
      const whole = jsonOf(await askResponses(url, '@tool_calls=2', { fields: { tools: TOOLS } }))
      const called = {
        type: 'function_call',
        id: /^fc_/,
        call_id: /^call_/,
        name: 'weather',
        status: 'completed',
      }
      t.match(whole.output, [called, called])
      for (const { arguments: json } of whole.output as unknown as { arguments: string }[])
        t.match(JSON.parse(json), { city: String })
      const named = { tools: TOOLS, tool_choice: { type: 'function', name: 'weather' } }
      t.match(jsonOf(await askResponses(url, '', { fields: named })).output, [called])
    })

    t.test(
      'usage has the names of this interface, and is reported where the directive wants it',
      async (t) => {
        const input = [{ role: 'user', content: 'How is the river?' }]
        const bytes = Buffer.byteLength(JSON.stringify(input)) + Buffer.byteLength('"Be brief."')
        t.same(jsonOf(await askResponses(url, '@tokens=3,reasoning=4,cached=5')).usage, {
          input_tokens: Math.ceil(bytes / 4),
          input_tokens_details: { cached_tokens: 5 },
          output_tokens: 7,
          output_tokens_details: { reasoning_tokens: 4 },
          total_tokens: Math.ceil(bytes / 4) + 7,
        })
        const written = jsonOf(await askResponses(url, '@cache_write=2')).usage
        t.equal(written?.input_tokens_details?.cache_write_tokens, 2)
        const told = async (mode: string) => {
          const { body } = await askResponses(url, `@tokens=3,usage=${mode}`, { stream: true })
          const events = eventsOf(body)
          return [events[0], events.at(-1)].map((event) => event?.data.response?.usage?.output_tokens)
        }
        t.same(await told('asked'), [undefined, 3])
        t.same(await told('none'), [undefined, undefined])
        t.same(await told('zero'), [undefined, 0])
        t.same(await told('early'), [3, 3])
      },
    )

    t.test('an answer that is cut is incomplete', async (t) => {
      const cut = { max_output_tokens: 16 }
      const incomplete = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }
      const whole = jsonOf(await askResponses(url, '@tokens=50', { fields: cut }))
      t.match(whole, { ...incomplete, output: [{ status: 'incomplete' }], usage: { output_tokens: 16 } })
      const events = eventsOf((await askResponses(url, '@tokens=50', { fields: cut, stream: true })).body)
      t.match(events.at(-1), { event: 'response.incomplete', data: { response: incomplete } })
      const [, , error] = eventsOf(
        (await askResponses(url, '@fault=stream_error:1', { stream: true })).body,
      ).slice(-3)
      t.match(error, {
        event: 'error',
        data: { type: 'error', code: 'server_error', sequence_number: Number },
      })
    })

    t.test('an error event goes on with the numbers', async (t) => {
      const events = eventsOf((await askResponses(url, '@fault=stream_error:2', { stream: true })).body)
      t.same(
        events.map(({ data }) => data.sequence_number),
        events.map((_, index) => index),
      )
      t.equal(events.at(-1)?.event, 'error')
    })

    t.test('JSON is answered where it is asked for', async (t) => {
      const schema = { type: 'object', properties: { days: { type: 'integer' } } }
      const text = { format: { type: 'json_schema', name: 'forecast', schema } }
      const { output } = jsonOf(await askResponses(url, '', { fields: { text } }))
      const [message] = output as unknown as { content: { text: string }[] }[]
      t.match(JSON.parse(message?.content[0]?.text ?? ''), { days: Number })
    })

    /** What the events of this kind say of text, reasoning and arguments together, by item. */
    function textsOf(events: readonly StreamEvent[], kind: 'delta' | 'done'): Record<string, string> {
      const texts: Record<string, string> = {}
      const said = /^response\.(output_text|reasoning_summary_text|function_call_arguments)\.(delta|done)$/
      for (const { event, data } of events) {
        const found = said.exec(event ?? '')
        if (found?.[2] !== kind) continue
        const text = data.delta ?? data.text ?? data.arguments ?? ''
        const item = String(data.item_id)
        texts[item] = `${texts[item] ?? ''}${text}`
      }
      return Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== ''))
    }
  })

  t.test('responses strictness', async (t) => {
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
        {
          input: [
            HI,
            thought,
            call,
            { ...call, call_id: 'call_2' },
            { ...output, call_id: 'call_2' },
            output,
          ],
        },
        {
          input: [
            HI,
            { role: 'assistant', content: [{ type: 'output_text', text: 'Hi', annotations: [] }] },
            HI,
          ],
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
  })

  t.test('responses with the tools and fields of a coding agent', async (t) => {
    const { url } = await simulatorFor(t)
    const parameters = { type: 'object', properties: {} }
    const ask = (more: object) =>
      fetch(`${url}/v1/responses`, {
        method: 'POST',
        body: JSON.stringify({
          model: 'sim-large',
          client_metadata: { session: 's' },
          tools: [
            { type: 'custom', name: 'patch', format: { type: 'grammar', syntax: 'lark', definition: 'x' } },
            {
              type: 'namespace',
              name: 'agents',
              description: 'd',
              tools: [{ type: 'function', name: 'spawn', parameters }],
            },
            { type: 'tool_search', execution: 'client', description: 'd', parameters },
          ],
          ...more,
        }),
      })
    const response = await ask({ input: 'Hi', simulate: 'tool_calls=2' })
    const answer = (await response.json()) as { output: { call_id: string }[] }
    const [first, second] = answer.output
    t.match(answer.output, [
      { type: 'custom_tool_call', id: /^ctc_/, name: 'patch', input: /./ },
      { type: 'function_call', id: /^fc_/, name: 'spawn', namespace: 'agents', arguments: '{}' },
    ])
    const outputs = [
      { type: 'custom_tool_call_output', call_id: first?.call_id, output: 'Done.' },
      { type: 'function_call_output', call_id: second?.call_id, output: 'Done.' },
    ]
    t.equal((await ask({ input: [...answer.output, ...outputs] })).status, 200)
    t.equal((await ask({ input: [...answer.output, outputs[1]] })).status, 400)
    const stream = await (await ask({ input: 'Hi', simulate: 'tool_calls=1', stream: true })).text()
    t.match(stream, /event: response\.custom_tool_call_input\.delta/)
    t.match(stream, /event: response\.custom_tool_call_input\.done/)
  })

  t.test('responses are continued', async (t) => {
    // What a kept response has left open, the next one answers.
    const { url } = await simulatorFor(t)

    const TOOLS = [{ type: 'function', name: 'weather', parameters: { type: 'object' } }]
    const FORCED = { tools: TOOLS, tool_choice: 'required' }
    const answerTo = (call_id: unknown) => ({ type: 'function_call_output', call_id, output: 'Rain.' })

    const ask = async (fields: object) => jsonOf(await askResponses(url, '', { fields }))
    const calledIn = ({ output }: { readonly output?: unknown }): string =>
      (output as { type: string; call_id: string }[]).find(({ type }) => type === 'function_call')?.call_id ??
      ''
    const post = (path: string, body: object) =>
      fetch(`${url}/v1/conversations${path}`, { method: 'POST', body: JSON.stringify(body) })

    t.test('an output answers the call of the previous response', async (t) => {
      const first = await ask(FORCED)
      const next = await ask({
        tools: TOOLS,
        previous_response_id: first.id,
        input: [answerTo(calledIn(first))],
      })
      t.match(next, { status: 'completed', previous_response_id: first.id, output: [{ type: 'message' }] })
      const last = await ask({ previous_response_id: next.id, input: 'And tomorrow?' })
      t.equal(last.status, 'completed')
      const again = await ask({ previous_response_id: next.id, input: [answerTo(calledIn(first))] })
      t.match(again.error?.message, /^No tool call found for function call output/)
    })

    t.test('a call that nothing answers is refused, whatever comes instead', async (t) => {
      const first = await ask(FORCED)
      const call = calledIn(first)
      for (const input of ['Never mind.', [{ role: 'user', content: 'Never mind.' }]]) {
        const refused = await ask({ previous_response_id: first.id, input })
        t.equal(refused.error?.message, `No tool output found for function call ${call}.`)
      }
    })

    t.test('a conversation holds its calls open as well', async (t) => {
      const { id: conversation } = (await (await post('', {})).json()) as { id: string }
      const first = await ask({ ...FORCED, conversation })
      const refused = await ask({ conversation, input: 'Never mind.' })
      t.match(refused.error?.message, /^No tool output found for function call/)
      const next = await ask({ conversation, input: [answerTo(calledIn(first))] })
      t.equal(next.status, 'completed')
      const second = await ask({ ...FORCED, conversation, input: 'And tomorrow?' })
      const added = await post(`/${conversation}/items`, { items: [answerTo(calledIn(second))] })
      t.equal(added.status, 200)
      t.equal((await ask({ conversation, input: 'So?' })).status, 'completed')
    })

    t.test('another request is another response', async (t) => {
      const requests = [
        {},
        { tools: TOOLS },
        FORCED,
        { max_output_tokens: 16 },
        { metadata: { a: 'b' } },
        { simulate: 'text=Hi' },
      ]
      const answers = await Promise.all(requests.map(ask))
      t.equal(new Set(answers.map(({ id }) => id)).size, requests.length)
      for (const answer of answers)
        t.same(await (await fetch(`${url}/v1/responses/${answer.id}`)).json(), answer, 'each is kept')
      t.same(await Promise.all(requests.map(ask)), answers, 'and the same request has the same')
    })
  })
})
