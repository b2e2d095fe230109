/**
 * The canonical conversation: a request in one vocabulary for all protocols. A translation reads the client's request into
 * it, and writes the upstream's request from it. See docs/translation.md. `part.ts` has the same for answers.
 */
import type { ChatProtocol } from '../config/catalog.ts'

/**
 * A vendor's proof of earlier reasoning: a signature, or reasoning that only the vendor can read. Only an upstream of its
 * protocol can verify it. Any other protocol carries it unread, so that it is there when the conversation returns.
 */
export interface Seal {
  readonly protocol: ChatProtocol
  readonly data: string
  /** The vendor has withheld the reasoning itself: all of it is in `data`. */
  readonly isRedacted?: boolean
  /** It stands with the call that follows, not with the reasoning before it. */
  readonly isOfCall?: boolean
  /** The reasoning that it proves, where a client does not return that itself. */
  readonly text?: string
}

/**
 * Marks the end of a part of the prompt that the upstream is to cache, as the messages protocol has it: `{type: ephemeral, ttl}`.
 */
export type CacheMark = Readonly<Record<string, unknown>>

interface Markable {
  readonly cache?: CacheMark
}

interface Placed {
  /** Its place in the client's request, such as `messages[1].content[0]`, for errors. */
  readonly path: string
}

export type FileSource =
  | { readonly type: 'inline'; readonly mediaType: string; readonly base64: string }
  /** http or https. */
  | { readonly type: 'link'; readonly url: string }

export interface SaidText extends Markable {
  readonly type: 'text'
  readonly text: string
}

export interface GivenFile extends Markable, Placed {
  readonly type: 'image' | 'file' | 'audio' | 'video'
  readonly source: FileSource
  readonly filename?: string
  /** The resolution at which an image is read, in the client's word. */
  readonly detail?: Setting<string>
  /** Of the thought behind an image that the model made. */
  readonly seal?: Seal
  /** The client's field, for warnings. */
  readonly field?: string
}

export interface Reasoning {
  readonly type: 'reasoning'
  /** Empty where only the vendor can read it. */
  readonly text: string
  /** Null for reasoning without proof. */
  readonly seal: Seal | null
  /** The vendor's id of its item. */
  readonly id?: string
}

export interface ToolCall extends Markable, Placed {
  readonly type: 'tool_call'
  readonly id: string
  readonly name: string
  /** The group of tools that the name is in. */
  readonly namespace?: string
  /** A custom tool takes free text, a function JSON. */
  readonly kind: 'function' | 'custom'
  /** JSON text of a function's arguments, or the text for a custom tool. Empty JSON text has no arguments. */
  readonly input: string
  readonly seal: Seal | null
}

export interface ToolResult extends Markable, Placed {
  readonly type: 'tool_result'
  readonly callId: string
  readonly content: readonly (SaidText | GivenFile)[]
  /** The content was one text, not a list of parts. */
  readonly isPlain: boolean
  readonly isError: boolean
}

export type TurnPart =
  | SaidText
  | GivenFile
  | { readonly type: 'refusal'; readonly text: string }
  | Reasoning
  | ToolCall
  | ToolResult

export interface ConversationTurn {
  readonly role: 'user' | 'assistant'
  readonly parts: readonly TurnPart[]
}

export type OfferedTool = Markable &
  Placed &
  (
    | {
        readonly type: 'function'
        readonly name: string
        readonly namespace?: string
        readonly description: string | null
        /** JSON Schema as the client wrote it; null for none. */
        readonly schema: Readonly<Record<string, unknown>> | null
        readonly isStrict: boolean
      }
    | {
        readonly type: 'custom'
        readonly name: string
        readonly namespace?: string
        readonly description: string | null
        /** The grammar of its text; null for none. */
        readonly format: Readonly<Record<string, unknown>> | null
      }
    | {
        readonly type: 'web_search'
        readonly allowedDomains: readonly string[]
        readonly blockedDomains: readonly string[]
        /** Such as `{country, region, city, timezone}`; null for none. */
        readonly location: Readonly<Record<string, unknown>> | null
        readonly contextSize: string | null
        readonly maxUses: number | null
        /** The tool as the client wrote it. */
        readonly given: Readonly<Record<string, unknown>>
      }
    /** A tool of one vendor, which no other protocol has. */
    | {
        readonly type: 'other'
        readonly name: string
        readonly given: Readonly<Record<string, unknown>>
      }
  )

