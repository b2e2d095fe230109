/**
 * The fields that a translation drops, for `X-Protocol-Warning`, and those that it changes, for `X-Protocol-Changes`.
 * See docs/api-rules.md, "Protocols and translation".
 */
import type { ConversationSettings, OfferedTool } from '../../../schemas/chat/conversation.ts'
import type { EncodedRequest } from '../dialect.ts'

export class DroppedFields {
  readonly #dropped = new Set<string>()
  readonly #changed = new Set<string>()
  /** Both, in the order in which they were found. */
  readonly #notes = new Set<string>()

  /** Adds a field that the upstream does not get. `reason` is only for the call log, and holds no text of the client. */
  add(field: string, reason?: string): void {
    this.#dropped.add(field)
    this.#notes.add(reason === undefined ? field : `${field} (${reason})`)
  }

  /** Adds a field that the upstream gets in part, or with another value. Neither text is the client's. */
  change(field: string, how: string): void {
    this.#changed.add(`${field} (${how})`)
    this.#notes.add(`${field} (${how})`)
  }

  all(): Omit<EncodedRequest, 'body'> {
    return { dropped: [...this.#dropped], changed: [...this.#changed], notes: [...this.#notes] }
  }
}

/** Names the settings that the upstream's protocol does not have. */
export function nameSettings(
  settings: ConversationSettings,
  names: readonly (keyof ConversationSettings)[],
  dropped: DroppedFields,
): void {
  for (const name of names) {
    const setting = settings[name]
    if (setting !== undefined) dropped.add(setting.field)
  }
}

type Search = Extract<OfferedTool, { type: 'web_search' }>

const SEARCH_OPTIONS = {
  contextSize: 'search_context_size',
  location: 'user_location',
  allowedDomains: 'allowed_domains',
  blockedDomains: 'blocked_domains',
  maxUses: 'max_uses',
} as const satisfies Partial<Record<keyof Search, string>>
type SearchOption = keyof typeof SEARCH_OPTIONS

/** Names the options of a search that are not in `said`. */
export function nameSearchOptions(tool: Search, said: readonly SearchOption[], dropped: DroppedFields): void {
  for (const [option, name] of Object.entries(SEARCH_OPTIONS) as [SearchOption, string][]) {
    const value = tool[option]
    const isGiven = Array.isArray(value) ? value.length > 0 : value !== null
    if (isGiven && !said.includes(option)) dropped.add(name)
  }
}
