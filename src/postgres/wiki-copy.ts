/** Rows of the search index on their way in: COPY, because a row as values costs many times as much. */
import { once } from 'node:events'
import { finished } from 'node:stream/promises'
import type { Transaction } from './transaction.ts'

/** Lines are sent when so many characters of them have come together. */
const CHUNK_CHARS = 256 * 1024

/** Lines are in COPY's text format, without their ends. */
export async function copyLines(
  transaction: Transaction,
  target: string,
  lines: Iterable<string>,
): Promise<void> {
  const into = await transaction.unsafe(`COPY ${target} FROM STDIN`).writable()
  const done = finished(into)
  let chunk = ''
  for (const line of lines) {
    chunk += `${line}\n`
    if (chunk.length < CHUNK_CHARS) continue
    if (!into.write(chunk)) await Promise.race([once(into, 'drain'), done])
    chunk = ''
  }
  into.end(chunk)
  await done
}

/** Terms have neither quotes nor backslashes in them. */
export const textArray = (terms: Iterable<string>): string => `{${Array.from(terms, (term) => `"${term}"`)}}`
