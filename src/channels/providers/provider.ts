/** The interface of a provider: everything that is peculiar to it, as data and functions. See docs/extending.md. */
import type {
  CallProtocol,
  ChannelEntry,
  ChannelProtocol,
  ChatProtocol,
  KeyHeader,
  ServerTool,
} from '../../../schemas/config/catalog.ts'
import type { TokenUsage } from '../../core/pricing/usage.ts'
import type { ChannelAdapter, CountingAdapter, CountingProtocol } from '../channel.ts'
import type { MediaAdapter } from '../media/adapter.ts'

/** A channel as the file has it: any field may be missing or malformed. */
export type ChannelFields = Readonly<Record<string, unknown>>

/** An object of a request or an answer, as it came. */
export type Fields = Readonly<Record<string, unknown>>

/** Tools that the vendor runs, each with its price of a call in US dollars. */
export type VendorTools = Readonly<Partial<Record<ServerTool, string>>>

/** Peculiarities of usage in the chat-completions protocol. */
export interface UsageRules {
  /** Reasoning is no part of `completion_tokens`, where the total does not tell. */
  readonly reasonsBeside?: boolean
  /** Reasoning is only in the total, which exceeds the other counts by it. */
  readonly reasonsInTotal?: boolean
  /** Returns the counts of tool calls besides `server_tool_use`. */
  readonly toolCalls?: (usage: Fields) => Fields
}

/** Peculiarities of the tools that the upstream runs, in the responses protocol. */
export interface ToolRules {
  /** Returns the type of the call that an item is; null for an item whose type says nothing about the call. */
  callType(item: { readonly type: string; readonly name: string }): string | null
  /** Returns the counts of calls in a usage report; null for a report without them. */
  reportedCalls(usage: Fields): Fields | null
}

export interface Provider {
  /** The provider's name of itself. */
  readonly title: string
  /**
   * Base URLs by protocol; a function makes it of the channel's own fields, or returns null where it cannot. The first
   * protocol is the one of a channel that names none. Empty: there is no preset, a channel names only its protocol.
   */
  readonly baseUrls: Readonly<Record<ChannelProtocol, string | ((fields: ChannelFields) => string | null)>>
  /** Adapters of media by the name that a channel's `protocol` has for each. */
  readonly media?: Readonly<Record<string, MediaAdapter>>

  // The fields that the preset fills.
  /** Default: that of the protocol. */
  readonly keyHeader?: KeyHeader
  /** Of channels of the chat-completions protocol. */
  readonly outputLimitField?: NonNullable<ChannelEntry['output_limit_field']>
  /** Of channels of the responses protocol. */
  readonly keepsResponsesDays?: number
  readonly keepsConversations?: true
  /**
   * Of channels of the chat-completions protocol: the quirks of requests, each with the function that rewrites one; null
   * for a quirk that is seen to elsewhere.
   */
  readonly quirks?: Readonly<Record<string, ((request: Fields) => Fields) | null>>

  /** By protocol: the tools that it runs, counts and bills by the call. Those that it bills in another way are left out. */
  readonly serverTools?: Readonly<Partial<Record<ChatProtocol, VendorTools>>>

  // The configuration.
  /** Returns the problems with a channel's base URL; null to have it checked by the rules of its protocol. */
  readonly checkBaseUrl?: (
    channel: Pick<ChannelEntry, 'base_url' | 'api_version'>,
  ) => readonly ChannelProblem[] | null
  /** The protocol whose channels may have `storage_uri`. */
  readonly storageProtocol?: ChannelProtocol
  /** Its names in public price lists. Default: its name here. */
  readonly listedAs?: readonly string[]

  // Requests.
  /** Returns its adapter; undefined for a channel that is adapted by its protocol. */
  readonly chatAdapter?: (channel: ChannelEntry, protocol: CallProtocol) => ChannelAdapter | undefined
  /** Default: by the protocol. */
  readonly countingAdapters?: Readonly<Partial<Record<CountingProtocol, CountingAdapter>>>
  /** Returns the query of requests about stored responses, such as `api-version=1`; empty for none. */
  readonly storedQuery?: (channel: ChannelEntry) => string
  /** It takes files of the messages protocol only in base64, and fetches no links. */
  readonly fetchesNothing?: true
  /** It does not know `includeServerSideToolInvocations` of the generate-content protocol. */
  readonly lacksToolInvocations?: true
  /** Top-level fields by which clients choose model, route or credentials; refused for every channel. */
  readonly routingFields?: readonly string[]
  /** Top-level fields by which clients switch on work that costs; refused for every channel. */
  readonly featureFields?: readonly string[]

  // Answers.
  readonly usage?: UsageRules
  readonly tools?: ToolRules
  /** Returns the usage in the headers of a whole answer; null without any. */
  readonly readHeaderUsage?: (header: (name: string) => string | undefined) => TokenUsage | null
  /** The beginning of a refusal with 400 that is about the operator's account or key. Further behind may be words of the client. */
  readonly accountRefusal?: RegExp
  /** Names of a 429 that is about an account without credit. */
  readonly withoutCredit?: readonly string[]
}

interface ChannelProblem {
  readonly field: keyof ChannelEntry
  readonly message: string
}

export const listProtocols = ({ baseUrls }: Provider): readonly ChannelProtocol[] => Object.keys(baseUrls)
