/**
 * The fields that a translation drops, for `X-Protocol-Warning`, and those that it changes, for `X-Protocol-Changes`.
 * See docs/api-rules.md, "Protocols and translation".
 */
import type { ConversationSettings } from '../../../schemas/chat/conversation.ts'
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
