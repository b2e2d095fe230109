/** The simulated generate-content protocol. */
import t from 'tap'
import { askGenerateContent, eventsOf, type Json, jsonOf } from './dialects-support.ts'
import { post, simulatorFor } from './support.ts'

t.test('generate content', async (t) => {
  // The simulated generate-content protocol.
  t.test('generate content shapes', async (t) => {
    const { url } = await simulatorFor(t)

    const ask = askGenerateContent('?alt=sse')
    const TOOLS = [
      {
        functionDeclarations: [
          { name: 'weather', parameters: { type: 'OBJECT', properties: { city: { type: 'STRING' } } } },
        ],
      },
    ]
    const think = (thinkingConfig: object) => ({ generationConfig: { thinkingConfig } })

    t.test('a stream is bare events with CRLF, usage on each, and an end without parts', async (t) => {
      const answer = await ask(url, '@tokens=2,prompt_tokens=10', { stream: true })
      t.match(answer.head, /content-type: text\/event-stream/i)
      t.match(answer.body.toString(), /^data: \{.*\}\r\n\r\ndata: /)
      const events = eventsOf(answer.body)
      t.ok(events.every(({ event }) => event === null))
      const [first, second, end] = events.map(({ data }) => data)
      t.match(first, {
        candidates: [{ content: { parts: [{ text: String }], role: 'model' }, index: 0 }],
        usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 1, totalTokenCount: 11 },
        modelVersion: 'sim',
        responseId: /^[0-9a-f]{24}$/,
      })
      t.match(second?.usageMetadata, { candidatesTokenCount: 2, totalTokenCount: 12 })
      t.same(end?.candidates, [{ content: { role: 'model' }, finishReason: 'STOP', index: 0 }])
      t.same(end?.usageMetadata, second?.usageMetadata)
      t.equal(events.length, 3)
    })

    t.test('without alt=sse a stream is one JSON array, whatever ends it', async (t) => {
      const askArray = askGenerateContent('')
      const answer = await askArray(url, '@tokens=3', { stream: true })
      t.match(answer.head, /content-type: application\/json/i)
      const sse = await ask(url, '@tokens=3', { stream: true })
      t.same(
        jsonOf(answer),
        eventsOf(sse.body).map(({ data }) => data),
      )
      const failed = jsonOf(await askArray(url, '@tokens=3,fault=stream_error:1', { stream: true }))
      t.match(failed, [{ candidates: Array }, { error: { code: 500, status: 'INTERNAL' } }])
    })

    t.test('whole and streamed say the same', async (t) => {
      const fields = { tools: TOOLS, ...think({ includeThoughts: true }) }
      for (const directives of ['@tokens=6', '@tool_calls=2', '@tokens=0']) {
        const whole = jsonOf(await ask(url, directives, { fields }))
        const events = eventsOf((await ask(url, directives, { fields, stream: true })).body)
        const parts = events.flatMap(({ data }) => partsOf(data))
        t.same(parts.map(textOf).join(''), partsOf(whole).map(textOf).join(''), directives)
        t.same(
          parts.filter(({ functionCall }) => functionCall),
          partsOf(whole).filter(({ functionCall }) => functionCall),
        )
        t.same(events.at(-1)?.data.usageMetadata, whole.usageMetadata)
        t.match(whole.candidates, [
          { finishReason: 'STOP', content: { parts: [{ thought: true, text: /\S/ }] } },
        ])
      }
    })

    t.test('calls are whole parts, the first of them signed', async (t) => {
      const fields = { tools: TOOLS }
      const parts = partsOf(jsonOf(await ask(url, '@tool_calls=2', { fields })))
      t.match(parts, [
        { functionCall: { name: 'weather', args: { city: String } }, thoughtSignature: String },
        { functionCall: { name: 'weather', args: { city: String } } },
      ])
      t.notOk('thoughtSignature' in (parts[1] ?? {}))
      const forced = { tools: TOOLS, toolConfig: { functionCallingConfig: { mode: 'ANY' } } }
      t.match(partsOf(jsonOf(await ask(url, '', { fields: forced }))), [
        { functionCall: { name: 'weather' } },
      ])
      const signed = eventsOf((await ask(url, '-sig@tokens=1', { stream: true })).body).at(-1)?.data
      t.match(signed?.candidates, [{ content: { parts: [{ text: '', thoughtSignature: String }] } }])
    })

    t.test('usage tells thoughts and cache apart, each only where there is any', async (t) => {
      const usage = async (directives: string) => jsonOf(await ask(url, directives)).usageMetadata
      t.match(await usage('@prompt_tokens=50,cached=20,reasoning=5,tokens=3'), {
        promptTokenCount: 50,
        cachedContentTokenCount: 20,
        thoughtsTokenCount: 5,
        candidatesTokenCount: 3,
        totalTokenCount: 58,
      })
      t.same(Object.keys((await usage('@tokens=1')) ?? {}), [
        ...['promptTokenCount', 'candidatesTokenCount', 'totalTokenCount', 'promptTokensDetails'],
      ])
      const told = async (mode: string) => {
        const { body } = await ask(url, `@tokens=1,usage=${mode}`, { stream: true })
        return eventsOf(body).map(
          ({ data }) => data.usageMetadata?.candidatesTokenCount ?? data.usageMetadata?.totalTokenCount,
        )
      }
      t.same(await told('asked'), [1, 1])
      t.same(await told('none'), [undefined, undefined])
      t.same(await told('zero'), [0, 0])
      t.same(await told('with_finish'), [undefined, 1])
    })

    t.test('an answer ends as it must', async (t) => {
      const ending = async (directives: string, generationConfig: object = {}) =>
        jsonOf(await ask(url, directives, { fields: { generationConfig } })).candidates
      t.match(await ending('@tokens=9', { maxOutputTokens: 4 }), [{ finishReason: 'MAX_TOKENS' }])
      t.match(await ending('@tokens=1', { candidateCount: 2 }), [{ index: 0 }, { index: 1 }])
    })

    t.test('JSON is answered where it is asked for', async (t) => {
      const schema = { type: 'OBJECT', properties: { city: { type: 'STRING' }, days: { type: 'INTEGER' } } }
      for (const field of ['responseSchema', 'responseJsonSchema']) {
        const generationConfig = { responseMimeType: 'application/json', [field]: schema }
        const [part] = partsOf(jsonOf(await ask(url, '', { fields: { generationConfig } })))
        t.match(JSON.parse(textOf(part ?? {})), { city: String, days: Number })
      }
    })

    t.test('errors have the public shape', async (t) => {
      const names = { 400: 'INVALID_ARGUMENT', 403: 'PERMISSION_DENIED', 429: 'RESOURCE_EXHAUSTED' }
      const more = { 500: 'INTERNAL', 503: 'UNAVAILABLE', 504: 'DEADLINE_EXCEEDED' }
      for (const [status, name] of Object.entries({ ...names, ...more })) {
        const answer = await ask(url, `@fault=status:${status}`)
        t.equal(answer.status, Number(status))
        t.match(jsonOf(answer), { error: { code: Number(status), message: String, status: name } })
      }
      const limited = jsonOf(await ask(url, '@fault=status:429,retry_after=7'))
      t.match(limited.error?.details, [{ retryDelay: '7s' }])
    })

    function partsOf(body: Json): Json[] {
      const candidates = body.candidates as unknown as { content: { parts?: Json[] } }[]
      return candidates.flatMap(({ content }) => content.parts ?? [])
    }

    function textOf({ text }: Json): string {
      return text === undefined ? '' : String(text)
    }
  })

  t.test('generate content strictness', async (t) => {
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
      [
        { contents: [user({ type: 'text', text: 'Hi' })] },
        /Unknown name "type" at 'contents\[0\]\.parts\[0\]'/,
      ],
      [
        { contents: [user({ text: 'Hi', inlineData: { mimeType: 'image/png', data: 'aGk=' } })] },
        /already set/,
      ],
      [
        { contents: [user({ inlineData: { mimeType: 'image/png', data: 'a GE' } })] },
        /Base64 decoding failed/,
      ],
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
      [
        { contents: [HI, user(response('f'))] },
        /function response turn comes immediately after a function call/,
      ],
      [{ contents: [HI, model(call('f')), HI] }, /number of function response parts is equal/],
      [
        { contents: [HI, model(call('f'), call('g')), user(response('f'))] },
        /number of function response parts/,
      ],
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
      [
        declare({ name: 'f', parametersJsonSchema: {}, parameters: { type: 'string' } }),
        /mutually exclusive/,
      ],
      [{ ...declare({ name: 'f' }), ...calling({ mode: 'required' }) }, /function_calling_config\.mode/],
      [
        { ...declare({ name: 'f' }), ...calling({ mode: 'AUTO', allowedFunctionNames: ['f'] }) },
        /mode is ANY/,
      ],
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
      [
        config({ thinkingConfig: { thinkingBudget: 5, thinkingLevel: 'low' } }),
        /only one of thinking budget/,
      ],
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
        {
          system_instruction: { parts: [{ text: 'Be brief.' }] },
          generation_config: { max_output_tokens: 5 },
        },
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
      for (const fields of taken)
        t.equal((await ask(url, '', { fields })).status, 200, JSON.stringify(fields))
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
  })
})
