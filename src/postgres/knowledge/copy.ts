/** Rows of the search index on their way in: COPY, because a row as values costs many times as much. */
import { once } from 'node:events'
import { finished } from 'node:stream/promises'
import type { Transaction } from '../transaction.ts'

/** Lines are sent when they have this many characters. */
const CHUNK_CHARS = 256 * 1024
/**
 * So few go in as one statement: the client (3.4.9) ends a COPY with a separate packet, for which the kernel waits
 * 40 ms and more.
 */
const FEW_CHARS = 16 * 1024
const NULL = '\\N'

/** In the order of their columns. */
const COLUMNS = {
  wiki_terms: ['base_id', 'term', 'pages', 'letters', 'reversed'],
  wiki_postings: ['base_id', 'term', 'part', 'entries'],
  wiki_page_terms: ['row_id', 'base_id', 'terms', 'impacts'],
} as const

type Target = keyof typeof COLUMNS

/** Copies lines. They are in COPY's text format, without their ends; nothing in them is escaped. */
export async function copyLines(
  transaction: Transaction,
  target: Target,
  lines: Iterable<string>,
): Promise<void> {
  const rest = lines[Symbol.iterator]()
  const few: string[] = []
  let chars = 0
  let next = rest.next()
  for (; !next.done && chars < FEW_CHARS; next = rest.next()) {
    few.push(next.value)
    chars += next.value.length
  }
  if (next.done) return insertFew(transaction, target, few)
  const into = await transaction.unsafe(`COPY ${target} FROM STDIN`).writable()
  const done = finished(into)
  let chunk = few.map((line) => `${line}\n`).join('')
  for (; !next.done; next = rest.next()) {
    chunk += `${next.value}\n`
    if (chunk.length < CHUNK_CHARS) continue
    if (!into.write(chunk)) await Promise.race([once(into, 'drain'), done])
    chunk = ''
  }
  into.end(chunk)
  await done
}

async function insertFew(transaction: Transaction, target: Target, lines: readonly string[]): Promise<void> {
  if (lines.length === 0) return
  const rows = lines.map((line) => {
    const values = line.split('\t').map((value) => (value === NULL ? null : value))
    return Object.fromEntries(COLUMNS[target].map((column, i) => [column, values[i]]))
  })
  await transaction`
    INSERT INTO ${transaction(target)}
    SELECT * FROM json_populate_recordset(${transaction.unsafe(`NULL::${target}`)}, ${JSON.stringify(rows)}::text::json)`
}

/** Terms have neither quotes nor backslashes in them. */
export const printTextArray = (terms: Iterable<string>): string =>
  `{${Array.from(terms, (term) => `"${term}"`)}}`
