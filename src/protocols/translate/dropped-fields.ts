/**
 * The fields that a translation drops, for `X-Protocol-Warning`, and those that it changes, for `X-Protocol-Changes`.
 * See docs/api-rules.md, "Protocols and translation".
 */
import type { ConversationSettings, OfferedTool } from '../../../schemas/chat/conversation.ts'
import type { EncodedRequest } from '../dialect.ts'
import type { LooseObject } from '../loose.ts'

/** A longer name is cut, and one that a list in a header cannot hold loses the characters in question. */
const MAX_NAME_CHARS = 64
const NOT_IN_A_LIST = /[^\x21-\x7e]|[;,]/g
/** More than a header holds. */
const MAX_NAMED = 1000

export class DroppedFields {
  readonly #dropped = new Set<string>()
  readonly #changed = new Set<string>()
  /** Both, in the order in which they were found. */
  readonly #notes = new Set<string>()

  /**
   * Adds a field that the upstream does not get; its name may be the client's.
   * @param reason only for the call log, and no text of the client
   */
  add(field: string, reason?: string): void {
    const name = field.slice(0, MAX_NAME_CHARS).replace(NOT_IN_A_LIST, '?')
    this.#dropped.add(name)
    this.#notes.add(reason === undefined ? name : `${name} (${reason})`)
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

/** Names the fields of a request that the conversation does not hold. */
export function nameOthers(
  given: LooseObject,
  held: ReadonlySet<string>,
  dropped: DroppedFields,
  prefix = '',
): void {
  const others = Object.keys(given).filter((name) => !held.has(name) && given[name] != null)
  nameAll(
    others.map((name) => prefix + name),
    dropped,
  )
}

/** Names as many fields as are of use. */
export function nameAll(names: readonly string[], dropped: DroppedFields): void {
  for (const name of names.slice(0, MAX_NAMED)) dropped.add(name)
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
