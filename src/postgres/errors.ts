import { setTimeout as sleep } from 'node:timers/promises'

/** SQLSTATE classes that another try may cure. PostgreSQL, "Error Codes" (appendix A). */
const TRANSIENT_CLASSES = new Set([
  '08', // connection exception
  '40', // transaction rollback: serialization failure, deadlock
  '53', // insufficient resources: disk full, out of memory, too many connections
  '57', // operator intervention: shutdown, starting up, cancelled by a timeout
  '58', // system error: an input/output error
])
/** The server takes no writes: a standby, or one that an operator has made read-only. */
const READ_ONLY_STATE = '25006'
const TRANSIENT_STATES = new Set([
  '55P03', // lock not available
  READ_ONLY_STATE,
])
/** The client's own codes and the kernel's. */
const TRANSIENT_CODES = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ENOTFOUND',
  'EAI_AGAIN',
  // No connection for want of something of this machine: files, ports, memory.
  'EMFILE',
  'ENFILE',
  'EADDRNOTAVAIL',
  'ENOBUFS',
  'ENOMEM',
])
/** A replica that is being promoted; and connections that this process has closed, as it does when it ends. */
const AWAY_CODES = new Set([READ_ONLY_STATE, 'CONNECTION_ENDED'])
/** Those of the transient classes that are about the server, and not about one transaction. */
const AWAY_CLASSES = new Set(['08', '53', '57', '58'])
/** Sent to a session just before it is ended. */
const SESSION_ENDED_STATES = new Set(['57P01', '57P02', '57P04', '57P05'])
/** Errors of the values sent: a retry fails as well. */
const DATA_CLASSES = new Set([
  '22', // data exception
  '23', // integrity constraint violation
  '54', // program limit exceeded: a value too long for its index
])
const SQLSTATE = /^[0-9A-Z]{5}$/

/** A call that PostgreSQL did not answer in time. Whether it was done is not known. */
export class DeadlineExceeded extends Error {
  readonly code = 'ETIMEDOUT'

  constructor(boundMs: number) {
    super(`PostgreSQL did not answer within ${boundMs} ms`)
    this.name = 'DeadlineExceeded'
  }
}

const readCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''

export const isLockTimeout = (error: unknown): boolean => readCode(error) === '55P03'

export const isUniqueViolation = (error: unknown): boolean => readCode(error) === '23505'

/**
 * Returns true when PostgreSQL is down, overloaded, or rolled the transaction back: the same call may succeed later.
 */
export function isTransient(error: unknown): boolean {
  const code = readCode(error)
  if (TRANSIENT_CODES.has(code) || TRANSIENT_STATES.has(code)) return true
  return SQLSTATE.test(code) && TRANSIENT_CLASSES.has(code.slice(0, 2))
}

/**
 * Returns true when PostgreSQL does not answer, or says that it cannot work now; false for an error of the statement, and
 * for a transaction that it rolled back: there it answers, and what a caller knows by itself must not decide instead.
 */
export function isAway(error: unknown): boolean {
  const code = readCode(error)
  if (TRANSIENT_CODES.has(code) || AWAY_CODES.has(code)) return true
  return SQLSTATE.test(code) && AWAY_CLASSES.has(code.slice(0, 2))
}

/** Returns true when the statement was sent to a server that takes no writes. */
export const isReadOnly = (error: unknown): boolean => readCode(error) === READ_ONLY_STATE

/** Returns true when the server reported that it ended the session. */
export const isSessionEnded = (error: unknown): boolean => SESSION_ENDED_STATES.has(readCode(error))

/** Returns true when a statement failed together with its connection: the session is lost. */
export function isSessionLost(error: unknown): boolean {
  // The client adds the statement to its own errors; the same code from elsewhere is not about the session.
  if (!(error instanceof Error) || !('query' in error)) return false
  const code = readCode(error)
  return TRANSIENT_CODES.has(code) || isSessionEnded(error) || code.startsWith('08')
}

/** Returns true when the values sent cannot be stored. */
export function isBadData(error: unknown): boolean {
  const code = readCode(error)
  return SQLSTATE.test(code) && DATA_CLASSES.has(code.slice(0, 2))
}

/** @throws DeadlineExceeded when the answer takes longer */
export async function waitWithin<T>(boundMs: number, answer: PromiseLike<T>): Promise<T> {
  const timer = new AbortController()
  try {
    return await Promise.race([
      answer,
      sleep(boundMs, undefined, { signal: timer.signal, ref: false }).then(() => {
        throw new DeadlineExceeded(boundMs)
      }),
    ])
  } finally {
    timer.abort()
  }
}
