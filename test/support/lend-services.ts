/** The pool of services over a socket, from the run of all tests to each of its files. One connection is one loan. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Database } from '../../src/postgres/database.ts'
import { openDatabase } from '../../src/postgres/database.ts'
import type { Teardown } from './engines.ts'
import { type LentService, outputPathOf, startService, TEST_MASTER_KEY } from './service.ts'
import { ServiceClient } from './service-client.ts'
import { LENT_ENVIRONMENT, type Loan, ServicePool } from './service-pool.ts'

const LOOPBACK = '127.0.0.1'
/** Set for the files of one run: the port where services are lent. */
const LENDER_PORT_VARIABLE = 'TEST_LENDER_PORT'

/** What a borrower gets of its service. */
interface Terms {
  readonly engines: LentService['engines']
  readonly configPath: string
  readonly baseUrl: string
  readonly pid: number
  readonly printed: number
}

export interface Lender {
  /** For the files that borrow. */
  readonly env: Readonly<Record<string, string>>
  /** Ends every service. */
  close(): Promise<void>
}

export async function startLender(): Promise<Lender> {
  const pool = new ServicePool()
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    void serve(pool, socket)
  })
  server.listen(0, LOOPBACK)
  await once(server, 'listening')
  return {
    env: { [LENDER_PORT_VARIABLE]: String((server.address() as AddressInfo).port) },
    async close() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await pool.close()
    },
  }
}

/** The first line asks for a configuration, the second gives the service back. Who goes without had a mishap. */
async function serve(pool: ServicePool, socket: Socket): Promise<void> {
  const tell = (message: object) => socket.write(`${JSON.stringify(message)}\n`)
  let loan: Loan | null = null
  try {
    for await (const line of createInterface({ input: socket })) {
      if (loan === null) {
        loan = await pool.lend(JSON.parse(line).config)
        tell(termsOf(loan))
      } else {
        await loan.giveBack()
        loan = null
        tell({})
      }
    }
  } catch (error) {
    tell({ error: String(error) })
  }
  await loan?.discard()
  socket.end()
}

const termsOf = ({ service, printed }: Loan): Terms => ({
  engines: {
    databaseUrl: service.engines.databaseUrl,
    clickhouseUrl: service.engines.clickhouseUrl,
    natsUrl: service.engines.natsUrl,
    simulatorUrl: service.engines.simulatorUrl,
  },
  configPath: service.configPath,
  baseUrl: service.baseUrl,
  pid: service.pid(),
  printed,
})

/** What of tap's test tells whether the service is fit for another. */
interface Borrower extends Teardown {
  passing(): boolean
}

/**
 * A service for a test that does not end or replace any part of it. It was used by others before, and is used by
 * others afterwards, but by nobody else meanwhile. In a run of one file it is its own.
 */
export async function borrowService(t: Borrower, config: string): Promise<LentService> {
  const port = process.env[LENDER_PORT_VARIABLE]
  if (port === undefined) return startService(t, { config, env: LENT_ENVIRONMENT })
  const socket = connect({ host: LOOPBACK, port: Number(port) })
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]()
  const ask = async (request: object) => {
    socket.write(`${JSON.stringify(request)}\n`)
    const { value, done } = await lines.next()
    const answer = done ? { error: 'the lender is gone' } : JSON.parse(value)
    if (answer.error !== undefined) throw new Error(answer.error)
    return answer
  }
  t.teardown(() => socket.destroy())
  const terms: Terms = await ask({ config })
  t.teardown(() => (t.passing() ? ask({}) : undefined))
  const url = terms.engines.databaseUrl
  const database = await openDatabase({ url, masterKey: TEST_MASTER_KEY, maxConnections: 2, name: 'test' })
  t.teardown(() => database.close())
  return new BorrowedService(terms, database)
}

class BorrowedService extends ServiceClient implements LentService {
  readonly engines: LentService['engines']
  readonly baseUrl: string
  readonly #terms: Terms

  constructor(terms: Terms, database: Database) {
    super(database, terms.configPath)
    this.engines = terms.engines
    this.baseUrl = terms.baseUrl
    this.#terms = terms
  }

  output(): string {
    return readFileSync(outputPathOf(this.configPath), 'utf8').slice(this.#terms.printed)
  }

  pid(): number {
    return this.#terms.pid
  }
}
