/**
 * Copies usage rows from PostgreSQL, the source of truth, into the call log in ClickHouse. A range of rows is claimed
 * permanently, read, inserted under the range's own token, and finished; after an interruption the work is repeated
 * from the claim, and the token excludes rows that were inserted already. Only one of all processes copies at a time.
 * No call waits for it. See docs/architecture.md, "A settlement".
 */
import {
  defer,
  type Observable,
  race,
  repeat,
  retry,
  Subject,
  type Subscription,
  take,
  tap,
  timer,
} from 'rxjs'
import { MAX_RANGE_ROWS } from '../../schemas/call-log/usage-row.ts'
import type { CallTables } from '../../src/clickhouse/call-log.ts'
import type { CopyRange } from '../../src/postgres/call-log/copy.ts'
import type { CallCopy } from '../../src/postgres/call-log/repository.ts'

/**
 * About one insert a second: each costs ClickHouse 15 to 30 ms of CPU whatever its rows, and leaves parts on disk to be
 * merged. A row is to be in the log within two seconds.
 */
const INSERT_GAP_MS = 800
/** Rows that another process booked are found without a call of `wake`. */
const POLL_MS = 500
const FIRST_RETRY_MS = 250
const MAX_RETRY_MS = 5_000

export type CopierEvent =
  | { readonly event: 'failed'; readonly error: Error; readonly failures: number; readonly retryMs: number }
  | { readonly event: 'recovered'; readonly failures: number }

interface CopierHealth {
  /** Rows copied by this process. */
  readonly copiedRows: number
  /**
   * Age of the oldest row that is claimed and not copied yet, since its booking, milliseconds; 0 when there is none.
   */
  readonly lagMs: number
  /** Failures in a row; 0 while it works. */
  readonly failures: number
  readonly lastError: string | null
}

export interface UsageCopier {
  start(): void
  /** Called after a booking: the rows are copied at once, or with the next insert. */
  wake(): void
  /** Stops; resolves when a running copy has ended. */
  stop(): Promise<void>
  health(): CopierHealth
}

interface UsageCopierDeps {
  readonly database: { readonly callCopy: CallCopy }
  readonly callLog: CallTables
  readonly onEvent?: (event: CopierEvent) => void
}

/** Returns the same token for every try at the range, and for no other range. */
export const makeCopyToken = ({ from, to }: CopyRange): string => `usage-${from}-${to}`

const retryMs = (failures: number): number => Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), MAX_RETRY_MS)

export function usageCopier({ database, callLog, onEvent = () => {} }: UsageCopierDeps): UsageCopier {
  const wakes = new Subject<void>()
  let isWoken = false
  let running: Promise<unknown> = Promise.resolve()
  let subscription: Subscription | null = null
  let copiedRows = 0
  let waitingSince: number | null = null
  let failures = 0
  let lastError: string | null = null

  /**
   * Copies one range, and returns how many rows it put into the log. Returns null when there is nothing to copy, or
   * another process copies.
   */
  async function copyNext(): Promise<number | null> {
    const range = await database.callCopy.claimRange()
    waitingSince = range?.oldestBookedAt ?? null
    if (range === null) return null
    const text = await database.callCopy.readRows(range)
    const rows = await callLog.insertCalls({ token: makeCopyToken(range), text })
    await database.callCopy.finishRange(range)
    waitingSince = null
    copiedRows += rows
    return rows
  }

  function noteSuccess(): void {
    if (failures > 0) onEvent({ event: 'recovered', failures })
    failures = 0
    lastError = null
  }

  function noteFailure(error: Error): Observable<unknown> {
    failures += 1
    lastError = error.message
    const delay = retryMs(failures)
    onEvent({ event: 'failed', error, failures, retryMs: delay })
    return timer(delay)
  }

  /**
   * Waits before the next range: not at all after a full one, because more rows wait; a gap after one that was not full;
   * until the next booking after none.
   */
  function waitForNext(rows: number | null): Observable<unknown> {
    const goesOn = rows !== null || isWoken
    isWoken = false
    if (!goesOn) return race(wakes, timer(POLL_MS)).pipe(take(1))
    return timer(rows !== null && rows >= MAX_RANGE_ROWS ? 0 : INSERT_GAP_MS)
  }

  function repeatRounds(): Observable<number | null> {
    let last: number | null = null
    return defer(() => {
      isWoken = false
      const round = copyNext()
      running = round.catch(() => {})
      return round
    }).pipe(
      tap((rows) => {
        last = rows
        noteSuccess()
      }),
      repeat({ delay: () => waitForNext(last) }),
      retry({ delay: noteFailure }),
    )
  }

  return {
    start() {
      subscription ??= repeatRounds().subscribe()
    },
    wake() {
      isWoken = true
      wakes.next()
    },
    async stop() {
      subscription?.unsubscribe()
      subscription = null
      await running
    },
    health: () => ({
      copiedRows,
      lagMs: waitingSince === null ? 0 : Math.max(0, Date.now() - waitingSince),
      failures,
      lastError,
    }),
  }
}
