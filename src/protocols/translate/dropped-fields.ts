/**
 * The fields that a translation drops, for `X-Protocol-Warning`. See docs/api-rules.md, "Protocols and translation".
 */

export class DroppedFields {
  readonly #names = new Set<string>()

  /** Adds a field. `note` explains the effect to a developer; neither may contain the client's text. */
  add(field: string, note?: string): void {
    this.#names.add(note === undefined ? field : `${field} (${note})`)
  }

  all(): readonly string[] {
    return [...this.#names]
  }
}
