import {
  ApiError,
  type Content,
  FinishReason,
  type GenerateContentConfig,
  type GenerateContentResponse,
  type GenerateContentResponseUsageMetadata,
  GoogleGenAI,
  type Part,
} from '@google/genai'
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { Books, checkTranslation, type Told } from '../protocols/support.ts'
import {
  asking,
  BOTH_TOOLS,
  ENOUGH_CHARACTERS,
  FROM_CACHE,
  isChargedForWhatWasSaid,
  LONG,
  PLACE_SCHEMA,
  PNG_BASE64,
  refused,
  SDK_CONFIG,
  sentUpstream,
  THINK_THEN_CALL,
  TOOL_NAMES,
} from './support.ts'

const MODEL = 'signer'
const TOOLS: GenerateContentConfig['tools'] = [
  {
    functionDeclarations: TOOL_NAMES.map((name) => ({
      name,
      description: `The ${name} at a place.`,
      parametersJsonSchema: PLACE_SCHEMA,
    })),
  },
]

const user = (...parts: Part[]): Content => ({ role: 'user', parts })
const said = (text: string): Content => user({ text })
const textOf = (parts: readonly Part[]): string =>
  parts.map(({ text, thought }) => (thought ? '' : (text ?? ''))).join('')
const callsOf = (parts: readonly Part[]) => parts.flatMap(({ functionCall }) => functionCall ?? [])

/** Thoughts are counted apart from the rest of the answer. */
function toldBy(usage: GenerateContentResponseUsageMetadata | undefined): Told {
  if (usage === undefined) throw new Error('no usage was reported')
  const reasoning = usage.thoughtsTokenCount ?? 0
  return {
    input: usage.promptTokenCount ?? 0,
    output: (usage.candidatesTokenCount ?? 0) + reasoning,
    cached: usage.cachedContentTokenCount ?? 0,
    reasoning,
  }
}

const headersOf = ({ sdkHttpResponse }: GenerateContentResponse): Headers =>
  new Headers(sdkHttpResponse?.headers ?? {})

