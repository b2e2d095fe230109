/** The part of a list that is read. */
export interface Listing {
  /** Begins after the entry with this id. */
  readonly after?: string | null
  /** Default: all of them. */
  readonly limit?: number | null
}
