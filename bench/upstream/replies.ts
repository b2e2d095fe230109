/**
 * What the bench upstream answers, and what a client must therefore receive.
 *
 * A mark in the prompt chooses the reply, because every gateway forwards it; a model's name may change on the way.
 */

export const PROFILES = ['small', 'long', 'burst', 'brief', 'paced', 'held'] as const
/** `small`: one JSON body. `long`: the same for a long conversation. `burst`: a stream at once. The others: the first chunk at once, the rest at a fixed rate. */
export type Profile = (typeof PROFILES)[number]
export type WholeProfile = 'small' | 'long'
export const isWhole = (profile: Profile): profile is WholeProfile =>
  profile === 'small' || profile === 'long'

/** A stream's length and speed; `perSecond` 0 is as fast as possible. */
export interface Pace {
  chunks: number
  perSecond: number
}

const MARK_START = '[bench-'
const MARK_END = ']'

/** Returns the mark that selects the reply. */
export const markProfile = (profile: Profile): string => MARK_START + profile + MARK_END

/** Returns the profile that a request body selects, or null. */
export const readProfile = (body: Buffer): Profile | null => {
  const at = body.indexOf(MARK_START)
  if (at < 0) return null
  const start = at + MARK_START.length
  const name = body.toString('latin1', start, body.indexOf(MARK_END, start))
  return PROFILES.find((profile) => profile === name) ?? null
}

export const ANSWER =
  'A gateway takes a call, finds out who asks and what it may cost, hands it to a provider that can answer, ' +
  'passes the words on as they come, and writes down to the last token what was used.'

export const PROMPT_TOKENS = 212
export const COMPLETION_TOKENS = 42

/** The body of a small call, about 600 bytes. */
export const SMALL_BODY = JSON.stringify({
  id: 'chatcmpl-bench-0000000000000000',
  object: 'chat.completion',
  created: 1_760_000_000,
  model: 'bench-small',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: ANSWER, refusal: null },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: {
    prompt_tokens: PROMPT_TOKENS,
    completion_tokens: COMPLETION_TOKENS,
    total_tokens: PROMPT_TOKENS + COMPLETION_TOKENS,
  },
  system_fingerprint: 'fp_bench',
})

const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`

const chunk = (delta: object, finishReason: string | null): string =>
  event({
    id: 'chatcmpl-bench-0000000000000000',
    object: 'chat.completion.chunk',
    created: 1_760_000_000,
    model: 'bench',
    choices: [{ index: 0, delta, finish_reason: finishReason }],
  })

/** The piece of text in every content chunk. */
export const TOKEN = ' token'

const FIRST_CHUNK = chunk({ role: 'assistant', content: '' }, null)
const CONTENT_CHUNK = chunk({ content: TOKEN }, null)
const FINISH_CHUNK = chunk({}, 'stop')
export const DONE = 'data: [DONE]\n\n'

/** The chunk for requests with `stream_options.include_usage`. */
export const usageChunk = (chunks: number): string =>
  event({
    id: 'chatcmpl-bench-0000000000000000',
    object: 'chat.completion.chunk',
    created: 1_760_000_000,
    model: 'bench',
    choices: [],
    usage: {
      prompt_tokens: PROMPT_TOKENS,
      completion_tokens: chunks - 2,
      total_tokens: PROMPT_TOKENS + chunks - 2,
    },
  })

/** Returns the chunk at a position of a stream of `chunks`: the first has the role, the last the finish reason. */
export const chunkAt = (index: number, chunks: number): string => {
  if (index === 0) return FIRST_CHUNK
  return index === chunks - 1 ? FINISH_CHUNK : CONTENT_CHUNK
}

/** Returns the text of a whole stream of `chunks`. */
export const streamText = (chunks: number): string => TOKEN.repeat(chunks - 2)
