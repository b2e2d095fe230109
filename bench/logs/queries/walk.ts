/** Walks from page to page by cursors, and checks each page. */
import type { LogEngine, PageQuery } from '../engines/engine.ts'

/**
 * Yields the number of rows of each page, up to `most` pages. Throws when a row appears twice, or when a page before the
 * last is not full.
 */
export async function* walkPages(
  engine: Pick<LogEngine, 'name' | 'page'>,
  query: PageQuery,
  pages: number,
): AsyncGenerator<number, undefined> {
  const seen = new Set<number>()
  let cursor: string | null = null
  for (let number = 1; number <= pages; number++) {
    const { ids, next } = await engine.page({ ...query, cursor })
    for (const id of ids) {
      if (seen.has(id)) throw new Error(`${engine.name}: row ${id} came twice, again on page ${number}`)
      seen.add(id)
    }
    if (next !== null && ids.length !== query.limit)
      throw new Error(`${engine.name}: page ${number} has ${ids.length} rows, and there are more`)
    yield ids.length
    if (next === null) return
    cursor = next
  }
}
