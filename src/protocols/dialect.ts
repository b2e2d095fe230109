/**
 * The interface of a protocol to the pipeline. A dialect reads a client's request; an adapter takes a call to one kind
 * of upstream and its answer back. Native adapters forward bytes, translations parse and print.
 */

import type { UnitType } from '../../schemas/call-log/row.ts'
import type { CallProtocol, ChatProtocol, ServerTool } from '../../schemas/config/catalog.ts'
import type { TokenUsage } from '../core/pricing/usage.ts'
import type { LinkedParts } from './request/linked-parts.ts'

/** Memory at the upstream that a call reads or leaves. */
export interface CallState {
  /** The response that the call goes on with; null without one. */
  readonly previous: string | null
  /** The conversation that the call goes on with, and adds to; null without one. */
  readonly conversation: string | null
  /** Items of earlier responses that the call names. */
  readonly items: readonly string[]
  /** False where the client asks that the response is not kept. */
  readonly isStored: boolean
  /** The client does not wait for the answer. */
  readonly isBackground: boolean
  /** The call asks for a shorter form of the conversation, and for no answer. */
  readonly isCompaction?: true
  /** The upstream's id of `previous`, where the client has another one; absent where it is the same. */
  readonly upstreamPrevious?: string
  /** The address to which the end of the answer is posted; absent without one. */
  readonly callbackUrl?: string
}

/** Units by which a call is charged. */
export interface CallUnits {
  readonly type: UnitType
  /** What is reserved, and charged where the upstream reports none. */
  readonly count: number
  /** The most that a report is believed to count. */
  readonly most: number
}

/** A model that a request lets its upstream ask besides its own. */
export interface OtherModel {
  /** A fallback answers where the model before it declines; an advisor is asked on the way. */
  readonly field: 'fallbacks' | 'advisor'
  /** The client's name for it. */
  readonly name: string
  /** Tokens of its answer; null: as the field has none, the call's or the model's own. */
  readonly outputLimit: number | null
  /** How often it is asked at most; null where the client leaves that open. */
  readonly mostRuns: number | null
}

/** The pipeline's view of a request in any protocol. */
export interface ChatCall {
  readonly model: string
  /** The upstream streams its answer. */
  readonly stream: boolean
  /** The client gets a streamed answer in one piece. */
  readonly isAssembled?: boolean
  /** The explicit output limit, tokens; null when omitted. */
  readonly outputLimit: number | null
  /** 0: the answer has no output. */
  readonly choices: number
  /** Prompts that the model reads apart; absent: one. */
  readonly prompts?: number
  /** What the call is charged by; absent: tokens. */
  readonly units?: CallUnits
  /** Milliseconds after which the call ends, where that is sooner than any call does. */
  readonly mostMs?: number
  /** Bytes of the JSON of the conversation, system prompt included. See docs/api-rules.md, "Pre-charge". */
  readonly conversationBytes: number
  /** Bytes of the JSON of all that upstreams make part of the prompt: the conversation, tools and schemas. */
  readonly promptBytes: number
  /** Tokens of them that an upstream keeps from before; absent where the request is the whole of it. */
  readonly keptTokens?: number
  /** Tokens of reasoning that the request asks for; absent without any. */
  readonly thinkingTokens?: number
  /** Parts given by URL. */
  readonly links: LinkedParts
  /** Requested tools that run at the upstream, each once. */
  readonly builtInTools: readonly ServerTool[]
  /** The most calls of these tools that the client allows; null where it leaves that open. */
  readonly toolCallLimit: number | null
  /** The requested service tier, where it can change the price. */
  readonly serviceTier?: string
  /** The name of the conversation in the body, or of its user; absent without one. */
  readonly conversationKey?: string
  /** It asks the upstream to summarise a long prompt before it answers. */
  readonly compacts?: boolean
  /** Absent where the request has no field for them. */
  readonly otherModels?: readonly OtherModel[]
  /** Names of fields that no upstream gets: they have no meaning there; absent without any. */
  readonly leftOut?: readonly string[]
  /** The client gets text completions. */
  readonly isTextCompletion?: boolean
  /** The client asks for the charge in the usage of the answer. */
  readonly wantsCost?: boolean
  /** Only in the responses protocol. */
  readonly state?: CallState
  /**
   * Other settings of the answer, for the call log: pieces of `src/core/call-log/detail-text.ts`. Short, and without
   * any prompt.
   */
  readonly settings: string
  /** The request itself, in the dialect's own form. Released once an answer has begun. */
  readonly source: unknown
}

/** The parts of a client's request that a dialect reads. */
export interface ClientRequest {
  /** As the path names it: only in the generate-content protocol. */
  readonly model?: string | undefined
  readonly query: string
  readonly body: Buffer
}

/** A body in another form than its client's. */
export interface RewrittenBody {
  readonly body: Buffer
  /** Names of the client's fields that are not in it. */
  readonly leftOut: readonly string[]
}

export interface EncodeOptions {
  readonly upstreamModel: string
  readonly provider?: string
  /** The model's ceiling, raised to where the client set no limit; null leaves the field out. */
  readonly outputCeiling: number | null
  readonly outputLimitField: 'max_tokens' | 'max_completion_tokens' | null
  /** False for an upstream that rejects the option that requests usage. */
  readonly askUsage: boolean
  /** Tools that the upstream may run: a translation leaves the others out. Their calls would have no price. */
  readonly serverTools: readonly ServerTool[]
  /** The upstream's names of other models that it may ask, by the client's; absent: none. */
  readonly otherModels?: ReadonlyMap<string, string> | undefined
  /** Files that the upstream cannot fetch itself, by URL, as the gateway fetched them. */
  readonly fetched: ReadonlyMap<string, FetchedFile>
}

