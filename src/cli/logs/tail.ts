/** `tollgate logs tail`: calls as they are booked, each once, whatever happens to the database meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Option } from 'commander'
import type { CallStatus } from '../../../schemas/call-log/row.ts'
import { CALL_STATUSES } from '../../../schemas/call-log/words.ts'
import { shorten } from '../../core/json/cut.ts'
import { type CallFilter, LOOK_BACK_ROWS, type OperatorCall } from '../../postgres/call-log/calls.ts'
import type { Database } from '../../postgres/database.ts'
import { isTransient } from '../../postgres/errors.ts'
import type { Command, Context } from '../context.ts'
import { readCount, readNames } from '../operations/fields.ts'
import { makePainter, printable } from '../output.ts'

/** Delay after which a new row is shown at the latest. */
const POLL_MS = 500
const RETRY_MS = 1_000
const DEFAULT_LINES = 10

const STATUS_COLOURS = {
  success: 'green',
  error: 'red',
  interrupted: 'yellow',
  rejected: 'magenta',
} as const satisfies Record<CallStatus, string>
const GAP = '  '
const STATUS_CHARS = 'interrupted'.length
/** Most models' names; a longer one moves its own line. */
const MODEL_CHARS = 20
/** An error's message is cut here; `logs find` has all of it. */
export const MESSAGE_MAX_CHARS = 200

interface TailFlags {
  readonly account?: string
  readonly key?: string
  readonly model?: readonly string[]
  readonly status?: readonly CallStatus[]
  readonly lines: number
  readonly follow: boolean
  readonly json?: boolean
}

export function addTail(program: Command, { wiring, output }: Context): void {
  program
    .group('logs')
    .command('tail')
    .description('Print the newest calls, and then each call as it is booked')
    .option('--account <id>', 'Only calls of this account')
    .option('--key <id>', 'Only calls of this key')
    .option('--model <a,b>', 'Only calls of these models', (text) => readNames(text))
    .option('--status <a,b>', 'Only calls with one of these statuses', (text) =>
      readNames(text, CALL_STATUSES),
    )
    .option(
      '-n, --lines <n>',
      'How many of the newest to begin with',
      (text) => readCount(text, 0),
      DEFAULT_LINES,
    )
    .option('--no-follow', 'End after the newest')
    .addOption(new Option('--json', 'Print one JSON value a line'))
    .example('logs tail --status error,interrupted -n 50')
    .action(async (flags: TailFlags) => {
      const { account: accountId, key: keyId, model: models, status: statuses } = flags
      const line = (call: OperatorCall): string =>
        flags.json ? `${JSON.stringify(call)}\n` : printCall(call, output.isColoured)
      const tail = new Tail(wiring, {
        filter: { accountId, keyId, models, statuses },
        print: (calls) => calls.length > 0 && output.answer(calls.map(line).join('')),
        notice: (text) => output.error(`${text}\n`),
      })
      await wiring.untilStopped(async (stopped) => {
        await tail.showNewest(await wiring.database(), flags.lines)
        // A database that this command started would prevent a service from starting.
        await wiring.close()
        if (flags.follow) await tail.follow(stopped)
      })
    })
}

interface TailOptions {
  readonly filter: CallFilter
  readonly print: (calls: readonly OperatorCall[]) => void
  /** Prints a note for the person at the terminal, apart from the answer. */
  readonly notice: (text: string) => void
}

class Tail {
  readonly #wiring: Context['wiring']
  readonly #options: TailOptions
  /** The last row that was read. */
  #position = 0n
  #trouble: string | null = null

  constructor(wiring: Context['wiring'], options: TailOptions) {
    this.#wiring = wiring
    this.#options = options
  }

