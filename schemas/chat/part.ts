/**
 * The canonical stream part: a model's output, in one vocabulary for all protocols. A translation reads an upstream's
 * events into parts and prints the parts as the client's chunks.
 */

const FINISH_REASONS = ['stop', 'length', 'tool_calls', 'content_filter'] as const
export type FinishReason = (typeof FINISH_REASONS)[number]

/** Tokens as reported. `prompt` counts all prompt tokens, the cached and the cache-write ones among them. */
export interface UsageTokens {
  readonly prompt: number
  readonly cached: number
  readonly cacheWrite: number
  readonly output: number
  /** A part of `output`. */
  readonly reasoning: number
  /** Tools that the upstream ran itself. */
  readonly serverToolCalls: number
  /** A part of `prompt`; nothing where the upstream does not report it. */
  readonly promptAudio?: number
  /** A part of `output`; nothing where the upstream does not report it. */
  readonly outputAudio?: number
  /** Further parts; nothing where the upstream reports none. */
  readonly extra?: {
    readonly cacheWrite1h: number
    readonly inputImage: number
    readonly outputImage: number
  }
}

/** A token of the answer and its natural logarithm of probability, with those that were likely in its place. */
export interface TokenLogprob {
  readonly token: string
  readonly logprob: number
  readonly top: readonly { readonly token: string; readonly logprob: number }[]
}

/** `choice` is the candidate a part belongs to, 0 where there is one. */
export type Part =
  | { readonly type: 'text'; readonly choice: number; readonly text: string }
  | { readonly type: 'reasoning'; readonly choice: number; readonly text: string }
  /** Closes the reasoning before it; to be sent back with the next turn. */
  | { readonly type: 'signature'; readonly choice: number; readonly signature: string }
  /** Reasoning that the vendor keeps sealed; to be sent back as it is. */
  | { readonly type: 'sealed_reasoning'; readonly choice: number; readonly data: string }
  /** `index` counts the tools of a choice from 0. */
  | {
      readonly type: 'tool_call'
      readonly choice: number
      readonly index: number
      readonly id: string
      readonly name: string
      /** The vendor's signature of the thought behind the call, to be sent back with it; null without one. */
      readonly signature: string | null
    }
  /** A piece of a call's arguments, JSON text. */
  | {
      readonly type: 'tool_arguments'
      readonly choice: number
      readonly index: number
      readonly json: string
    }
  | {
      readonly type: 'image'
      readonly choice: number
      readonly mediaType: string
      readonly base64: string
      /** The vendor's signature of the thought behind the picture, to be sent back with it; null without one. */
      readonly signature: string | null
    }
  /** A piece of speech, 16 bits a sample. */
  | { readonly type: 'audio'; readonly choice: number; readonly base64: string }
  /** Cites a source for characters [start, end) of the text. */
  | {
      readonly type: 'citation'
      readonly choice: number
      readonly start: number
      readonly end: number
      readonly url: string
      readonly title: string
    }
  /** The vendor's reason why the model does not answer. */
  | { readonly type: 'refusal'; readonly choice: number; readonly text: string }
  | { readonly type: 'logprobs'; readonly choice: number; readonly tokens: readonly TokenLogprob[] }
  | { readonly type: 'finish'; readonly choice: number; readonly reason: FinishReason }
  /** The whole usage so far: a later one replaces it. */
  | { readonly type: 'usage'; readonly usage: UsageTokens }
  /** The head of the answer. */
  | { readonly type: 'start'; readonly id: string; readonly model: string }
  /** The upstream's own error event: its payload, JSON text. */
  | { readonly type: 'error'; readonly payload: string }
  /** The upstream has reported its end. */
  | { readonly type: 'end' }
