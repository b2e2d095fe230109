/** The interface of a preset: the facts of a provider that fill the fields which its channels leave out. */
import type { ChannelEntry, ChannelProtocol, KeyHeader, Quirk } from '../../../schemas/config/catalog.ts'

/** A channel as the file has it: any field may be missing or malformed. */
export type ChannelFields = Readonly<Record<string, unknown>>

export interface ProviderPreset {
  /** The provider's name of itself. */
  readonly title: string
  /**
   * Base URLs by protocol; a function makes it of the channel's own fields, or returns null where it cannot. The first
   * protocol is the one of a channel that names none.
   */
  readonly baseUrls: Readonly<
    Partial<Record<ChannelProtocol, string | ((fields: ChannelFields) => string | null)>>
  >
  /** Default: that of the protocol. */
  readonly keyHeader?: KeyHeader
  /** Of channels of the chat-completions protocol. */
  readonly outputLimitField?: NonNullable<ChannelEntry['output_limit_field']>
  /** Of channels of the responses protocol. */
  readonly keepsResponsesDays?: number
  readonly keepsConversations?: true
  /** Of channels of the chat-completions protocol. */
  readonly quirks?: readonly Quirk[]
}

export const protocolsOf = ({ baseUrls }: ProviderPreset): readonly ChannelProtocol[] =>
  Object.keys(baseUrls) as ChannelProtocol[]