  async showNewest({ accounts, keys, calls }: Database, count: number): Promise<void> {
    const { filter, print, notice } = this.#options
    // A misspelled id would wait forever.
    if (filter.accountId !== undefined) await accounts.show(filter.accountId)
    if (filter.keyId !== undefined) await keys.show(filter.keyId)
    const newest = await calls.readNewest(filter, count)
    if (newest.isCut)
      notice(
        `${newest.calls.length} of the last ${LOOK_BACK_ROWS} calls match; older ones were not searched.`,
      )
    print(newest.calls)
    this.#position = newest.upto
  }

  async follow(stopped: AbortSignal): Promise<void> {
    while (!stopped.aborted) {
      try {
        const isReached = await this.#wiring.withServiceDatabase((database) => this.#watch(database, stopped))
        if (isReached === null) this.#complain('No service runs here: waiting for one.')
      } catch (error) {
        if (!isTransient(error)) throw error
        const { message, code } = error as NodeJS.ErrnoException
        this.#complain(`The database does not answer, trying again: ${message || (code ?? 'unknown error')}`)
      }
      await pause(RETRY_MS, stopped)
    }
  }

  async #watch({ calls }: Database, stopped: AbortSignal): Promise<true> {
    const { filter, print, notice } = this.#options
    while (!stopped.aborted) {
      const since = await calls.readSince(filter, this.#position)
      if (this.#trouble !== null) notice('The database answers again.')
      this.#trouble = null
      if (since.upto < this.#position)
        notice('This is another database than before: continuing with its newest call.')
      print(since.calls)
      this.#position = since.upto
      if (!since.hasMore) await pause(POLL_MS, stopped)
    }
    return true
  }

  /** Says each reason once. */
  #complain(reason: string): void {
    if (reason !== this.#trouble) this.#options.notice(reason)
    this.#trouble = reason
  }
}

/** Ends early if it is stopped. */
async function pause(delayMs: number, stopped: AbortSignal): Promise<void> {
  await sleep(delayMs, undefined, { signal: stopped }).catch(() => {})
}

/** Returns `2026-01-31 23:59:59.999`, in UTC. */
const printTime = (instant: string): string => instant.replace('T', ' ').replace('Z', '')

/** Returns `video × 5`: the units of one type can be pieces or seconds, as the model is priced. */
const printUnits = (type: string, count: string | null): string => `${type} × ${count ?? '?'}`

function printUsage({ unit_count, unit_type, ...call }: OperatorCall): string {
  if (unit_type !== null) return printUnits(unit_type, unit_count)
  const cached = call.cached_tokens > 0 ? ` (${call.cached_tokens} cached)` : ''
  return `in ${call.input_tokens}${cached} out ${call.output_tokens}`
}

function printTimes({ latency_ms, ttfb_ms }: OperatorCall): string {
  return ttfb_ms === null ? `${latency_ms} ms` : `${latency_ms} ms, first byte ${ttfb_ms}`
}

function printError({ error_code, error_message }: OperatorCall): string {
  const text = [error_code, error_message].filter((part) => part !== null).join(': ')
  return shorten(text, MESSAGE_MAX_CHARS)
}

/** Ends with a newline. Parts that a call does not have are left out. */
export function printCall(call: OperatorCall, isColoured: boolean): string {
  const paint = makePainter(isColoured)
  const statusColour = STATUS_COLOURS[call.status]
  const parts = [
    paint('dim', printTime(call.created_at)),
    paint(statusColour, call.status.padEnd(STATUS_CHARS)),
    printable(call.account_id),
    printable(call.key_prefix || call.key_id),
    printable(call.model || '-').padEnd(MODEL_CHARS),
    printable(printUsage(call)),
    `${call.cost} credits`,
    printTimes(call),
    call.call_count > 1 ? `${call.call_count} calls` : '',
    (call.attempts_count ?? 0) > 1
      ? paint(STATUS_COLOURS.interrupted, `${call.attempts_count} attempts`)
      : '',
    paint(statusColour, printable(printError(call))),
    paint('dim', printable(call.request_id)),
  ]
  return `${parts.filter((part) => part !== '').join(GAP)}\n`
}