export type ToolChoice =
  | 'auto'
  | 'none'
  | 'required'
  /** This tool must be called. */
  | { readonly name: string }
  /** Only these may be called. */
  | { readonly mode: 'auto' | 'required'; readonly allowed: readonly string[] }

/** A setting, with the name of the client's field, for warnings. */
export interface Setting<T> {
  readonly field: string
  readonly value: T
}

/** How deep the model is to reason. `adaptive` leaves that to the model. */
export type ReasoningDepth =
  | { readonly type: 'off' }
  | { readonly type: 'adaptive' }
  | { readonly type: 'effort'; readonly effort: string }
  | { readonly type: 'budget'; readonly tokens: number }

export interface WantedReasoning {
  readonly depth: ReasoningDepth
  /** The reasoning itself is not to be shown. */
  readonly isHidden: boolean
}

export type AnswerFormat =
  | { readonly type: 'json' }
  /** One that no other protocol has. */
  | { readonly type: 'other' }
  | {
      readonly type: 'schema'
      readonly name: string | null
      readonly description: string | null
      readonly schema: Readonly<Record<string, unknown>>
      readonly isStrict: boolean
      /** Place of the schema in the client's request. */
      readonly path: string
    }

/** Each is undefined where the client leaves it to the upstream. */
export interface ConversationSettings {
  readonly temperature?: Setting<number> | undefined
  readonly topP?: Setting<number> | undefined
  readonly topK?: Setting<number> | undefined
  readonly stop?: Setting<readonly string[]> | undefined
  readonly seed?: Setting<number> | undefined
  readonly choices?: Setting<number> | undefined
  readonly presencePenalty?: Setting<number> | undefined
  readonly frequencyPenalty?: Setting<number> | undefined
  readonly reasoning?: Setting<WantedReasoning> | undefined
  readonly format?: Setting<AnswerFormat> | undefined
  readonly verbosity?: Setting<string> | undefined
  /** The probability of each token of the answer is reported. */
  readonly logprobs?: Setting<boolean> | undefined
  /** Number of likely tokens that are reported beside each. */
  readonly topLogprobs?: Setting<number> | undefined
  /** At most one tool is called in an answer. */
  readonly singleCall?: Setting<boolean> | undefined
  readonly modalities?: Setting<readonly string[]> | undefined
  readonly speech?: Setting<{ readonly voice: unknown; readonly format: string | null }> | undefined
  /** The client's own id of its user. */
  readonly user?: Setting<string> | undefined
  /** More about the call, for the operator's own use. */
  readonly metadata?: Setting<Readonly<Record<string, unknown>>> | undefined
  /** Calls with the same key share a cached prefix of the prompt. */
  readonly cacheKey?: Setting<string> | undefined
  readonly serviceTier?: Setting<string> | undefined
}

export interface Conversation {
  /** The system prompt. */
  readonly instructions: readonly SaidText[]
  /** Neighbours may have the same role. */
  readonly turns: readonly ConversationTurn[]
  readonly tools: readonly OfferedTool[]
  /** Null leaves it to the upstream. */
  readonly toolChoice: Setting<ToolChoice> | null
  /** False: at most one call in an answer. */
  readonly isParallel: boolean
  /** Marks the whole prompt, where the client leaves the place to the upstream. */
  readonly cache?: CacheMark
  readonly settings: ConversationSettings
}
