/** The whole service as an operator runs it, with embedded engines, and one channel to the bench's upstream. */
import { fileURLToPath } from 'node:url'
import { parseCredits } from '../../schemas/money.ts'
import { connect, type Sql } from '../../src/postgres/connection.ts'
import { type Database, openDatabase } from '../../src/postgres/database.ts'
import { startChild } from '../harness/children.ts'
import { MASTER_KEY, startTollgate } from '../harness/service.ts'
import { nextMessage } from '../harness/wait.ts'
import { tollgateProcesses } from '../subjects/tollgate-processes.ts'
import type { ToUpstream } from './upstream-messages.ts'

const UPSTREAM = fileURLToPath(new URL('upstream.ts', import.meta.url))
const MODEL = 'bench-film'
/** More than any run can spend. */
const CREDIT = '1000000000'

const configuration = (upstreamPort: number) => ({
  models: [{ id: MODEL, endpoint_type: 'videos_generations', pricing: { unit: 'second', per_unit: '1' } }],
  channels: [
    {
      id: 'bench',
      protocol: 'task',
      base_url: `http://127.0.0.1:${upstreamPort}`,
      api_key: 'bench',
      models: { [MODEL]: MODEL },
    },
  ],
})

export interface Upstream {
  readonly port: number
  send(message: ToUpstream): void
  ask<Answer>(message: ToUpstream): Promise<Answer>
}

export const startUpstream = async (): Promise<Upstream> => {
  const child = await startChild('the upstream of the bench', process.execPath, [UPSTREAM], {
    core: null,
    messages: true,
  })
  const { port } = await nextMessage<{ port: number }>(child)
  const send = (message: ToUpstream) => void child.process.send(message)
  return {
    port,
    send,
    ask: <Answer>(message: ToUpstream) => {
      const answer = nextMessage<Answer>(child)
      send(message)
      return answer
    },
  }
}

export interface Service {
  readonly database: Database
  readonly sql: Sql
  /** Returns its processes and engines by role. */
  processes(): ReturnType<typeof tollgateProcesses>
  /** Submits a video of five seconds. Throws unless the service accepts it. */
  submit(): Promise<void>
  close(): Promise<void>
}

const submitTo = (baseUrl: string, key: string) => {
  const request = {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: MODEL, prompt: 'A kite over the dunes.', duration: 5 }),
  }
  return async (): Promise<void> => {
    const response = await fetch(`${baseUrl}/v1/videos/generations`, request)
    const text = await response.text()
    if (!response.ok) throw new Error(`a submit was answered ${response.status}: ${text}`)
  }
}

/** Starts the service. It ends with the bench. */
export const startService = async (folder: string, upstreamPort: number): Promise<Service> => {
  const { child, record } = await startTollgate({
    folder,
    configuration: configuration(upstreamPort),
    env: { LOG_LEVEL: 'warn' },
  })
  const url = record.database_url!
  const database = await openDatabase({ url, masterKey: MASTER_KEY, maxConnections: 1, name: 'bench' })
  const sql = connect(url, { max: 1, name: 'bench' })
  const { account } = await database.accounts.create({ name: 'bench', credit: parseCredits(CREDIT) })
  const { raw } = await database.keys.create({ accountId: account.id, name: 'bench' })
  return {
    database,
    sql,
    processes: () => tollgateProcesses(child.pid),
    submit: submitTo(record.base_url!, raw),
    close: async () => {
      await sql.end({ timeout: 1 })
      await database.close()
      await child.stop()
    },
  }
}
