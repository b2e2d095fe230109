/** What a translation leaves out, for `X-Protocol-Warning`. See docs/api-rules.md, "Protocols and translation". */

export class DroppedFields {
  readonly #names = new Set<string>()

  /** `note` says what a developer needs to know beyond the name; no text of the client's belongs into either. */
  add(field: string, note?: string): void {
    this.#names.add(note === undefined ? field : `${field} (${note})`)
  }

  all(): readonly string[] {
    return [...this.#names]
  }
}