/** Options of a request to an upstream of the client's own protocol that changes nothing but the model's name. */
export const PLAIN_OPTIONS = {
  outputCeiling: null,
  outputLimitField: null,
  askUsage: false,
  serverTools: [],
  fetched: new Map(),
} as const satisfies Omit<EncodeOptions, 'upstreamModel'>

export interface FetchedFile {
  readonly mediaType: string
  readonly base64: string
}

/** A request in the form of its upstream. */
export interface EncodedRequest {
  readonly body: Buffer
  /** Names of the fields that the upstream does not get, for `X-Protocol-Warning`. */
  readonly dropped: readonly string[]
  /** Names of fields that it gets otherwise than the client sent them, each with how, for `X-Protocol-Changes`. */
  readonly changed?: readonly string[]
  /** Both with their reasons, for the call log; absent: `dropped` says all. */
  readonly notes?: readonly string[]
}

/** Facts that a meter has read of an answer. */
export interface Metered {
  /** The counts reported so far, a lower bound: zeros for missing ones. Null before any report. */
  readonly usage: TokenUsage | null
  /** Units of the call that were reported; absent without a report. */
  readonly units?: number
  /** Characters of output, weighed by script: see `LATER_BYTE_CHARACTERS`. */
  readonly characters: number
  /** Those of them that the reports do not account for. */
  readonly charactersSinceUsage: number
  /** The upstream's name of the model that answered; empty or absent without one. */
  readonly model?: string
  /** Contradictions in the reports; empty or absent without any. */
  readonly suspect?: string
  /** The last usage object, as it came; absent without one. */
  readonly reported?: unknown
  /** The service tier in which the upstream served the call, in its own word; empty or absent without one. */
  readonly serviceTier?: string
  /** The upstream's id of a response that it may keep; empty or absent without one. */
  readonly responseId?: string
  /** The upstream's ids of the items of that response; absent without any. */
  readonly itemIds?: readonly string[]
  /** How often an advisor was asked, where its tokens are not reported; 0 or absent otherwise. */
  readonly unreportedAdvice?: number
  /** Prompt and output were reported, the output with or after the last character: final, should the answer end here. */
  readonly isUsageWhole: boolean
}

/** One streamed answer. `push` takes one read and returns the bytes for the client, null for none yet. */
export interface AnswerStream extends Metered {
  push(piece: Buffer): Buffer | null
  /** Ends the stream; returns the remaining bytes. */
  end(): Buffer | null
  /** An event that belongs to an answer has arrived, be it without content. */
  readonly hasBegun: boolean
  /** True when the sent bytes end with an event, or nothing was sent: a comment may follow. */
  readonly isBetweenEvents: boolean
  /** True when the upstream has reported its end: nothing is missing, should it end the stream in good order here. */
  readonly isComplete: boolean
  /** Nothing is missing, should the connection break here: the last event has passed, or what may have been it. */
  readonly isFinished: boolean
  /** The protocol's last event has passed: nothing of the answer follows. */
  readonly hasEnded: boolean
  /** The model has finished, and the usage that its upstream reports after that has not come. */
  readonly awaitsUsage: boolean
  /** Content has arrived, or a report of the output. */
  readonly isAnswer: boolean
  /** The payload of an error that came before any content and usage. */
  readonly firstError: Buffer | null
  /** The payload of an error that came after some. */
  readonly laterError: Buffer | null
}

/** One whole answer. */
export interface WholeAnswer {
  readonly body: Buffer
  readonly metered: Metered
  /** It is JSON that holds content or usage, and no error in spite of its status. */
  readonly isAnswer: boolean
}

/** Takes a stream as its client would get it. */
export interface StreamAssembler {
  push(bytes: Buffer): void
  /** Returns the whole answer, once the stream has ended. */
  body(): Buffer
}

export interface ProtocolAdapter {
  readonly from: CallProtocol
  readonly to: CallProtocol
  /**
   * Returns the URLs to fetch before `encodeRequest`; empty for most calls.
   * @param provider of the channel; undefined for one without a preset
   */
  urlsToFetch(call: ChatCall, provider?: string): readonly string[]
  encodeRequest(call: ChatCall, options: EncodeOptions): EncodedRequest
  /** Content types of the upstream's streams besides `text/event-stream`. */
  streamTypes?(call: ChatCall): readonly string[]
  /** `contentType` of the stream that the client gets; null keeps the upstream's. */
  streamContentType(call: ChatCall): string | null
  /** Bytes that keep the connection of a waiting client alive, and mean nothing to it; null where it bears none. */
  keepAlive(call: ChatCall): Buffer | null
  /** @param provider whose form the usage has; undefined: the usual one of the protocol */
  openStream(call: ChatCall, provider?: string): AnswerStream
  readWhole(call: ChatCall, body: Buffer, provider?: string): WholeAnswer
  /** Prints the body of a whole answer as events, for a client that asked for a stream. */
  wholeAsStream(call: ChatCall, body: Buffer): Buffer
  /** Puts a stream together as a whole answer, as its client would get it; absent where no client needs that. */
  assembleStream?(): StreamAssembler
}

export interface Dialect<Protocol extends CallProtocol = ChatProtocol> {
  readonly protocol: Protocol
  /** @throws Failure `invalid_request` with a message that names the field */
  read(request: ClientRequest): ChatCall
}
