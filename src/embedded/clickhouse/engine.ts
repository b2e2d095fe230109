import { open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { Session } from 'chdb'
import { ClickHouseFailure } from './failure.ts'

/** One statement as it came over HTTP. */
export interface Statement {
  sql: string
  /** The bytes after the statement in the request: the rows of an INSERT. */
  data: Buffer | null
  /** Values of the statement's `{name:Type}` placeholders, in ClickHouse's escaped text form. */
  parameters: ReadonlyMap<string, string>
  settings: ReadonlyMap<string, string>
  database: string | null
  /** Output format where the statement names none. */
  format: string
  readOnly: boolean
}

export interface Outcome {
  bytes: Uint8Array
  readRows: number
  readBytes: number
  writtenRows: number
  writtenBytes: number
  elapsedSeconds: number
}

/** Results are held whole in memory here, and chDB cannot interrupt a statement: both have a bound. */
const DEFAULT_SETTINGS = new Map([
  ['max_result_bytes', String(256 * 1024 * 1024)],
  ['max_execution_time', '60'],
])
const CONCURRENT_STATEMENTS = 4
const QUEUED_STATEMENTS = 1_000
/** Sessions for recent kinds of reads: a few of each, of the dozen of a call log. */
const KEPT_SESSIONS = 16
const TOO_MANY_SIMULTANEOUS_QUERIES = 202

/**
 * chDB on one directory. Every statement has a connection to itself, because settings, parameters and the chosen
 * database belong to the connection. To make one ready takes as long as a small statement: those of reads are kept for
 * the next one of their kind.
 */
export class ChdbEngine {
  readonly #path: string
  /** Keeps the engine loaded while no statement runs. */
  readonly #anchor: Session
  /** The one used last is at the end. */
  readonly #kept: { readonly kind: string; readonly session: Session }[] = []
  #running = 0
  readonly #queue: Array<() => void> = []
  #idle: (() => void) | null = null

  private constructor(path: string) {
    this.#path = path
    this.#anchor = new Session(path)
  }

  /** Opens or makes the directory, and the database in it. */
  static async open(path: string, database: string): Promise<ChdbEngine> {
    const engine = new ChdbEngine(path)
    await engine.#anchor.queryAsync(`CREATE DATABASE IF NOT EXISTS ${quoteIdentifier(database)}`)
    return engine
  }

  /** @throws ClickHouseFailure with ClickHouse's own code and text */
  async run(statement: Statement): Promise<Outcome> {
    await this.#enter()
    try {
      return await (isRead(statement) ? this.#read(statement) : this.#runAlone(statement))
    } catch (error) {
      throw ClickHouseFailure.from(error)
    } finally {
      this.#leave()
    }
  }

  /** Waits for the running statement; those that wait are dropped. */
  async close(): Promise<void> {
    this.#queue.length = 0
    if (this.#running > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve
      })
    }
    for (const { session } of this.#kept.splice(0)) session.close()
    this.#anchor.close()
  }

  async #runAlone(statement: Statement): Promise<Outcome> {
    const session = new Session(this.#path)
    try {
      for (const preparation of listPreparations(statement)) await session.queryAsync(preparation)
      return await execute(session, statement, this.#path)
    } finally {
      session.close()
    }
  }

  /** Runs a read. A session in which something failed is not used again: it may be in any state. */
  async #read(statement: Statement): Promise<Outcome> {
    const kind = classify(statement)
    const index = this.#kept.findLastIndex((kept) => kept.kind === kind)
    const [known] = index < 0 ? [] : this.#kept.splice(index, 1)
    const session = known?.session ?? new Session(this.#path)
    try {
      const steps = known === undefined ? listPreparations(statement) : listRenewals(statement)
      for (const preparation of steps) await session.queryAsync(preparation)
      const outcome = await execute(session, statement, this.#path)
      this.#kept.push({ kind, session })
      if (this.#kept.length > KEPT_SESSIONS) this.#kept.shift()!.session.close()
      return outcome
    } catch (error) {
      session.close()
      throw error
    }
  }

  async #enter(): Promise<void> {
    if (this.#running < CONCURRENT_STATEMENTS) {
      this.#running += 1
      return
    }
    if (this.#queue.length >= QUEUED_STATEMENTS) {
      const text = `Too many simultaneous queries. Maximum: ${QUEUED_STATEMENTS}`
      throw new ClickHouseFailure(TOO_MANY_SIMULTANEOUS_QUERIES, 'TOO_MANY_SIMULTANEOUS_QUERIES', text)
    }
    await new Promise<void>((resolve) => this.#queue.push(resolve))
  }

  /** Passes the place to the longest waiting statement: the count of running statements stays. */
  #leave(): void {
    const next = this.#queue.shift()
    if (next !== undefined) {
      next()
      return
    }
    this.#running -= 1
    if (this.#running === 0) this.#idle?.()
  }
}

/** Returns whether a statement leaves nothing behind in its session. */
const isRead = ({ sql, data }: Statement): boolean => data === null && /^\s*(?:SELECT|WITH)\b/i.test(sql)

/**
 * Returns the kind of a statement. Statements of one kind differ only in their text and the values of their
 * parameters.
 */
const classify = ({ database, settings, parameters, readOnly }: Statement): string =>
  JSON.stringify([database, readOnly, [...settings], [...parameters.keys()]])

const set = (assignments: Iterable<readonly [name: string, value: string]>): string =>
  `SET ${[...assignments].map(([name, value]) => `${checkSettingName(name)} = ${quoteLiteral(value)}`).join(', ')}`

const assignParameters = ({ parameters }: Statement) =>
  [...parameters].map(([name, value]) => [`param_${name}`, value] as const)

/** Returns the statements that renew a session that one of this kind has used. */
const listRenewals = (statement: Statement): string[] =>
  statement.parameters.size === 0 ? [] : [set(assignParameters(statement))]

/** Returns the statements that prepare a new session. */
function listPreparations(statement: Statement): string[] {
  const { database, settings, readOnly } = statement
  const assignments = new Map([...DEFAULT_SETTINGS, ...settings, ...assignParameters(statement)])
  // Last: after it no setting can be changed.
  if (readOnly) assignments.set('readonly', '1')
  const use = database === null ? [] : [`USE ${quoteIdentifier(database)}`]
  return [...use, set(assignments)]
}

const PLAIN_INSERT =
  /^\s*INSERT\s+INTO\s+(?:TABLE\s+)?([\w.]+\s*(?:\([\w\s,]+\))?)\s*FORMAT\s+(\w+)\s*;?\s*$/i

async function execute(session: Session, statement: Statement, folder: string): Promise<Outcome> {
  const { sql, data, format } = statement
  const [, target, rowFormat] = PLAIN_INSERT.exec(sql) ?? []
  if (data !== null && target !== undefined && rowFormat !== undefined)
    return withRowFile(folder, data, async (path) => {
      const insert = `INSERT INTO ${target} FROM INFILE '${path}' COMPRESSION 'none' FORMAT ${rowFormat}`
      const { rowsRead, bytesRead, elapsed } = await session.queryAsync(insert)
      return { ...NOTHING, writtenRows: rowsRead, writtenBytes: bytesRead, elapsedSeconds: elapsed }
    })
  const whole = data === null ? sql : `${sql}\n${toText(data)}`
  const result = await session.queryAsync(whole, { format })
  const { rowsRead, bytesRead, elapsed } = result
  return {
    ...NOTHING,
    bytes: result.bytes(),
    readRows: rowsRead,
    readBytes: bytesRead,
    elapsedSeconds: elapsed,
  }
}

const NOTHING: Outcome = {
  bytes: new Uint8Array(),
  readRows: 0,
  readBytes: 0,
  writtenRows: 0,
  writtenBytes: 0,
  elapsedSeconds: 0,
}

const NOT_IMPLEMENTED = 48

/** Returns rows as text, which follow a statement that is no plain INSERT: chDB takes such a statement as text. */
function toText(data: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data)
  } catch {
    const text = 'The embedded ClickHouse takes rows in a binary format only after INSERT INTO table FORMAT'
    throw new ClickHouseFailure(NOT_IMPLEMENTED, 'NOT_IMPLEMENTED', text)
  }
}

const UNKNOWN_SETTING = 115

function checkSettingName(name: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return name
  throw new ClickHouseFailure(UNKNOWN_SETTING, 'UNKNOWN_SETTING', `Unknown setting '${name}'`)
}

function quoteLiteral(text: string): string {
  return `'${text.replaceAll(/[\\']/g, '\\$&')}'`
}

function quoteIdentifier(name: string): string {
  return `\`${name.replaceAll(/[\\`]/g, '\\$&')}\``
}

let written = 0

/**
 * Writes the rows of an INSERT to a file in `folder`, from which the engine reads them: rows that follow the statement
 * cost twice as much, because the engine looks for the end of the statement in all of them.
 *
 * The file has no name by the time it is written, so that no kill leaves it behind. `work` gets the path of its
 * descriptor, which has no character that the engine would take for a pattern, whatever the folder is called. On Linux,
 * opening that path starts at the beginning of the file.
 */
async function withRowFile<T>(folder: string, rows: Buffer, work: (path: string) => Promise<T>): Promise<T> {
  written += 1
  const name = join(folder, `rows-${written}`)
  const file = await open(name, 'w+', 0o600)
  try {
    await unlink(name)
    await file.writeFile(rows)
    return await work(`/dev/fd/${file.fd}`)
  } finally {
    await file.close()
  }
}
