/** `tollgate logs tail`: calls as they are booked, each once, whatever becomes of the database meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type CallFilter, LOOK_BACK_ROWS, type OperatorCall } from '../../postgres/call-log/calls.ts'
import type { Database } from '../../postgres/database.ts'
import { isTransient } from '../../postgres/errors.ts'
import type { Wiring } from '../wiring.ts'

/** Delay after which a new row is shown at the latest. */
const POLL_MS = 500
const RETRY_MS = 1_000

interface TailOptions {
  readonly filter: CallFilter
  /** So many of the newest calls come first. */
  readonly lines: number
}

export interface TailOutput {
  calls(calls: readonly OperatorCall[]): void
  /** Prints a note for a person at the terminal; it is no part of the answer. */
  notice(text: string): void
}

/** Prints the newest calls; answers with the row to go on behind. */
export async function showNewest(
  database: Database,
  { filter, lines }: TailOptions,
  output: TailOutput,
): Promise<bigint> {
  // A misspelled id would wait for its first call for ever.
  if (filter.accountId !== undefined) await database.accounts.show(filter.accountId)
  if (filter.keyId !== undefined) await database.keys.show(filter.keyId)
  const { calls, upto, isCut } = await database.calls.readNewest(filter, lines)
  if (isCut)
    output.notice(`Of the last ${LOOK_BACK_ROWS} calls ${calls.length} match; older ones were not searched.`)
  output.calls(calls)
  return upto
}

/** Prints new rows after `position` until it is stopped. */
export async function follow(
  wiring: Pick<Wiring, 'withServiceDatabase'>,
  filter: CallFilter,
  from: { readonly position: bigint; readonly stopped: AbortSignal },
  output: TailOutput,
): Promise<void> {
  const { stopped } = from
  let position = from.position
  let trouble: string | null = null

  const tell = (reason: string) => {
    if (reason !== trouble) output.notice(reason)
    trouble = reason
  }
  async function watch(database: Database): Promise<true> {
    while (!stopped.aborted) {
      const { calls, upto, hasMore } = await database.calls.readSince(filter, position)
      if (trouble !== null) output.notice('The database answers again.')
      trouble = null
      if (upto < position) output.notice('The database is not the one it was: going on with its newest call.')
      output.calls(calls)
      position = upto
      if (!hasMore) await pause(POLL_MS, stopped)
    }
    return true
  }

  while (!stopped.aborted) {
    try {
      const isReached = await wiring.withServiceDatabase(watch)
      if (isReached === null) tell('No service runs here: waiting for one.')
    } catch (error) {
      if (!isTransient(error)) throw error
      tell(`The database does not answer, trying again: ${messageOf(error)}`)
    }
    await pause(RETRY_MS, stopped)
  }
}

const messageOf = (error: unknown): string => {
  const { message, code } = error as NodeJS.ErrnoException
  return message || (code ?? 'unknown error')
}

/** Ends early when it is stopped. */
async function pause(delayMs: number, stopped: AbortSignal): Promise<void> {
  await sleep(delayMs, undefined, { signal: stopped }).catch(() => {})
}
