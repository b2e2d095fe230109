/** Pages of lists, by the id or another key of the last entry of the page before. */
import { Failure } from '../../schemas/failure.ts'

export interface PageInput {
  readonly limit: number
  readonly cursor?: string | undefined
}

export interface TimeInput {
  readonly since?: string | undefined
  readonly until?: string | undefined
}

const readTime = (text: string | undefined): Date | null => (text === undefined ? null : new Date(text))

/** Returns the time to which a list is limited. */
export const readRange = ({ since, until }: TimeInput) => ({ since: readTime(since), until: readTime(until) })

const notACursor = (): Failure => new Failure('invalid_request', 'cursor: is not the next_cursor of a page.')

/** Returns the key after which a page begins; null for the first page. @throws Failure `invalid_request` */
export function readCursor({ cursor }: PageInput): string | null {
  if (cursor === undefined) return null
  const id = Buffer.from(cursor, 'base64url').toString()
  // No key has a NUL, which PostgreSQL's texts cannot contain.
  if (id !== '' && !id.includes('\0') && Buffer.from(id).toString('base64url') === cursor) return id
  throw notACursor()
}

/** Returns the number before which a page of the newest begins, as `readCursor` does. @throws Failure `invalid_request` */
export function readNumberCursor(input: PageInput): bigint | null {
  const after = readCursor(input)
  if (after === null) return null
  if (/^\d{1,18}$/.test(after)) return BigInt(after)
  throw notACursor()
}

/** Returns where a page begins, and to read one entry more than it has. @throws Failure `invalid_request` */
export const readPage = (input: PageInput) => ({ after: readCursor(input), limit: input.limit + 1 })

/** Returns the cursor of the page after the entry of this key. */
export const printCursor = (key: string | number): string => Buffer.from(String(key)).toString('base64url')

/** Returns a list that is answered whole. */
export const toWholeList = <Entry>(data: readonly Entry[]) => ({
  object: 'list' as const,
  data,
  has_more: false as const,
  next_cursor: null,
})

/**
 * Returns a page of entries, of which one more than its limit was read.
 * @param toKey returns what the list is ordered by
 */
export function toPage<Entry extends { readonly id: string | number }>(
  entries: readonly Entry[],
  { limit }: PageInput,
  toKey: (entry: Entry) => string | number = ({ id }) => id,
) {
  const data = entries.slice(0, limit)
  const hasMore = entries.length > limit
  const last = data.at(-1)
  return {
    object: 'list' as const,
    data,
    has_more: hasMore,
    next_cursor: hasMore && last ? printCursor(toKey(last)) : null,
  }
}
