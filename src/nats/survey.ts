/** One question to every process that answers it: core NATS, nothing is stored. */
import type { NatsConnection } from '@nats-io/transport-node'
import { Connection, type NatsLog } from './connection.ts'

/** Silence after an answer that ends the wait for more. */
const STALL_MS = 300

interface SurveyOptions {
  readonly url: string
  /** Shown by the server among its connections. */
  readonly name: string
  readonly log: NatsLog
  readonly subject: string
  /** For the connection and all answers. */
  readonly boundMs: number
}

/** Sends a request to all processes, and returns the answers within the bound; null when NATS did not answer. */
export async function survey({ url, name, log, subject, boundMs }: SurveyOptions): Promise<string[] | null> {
  const connection = new Connection(url, name, log)
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), boundMs)
  })
  const connected = new Promise<NatsConnection>((resolve) =>
    connection.use({ onConnected: resolve, onDisconnected: () => undefined }),
  )
  try {
    const current = await Promise.race([connected, late])
    return current === null ? null : await askAll(current, subject, boundMs)
  } finally {
    clearTimeout(timer)
    await connection.close()
  }
}

/** Sends a request to all processes, and returns the answers within the bound. @param count ends with this many */
export async function askAll(
  connection: NatsConnection,
  subject: string,
  maxWait: number,
  count?: number,
): Promise<string[]> {
  const answers: string[] = []
  try {
    const options =
      count === undefined
        ? ({ strategy: 'stall', stall: STALL_MS, maxWait } as const)
        : ({ strategy: 'count', maxMessages: count, maxWait } as const)
    for await (const message of await connection.requestMany(subject, '', options))
      answers.push(message.string())
  } catch {
    // No process answers this subject: the result is empty.
  }
  return answers
}
