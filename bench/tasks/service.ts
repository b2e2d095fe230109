/** The whole service as an operator runs it, with embedded engines, and one channel to the bench's upstream. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseCredits } from '../../schemas/money.ts'
import { readRunning } from '../../src/embedded/data-dir.ts'
import { connect, type Sql } from '../../src/postgres/connection.ts'
import { openDatabase } from '../../src/postgres/database.ts'
import type { Database } from '../../src/postgres/types.ts'
import { type Child, startChild } from '../harness/children.ts'
import { firstMessage, untilReady } from '../harness/wait.ts'
import { tollgateProcesses } from '../subjects/tollgate-processes.ts'
import type { ToUpstream } from './upstream-messages.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PROGRAM = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const UPSTREAM = fileURLToPath(new URL('upstream.ts', import.meta.url))
/** Of a database that holds nothing worth a secret. */
const MASTER_KEY = Buffer.alloc(32, 7)
const MODEL = 'bench-film'
/** More than any run can spend. */
const CREDIT = '1000000000'

const configuration = (upstreamPort: number): string =>
  // YAML, of which JSON is a part.
  JSON.stringify({
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
  const { port } = await firstMessage<{ port: number }>(child)
  const send = (message: ToUpstream) => void child.process.send(message)
  return {
    port,
    send,
    ask: <Answer>(message: ToUpstream) => {
      const answer = firstMessage<Answer>(child)
      send(message)
      return answer
    },
  }
}

export interface Service {
  readonly database: Database
  readonly sql: Sql
  /** Its processes and engines, by what they do. */
  processes(): ReturnType<typeof tollgateProcesses>
  /** Makes a video of five seconds. Throws unless the service takes it on. */
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

/** It ends with the bench, however that ends. */
export const startService = async (folder: string, upstreamPort: number): Promise<Service> => {
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir, { recursive: true })
  const config = join(folder, 'tollgate.yaml')
  writeFileSync(config, configuration(upstreamPort))
  const child: Child = await startChild('tollgate', process.execPath, [PROGRAM, 'serve'], {
    core: null,
    cwd: ROOT,
    env: {
      TOLLGATE_MASTER_KEY: MASTER_KEY.toString('hex'),
      TOLLGATE_CONFIG: config,
      TOLLGATE_DATA_DIR: dataDir,
      TOLLGATE_PORT: '0',
      TOLLGATE_WORKERS: '1',
      LOG_LEVEL: 'warn',
    },
  })
  const run = await untilReady(child, () => {
    const record = readRunning(dataDir)
    return record?.pid === child.pid ? record : null
  })
  const url = run.database_url!
  const database = await openDatabase({ url, masterKey: MASTER_KEY, maxConnections: 1, name: 'bench' })
  const sql = connect(url, { max: 1, name: 'bench' })
  const { account } = await database.createAccount({ name: 'bench', credit: parseCredits(CREDIT) })
  const { raw } = await database.createKey({ accountId: account.id, name: 'bench' })
  return {
    database,
    sql,
    processes: () => tollgateProcesses(child.pid),
    submit: submitTo(run.base_url!, raw),
    close: async () => {
      await sql.end({ timeout: 1 })
      await database.close()
      await child.stop()
    },
  }
}
