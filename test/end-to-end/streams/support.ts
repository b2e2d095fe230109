/** Many calls at a time, the bytes of each, and the rows as PostgreSQL has them. */
import { Agent, request } from 'node:http'
import postgres from 'postgres'
import type { Test } from 'tap'
import { eventually, type LentService } from '../../support/service.ts'

export interface Answered {
  readonly status: number
  readonly contentType: string
  readonly requestId: string
  readonly body: Buffer
  /** The response ended as HTTP wants it. */
  readonly isWhole: boolean
}

/** Connections that are kept, as many as asked for. */
export function clientFor(t: Test, service: LentService, key: string, connections: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  t.teardown(() => agent.destroy())
  return (body: object): Promise<Answered> =>
    new Promise((resolve, reject) => {
      const url = `${service.baseUrl}/v1/chat/completions`
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      const sent = request(url, { method: 'POST', agent, headers }, (response) => {
        const pieces: Buffer[] = []
        response.on('data', (bytes: Buffer) => pieces.push(bytes))
        response.on('error', () => undefined)
        response.on('close', () =>
          resolve({
            status: response.statusCode!,
            contentType: response.headers['content-type'] ?? '',
            requestId: String(response.headers['x-gateway-trace']),
            body: Buffer.concat(pieces),
            isWhole: response.complete,
          }),
        )
      })
      sent.on('error', reject)
      sent.end(JSON.stringify(body))
    })
}

/** Runs `work` on every item, so many at a time. */
export async function each<T>(
  items: readonly T[],
  atATime: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = items.values()
  await Promise.all(
    Array.from({ length: atATime }, async () => {
      for (const item of left) await work(item)
    }),
  )
}

export interface BookedRow {
  readonly request_id: string
  readonly status: string
  readonly error_code: string | null
  readonly input_tokens: number
  readonly output_tokens: number
  readonly usage_source: string
  readonly cost: number
  readonly attempts_count: number
}

/** Every row of the account, once there are so many. `cost` counts credits. */
export async function bookedRows(
  service: LentService,
  accountId: string,
  count: number,
): Promise<ReadonlyMap<string, BookedRow>> {
  const sql = postgres(service.engines.databaseUrl, { max: 1 })
  try {
    const rows = await eventually(`${count} rows are booked`, async () => {
      const found = await sql<BookedRow[]>`
        SELECT request_id, status, error_code, usage_source, attempts_count,
               input_tokens::int, output_tokens::int, (cost / 1e8)::float AS cost
        FROM usage_rows WHERE account_id = ${accountId}`
      return found.length >= count ? found : undefined
    })
    if (rows.length !== count) throw new Error(`${rows.length} rows for ${count} calls`)
    return new Map(rows.map((row) => [row.request_id, row]))
  } finally {
    await sql.end()
  }
}

/** What the simulated provider answers to exactly this body, asked directly. */
export async function upstreamAnswer(
  service: LentService,
  body: object | string,
): Promise<{ status: number; contentType: string; body: Buffer }> {
  const response = await fetch(`${service.engines.simulatorUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return {
    status: response.status,
    contentType: response.headers.get('content-type') ?? '',
    body: Buffer.from(await response.arrayBuffer()),
  }
}
