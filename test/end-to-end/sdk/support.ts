/** What the vendors' SDKs are tried against: one model behind each protocol, and things to ask of it. */
import type { Test } from 'tap'
import { type LentService, until } from '../../support/service.ts'
import { type Books, CHAT_PROTOCOLS, type ChatProtocol, configOf, simulated } from '../protocols/support.ts'
import { upstreamCalls, upstreamRequest } from '../support.ts'

/** Each model by the protocol that its channel speaks. The last signs its calls, and wants the signatures back. */
export const MODELS = {
  'chat-completions': 'speaker',
  messages: 'thinker',
  responses: 'responder',
  'generate-content': 'signer',
} as const

const OUTPUT_CEILING_TOKENS = 8192
const capabilities = { function_tools: true, vision: true, reasoning: true, web_search: true }
const tools = ['web_search' as const]

const models = Object.fromEntries(
  Object.values(MODELS).map((id) => [id, { max_output_tokens: OUTPUT_CEILING_TOKENS, capabilities }]),
)

/** @param serve the protocols of clients that the channels translate from, besides what they always do */
const configServing = (serve: ChatProtocol[]): string =>
  configOf(models, [
    simulated('chat-completions', { speaker: 'sim-speaker' }, { tools, serve }),
    simulated('messages', { thinker: 'sim-thinker' }, { tools, serve }),
    simulated('responses', { responder: 'sim-responder' }, { serve }),
    simulated('generate-content', { signer: 'sim-gemini-3-sig' }, { tools, serve }),
  ])

export const SDK_CONFIG = configServing([])
/** Clients of every protocol reach every model. */
export const SERVING_CONFIG = configServing([...CHAT_PROTOCOLS])

/** The schema of the tools that are offered: one string has to be given. */
export const PLACE_SCHEMA = {
  type: 'object',
  properties: { place: { type: 'string' } },
  required: ['place'],
  additionalProperties: false,
} as const
export const TOOL_NAMES = ['weather', 'time_of_day'] as const

/** Says how the simulated provider is to answer, in the words of the prompt. */
export const asking = (directives: string): string => `What is it like in Oslo? [simulate: ${directives}]`

export const BOTH_TOOLS = asking('tool_calls=2')
export const THINK_THEN_CALL = asking('tool_calls=1, reasoning=8, reasoning_text')
export const FROM_CACHE = asking('prompt_tokens=1000, cached=600, cache_write=100, tokens=10')
/** Twenty seconds of it, if it is not cut short. */
export const LONG = asking('tokens=2000, tps=100')
const LONG_TOKENS = 2000
/** When so much of it has been read, it is cut short. */
export const ENOUGH_CHARACTERS = 40

/** The simulated provider counts words; where it had not reported them yet, four characters count as one token. */
const leastTokens = (text: string): number =>
  Math.floor(Math.min(text.trim().split(' ').length, [...text].length / 4))

export const PNG_BASE64 =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
export const PNG_URI = `data:image/png;base64,${PNG_BASE64}`

/** What the upstream was sent for this request. */
export async function sentUpstream(
  service: LentService,
  requestId: string | null | undefined,
): Promise<string> {
  return (await upstreamRequest(service, requestId ?? 'none')).body
}

/** A call for `LONG` was left when the client had read `seen`: the upstream was let go, and what was said is charged. */
export async function isChargedForWhatWasSaid(
  t: Test,
  service: LentService,
  books: Books,
  requestId: string,
  seen: string,
): Promise<void> {
  await until('the upstream was let go', async () => {
    const [call] = await upstreamCalls(service, requestId)
    return call?.state === 'client_closed'
  })
  const row = await books.chargedAsRow(requestId, { status: 'interrupted' })
  t.ok(row.output_tokens >= leastTokens(seen) && row.output_tokens < LONG_TOKENS)
}

/** The constructor of an SDK's error class. */
export type ErrorClass = abstract new (...args: never[]) => Error

/** The call is refused with an error of this class, which looks so. */
export async function refused<E extends Error = Error>(
  t: Test,
  call: PromiseLike<unknown>,
  kind: ErrorClass,
  expected: object,
): Promise<E> {
  const error = await Promise.resolve(call).then(
    () => new Error('the call was not refused'),
    (reason: unknown) => reason as Error,
  )
  t.ok(error instanceof kind, `${error.name}: ${error.message}`)
  t.match(error, expected)
  return error as E
}

/** Refusals of an upstream: its status, the class of the SDK's error, and the code of the row. */
export const refusalsOf = (sdk: {
  readonly APIError: ErrorClass
  readonly AuthenticationError: ErrorClass
  readonly NotFoundError: ErrorClass
  readonly RateLimitError: ErrorClass
}): readonly (readonly [status: number, kind: ErrorClass, code: string])[] => [
  [401, sdk.AuthenticationError, 'invalid_api_key'],
  [402, sdk.APIError, 'upstream_error'],
  [404, sdk.NotFoundError, 'not_found'],
  [429, sdk.RateLimitError, 'rate_limit_exceeded'],
]