t.test('the google SDK', async (t) => {
  const service = await borrowService(t, SDK_CONFIG)
  const clientOf = (apiKey: string, apiVersion = 'v1beta') =>
    new GoogleGenAI({ apiKey, httpOptions: { baseUrl: service.baseUrl, apiVersion } }).models
  const books = await Books.open(service)
  const client = clientOf(books.key)

  /** One call, whole or streamed: the parts of all chunks, and what the last of them says. */
  const generate = async (stream: boolean, contents: Content[], config: GenerateContentConfig = {}) => {
    const request = { model: MODEL, contents, config }
    const chunks: GenerateContentResponse[] = []
    if (stream) for await (const chunk of await client.generateContentStream(request)) chunks.push(chunk)
    else chunks.push(await client.generateContent(request))
    const last = chunks.at(-1)!
    const headers = headersOf(last)
    checkTranslation(t, headers, null)
    const requestId = headers.get('x-gateway-trace')
    const told = toldBy(last.usageMetadata)
    await books.charged(requestId, told, { model: MODEL })
    const parts = chunks.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
    return { parts, told, requestId, finish: last.candidates?.[0]?.finishReason }
  }

  for (const stream of [false, true]) {
    const how = stream ? 'streamed' : 'whole'
    await t.test(`answers, ${how}`, async (t) => {
      const { parts, finish, told } = await generate(stream, [said(asking('tokens=9'))], {
        systemInstruction: 'Be brief.',
        temperature: 0.5,
      })
      t.equal(finish, FinishReason.STOP)
      t.ok(textOf(parts))
      t.equal(told.output, 9)
      const cut = await generate(stream, [said('Go on and on.')], { maxOutputTokens: 3 })
      t.match(cut, { finish: FinishReason.MAX_TOKENS, told: { output: 3 } })
    })

    await t.test(`calls two functions, and goes on with what they say, ${how}`, async (t) => {
      const contents = [said(BOTH_TOOLS)]
      const { parts } = await generate(stream, contents, { tools: TOOLS })
      const calls = callsOf(parts)
      t.same(
        calls.map(({ name }) => name),
        TOOL_NAMES,
      )
      for (const { args } of calls) t.match(args, { place: String })
      const results = calls.map(
        ({ name }, index): Part => ({
          functionResponse: { name: name ?? '', response: { output: `result ${index}` } },
        }),
      )
      const history = [...contents, { role: 'model', parts }, user(...results)]
      const answer = await generate(stream, history, { tools: TOOLS })
      t.ok(textOf(answer.parts))
    })

    await t.test(`thinks, and carries the signature to the next turn, ${how}`, async (t) => {
      const config: GenerateContentConfig = {
        tools: TOOLS,
        thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 },
      }
      const contents = [said(THINK_THEN_CALL)]
      const { parts, told } = await generate(stream, contents, config)
      t.ok(parts.some(({ thought }) => thought))
      t.equal(told.reasoning, 8)
      const [call] = callsOf(parts)
      const result: Part = { functionResponse: { name: call?.name ?? '', response: { output: 'sunny' } } }
      const signature = parts.find(({ thoughtSignature }) => thoughtSignature)?.thoughtSignature ?? ''
      t.ok(signature)
      const history = [...contents, { role: 'model', parts }, user(result)]
      const second = await generate(stream, history, config)
      t.ok(textOf(second.parts))
      t.ok((await sentUpstream(service, second.requestId)).includes(signature))
    })

    await t.test(`pays the price of the cache, ${how}`, async (t) => {
      const { told } = await generate(stream, [said(FROM_CACHE)])
      t.same(told, { input: 1000, cached: 600, output: 10, reasoning: 0 })
    })
  }

  await t.test('shows a picture', async (t) => {
    const picture: Part = { inlineData: { mimeType: 'image/png', data: PNG_BASE64 } }
    const { parts, requestId } = await generate(false, [user(picture, { text: 'What is this?' })])
    t.ok(textOf(parts))
    t.ok((await sentUpstream(service, requestId)).includes(PNG_BASE64))
  })

  await t.test('leaves, and pays for what was said', async (t) => {
    const abort = new AbortController()
    let seen = ''
    let requestId = ''
    const listen = async () => {
      const stream = await client.generateContentStream({
        model: MODEL,
        contents: [said(LONG)],
        config: { abortSignal: abort.signal },
      })
      for await (const chunk of stream) {
        requestId = headersOf(chunk).get('x-gateway-trace') ?? ''
        seen += chunk.text ?? ''
        if (seen.length > ENOUGH_CHARACTERS) abort.abort()
      }
    }
    await refused(t, listen(), Error, { name: 'AbortError' })
    await isChargedForWhatWasSaid(t, service, books, requestId, seen)
  })

  await t.test('lists the models, shows one, and counts tokens, which costs nothing', async (t) => {
    const actions = ['generateContent', 'streamGenerateContent', 'countTokens']
    const found = new Map<string | undefined, string[] | undefined>()
    for await (const { name, supportedActions } of await client.list({ config: { pageSize: 2 } }))
      found.set(name, supportedActions)
    t.strictSame(
      [...found.keys()].sort(),
      ['responder', 'signer', 'speaker', 'thinker'].map((id) => `models/${id}`),
    )
    t.same(found.get(`models/${MODEL}`), actions)
    t.same(found.get('models/thinker'), [], 'no channel of this protocol serves it')
    const shown = await client.get({ model: MODEL })
    t.match(shown, { name: `models/${MODEL}`, displayName: MODEL, supportedActions: actions })
    t.match(shown, { outputTokenLimit: Number })
    const { totalTokens } = await client.countTokens({ model: MODEL, contents: [said('hello')] })
    t.ok((totalTokens ?? 0) > 0)
    await refused(t, client.get({ model: 'unheard-of' }), ApiError, { status: 404 })
    await refused(t, client.countTokens({ model: 'thinker', contents: [said('hello')] }), ApiError, {
      status: 503,
    })
  })

  for (const apiVersion of ['v1', 'v1alpha'])
    await t.test(`speaks ${apiVersion} too, which newer ones do by default`, async (t) => {
      const versioned = clientOf(books.key, apiVersion)
      const request = { model: MODEL, contents: [said('hello')] }
      const whole = await versioned.generateContent(request)
      t.ok(whole.text)
      const requestId = headersOf(whole).get('x-gateway-trace')
      await books.charged(requestId, toldBy(whole.usageMetadata), { model: MODEL })
      const chunks: GenerateContentResponse[] = []
      for await (const chunk of await versioned.generateContentStream(request)) chunks.push(chunk)
      const last = chunks.at(-1)!
      const streamedId = headersOf(last).get('x-gateway-trace')
      await books.charged(streamedId, toldBy(last.usageMetadata), { model: MODEL })
      t.ok(((await versioned.countTokens(request)).totalTokens ?? 0) > 0)
    })

  await books.close(t)

  await t.test('knows refusals by their status', async (t) => {
    const { key } = await service.newKey('1000000')
    const poor = await service.newKey('0')
    const refusal = async (apiKey: string, model: string, text: string, expected: object) => {
      for (const stream of [false, true]) {
        const request = { model, contents: [said(text)] }
        const of = clientOf(apiKey)
        const call = stream ? of.generateContentStream(request) : of.generateContent(request)
        const error = await refused<ApiError>(t, call, ApiError, { status: Number })
        t.match((JSON.parse(error.message) as { error: object }).error, { message: String, ...expected })
      }
    }
    for (const status of [401, 402, 404, 429])
      await refusal(key, MODEL, asking(`fault=status:${status}`), {
        code: status,
        status: status === 429 ? 'RESOURCE_EXHAUSTED' : 'UNAVAILABLE',
      })
    await refusal('sk-nobody', MODEL, 'hi', { code: 401, status: 'UNAUTHENTICATED' })
    await refusal(poor.key, MODEL, 'hi', { code: 402, status: 'RESOURCE_EXHAUSTED' })
    await refusal(key, 'unheard-of', 'hi', { code: 400, status: 'NOT_FOUND' })
    for (const version of ['v1', 'v1alpha']) {
      const request = { model: 'unheard-of', contents: [said('hi')] }
      const call = clientOf(key, version).generateContent(request)
      const error = await refused<ApiError>(t, call, ApiError, { status: 400 })
      t.match(JSON.parse(error.message), { error: { code: 400, status: 'NOT_FOUND' } }, version)
    }
    await refusal(key, 'thinker', 'hi', { code: 503, status: 'UNAVAILABLE' })
  })
})
