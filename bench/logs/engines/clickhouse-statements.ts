/** The bench's own statements to ClickHouse, over HTTP, without a time limit. */

import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'

export interface Statements {
  /** Rejects with ClickHouse's message. */
  run(sql: string): Promise<void>
  /** Columns by name; 64-bit numbers are strings. */
  rows<T>(sql: string): Promise<T[]>
  /** Returns the response in the format that the statement names. */
  text(sql: string): Promise<Buffer>
}

/** Every inserted row is new, so ClickHouse need not compare it with former inserts. */
const SETTINGS = {
  output_format_json_quote_64bit_integers: '1',
  max_execution_time: '0',
  insert_deduplicate: '0',
  wait_end_of_query: '1',
}

export const statementsTo = (url: string): Statements => {
  const { origin, pathname, username, password } = new URL(url)
  const query = new URLSearchParams({ database: pathname.slice(1), ...SETTINGS })
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  const text = async (sql: string): Promise<Buffer> => {
    // Not `fetch`, which waits at most five minutes: the merge of a year may take longer.
    const asking = request(`${origin}/?${query}`, { method: 'POST', headers: { authorization } })
    asking.end(sql)
    const [answer] = (await once(asking, 'response')) as [IncomingMessage]
    const body = await buffer(answer)
    if (answer.statusCode !== 200) throw new Error(`ClickHouse: ${body.toString().trim().slice(0, 1_000)}`)
    return body
  }
  return {
    text,
    run: async (sql) => {
      await text(sql)
    },
    rows: async <T>(sql: string) => {
      const body = await text(`${sql} FORMAT JSONEachRow`)
      return body
        .toString()
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as T)
    },
  }
}
