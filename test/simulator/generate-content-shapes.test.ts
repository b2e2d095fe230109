import t from 'tap'
import { askGenerateContent, eventsOf, type Json, jsonOf } from './dialects-support.ts'
import { simulatorFor } from './support.ts'

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
    t.match(whole.candidates, [{ finishReason: 'STOP', content: { parts: [{ thought: true, text: /\S/ }] } }])
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
  t.match(partsOf(jsonOf(await ask(url, '', { fields: forced }))), [{ functionCall: { name: 'weather' } }])
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
