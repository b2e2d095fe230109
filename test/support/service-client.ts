/** A running service as a test speaks to it. */
import { parseCredits } from '../../schemas/money.ts'
import type { NewKey } from '../../src/postgres/accounts/keys.ts'
import type { Database } from '../../src/postgres/database.ts'
import { eventually } from './eventually.ts'

export { eventually, until } from './eventually.ts'

/** What a test may do with a service that others use after it: all but ending it. */
export interface LentService {
  readonly engines: {
    readonly databaseUrl: string
    readonly clickhouseUrl: string
    readonly natsUrl: string
    readonly simulatorUrl: string
  }
  readonly database: Database
  readonly configPath: string
  readonly baseUrl: string
  /** What the service has printed so far, both streams. */
  output(): string
  /** The supervisor's pid. */
  pid(): number
  /** A new account with this credit, and a key of it. */
  newKey(credit: string, more?: Partial<NewKey>): Promise<{ accountId: string; keyId: string; key: string }>
  chat(key: string, body: object, init?: RequestInit): Promise<Response>
  get(key: string, path: string): Promise<Response>
  /** The rows of the call log, newest first, once `enough` says so; throws after the bound. */
  logs(key: string, enough: (rows: LogJson[]) => boolean, query?: string): Promise<LogJson[]>
}

export type LogJson = Record<string, unknown> & {
  id: number
  request_id: string
  status: string
  cost: string
  model: string
  input_tokens: number
  output_tokens: number
  attempts_count: number | null
  error_code: string | null
}

/** Below what a key may, some of which a test may need itself. */
const LOG_READS = 40

/** Whether sums count these rows, too: lists have a call before ClickHouse does. */
export async function isCopied(
  database: Database,
  rows: readonly { readonly id: number }[],
): Promise<boolean> {
  try {
    const upto = await database.callCopy.readCopiedUpto()
    return rows.every(({ id }) => BigInt(id) <= upto)
  } catch {
    // Without PostgreSQL, lists have what ClickHouse has.
    return true
  }
}

/** The calls of a service, wherever it is. */
export abstract class ServiceClient {
  readonly database: Database
  readonly configPath: string
  readonly #logReaders = new Map<string, { reader: string; scope: string; reads: number }>()
  abstract readonly baseUrl: string

  constructor(database: Database, configPath: string) {
    this.database = database
    this.configPath = configPath
  }

  async newKey(credit: string, more: Partial<NewKey> = {}) {
    const { account } = await this.database.accounts.create({ name: 'test', credit: parseCredits(credit) })
    const { key, raw } = await this.database.keys.create({ name: 'test', accountId: account.id, ...more })
    return { accountId: account.id, keyId: key.id, key: raw }
  }

  chat(key: string, body: object, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(body),
      ...init,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...init.headers },
    })
  }

  get(key: string, path: string): Promise<Response> {
    return fetch(this.baseUrl + path, { headers: { authorization: `Bearer ${key}` } })
  }

  async logs(key: string, enough: (rows: LogJson[]) => boolean, query = ''): Promise<LogJson[]> {
    let seen: LogJson[] = []
    const read = async () => {
      const { reader, scope } = await this.#logReader(key)
      const response = await this.get(reader, `/v1/logs?limit=200${scope}${query}`)
      if (response.status !== 200)
        throw new Error(`logs answered ${response.status}: ${await response.text()}`)
      seen = ((await response.json()) as { data: LogJson[] }).data
      return enough(seen) && (await isCopied(this.database, seen)) ? seen : undefined
    }
    const what = 'the rows are in the call log'
    return eventually(what, read).catch((error: Error) => {
      throw new Error(`${error.message}; seen: ${JSON.stringify(seen).slice(0, 2000)}`)
    })
  }

  /** A test reads the log more often than a key may: every so many times with another key of the account. */
  async #logReader(key: string): Promise<{ reader: string; scope: string }> {
    const known = this.#logReaders.get(key) ?? { reader: key, scope: '', reads: 0 }
    this.#logReaders.set(key, known)
    if (++known.reads <= LOG_READS) return known
    const credential = await this.database.keys.findCredential(this.database.keys.lookupHash(key))
    if (credential === null) throw new Error('the log is read with a key that is none')
    const { account, key: own } = credential
    const { raw } = await this.database.keys.create({
      name: 'reader',
      accountId: account.id,
      accountLogs: true,
    })
    const next = { reader: raw, scope: `&scope=account&key_id=${own.id}`, reads: 1 }
    this.#logReaders.set(key, next)
    return next
  }
}
