/** `tollgate logs tail`: calls as they are booked, each once, whatever happens to the database meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Option } from 'commander'
import { CALL_STATUSES, type CallStatus } from '../../../schemas/call-log/row.ts'
import { type CallFilter, LOOK_BACK_ROWS, type OperatorCall } from '../../postgres/call-log/calls.ts'
import type { Database } from '../../postgres/database.ts'
import { isTransient } from '../../postgres/errors.ts'
import type { Command, Context } from '../context.ts'
import { readCount, readNames } from '../operations/fields.ts'
import { printCall } from './line.ts'

/** Delay after which a new row is shown at the latest. */
const POLL_MS = 500
const RETRY_MS = 1_000
const DEFAULT_LINES = 10

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
        // A database that the command started would keep a service from starting.
        await wiring.close()
        if (flags.follow) await tail.follow(stopped)
      })
    })
}

interface TailOptions {
  readonly filter: CallFilter
  readonly print: (calls: readonly OperatorCall[]) => void
  /** Prints a note for the person at the terminal; it is no part of the answer. */
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
    // A misspelled id would wait for its first call for ever.
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

/** Ends early when it is stopped. */
async function pause(delayMs: number, stopped: AbortSignal): Promise<void> {
  await sleep(delayMs, undefined, { signal: stopped }).catch(() => {})
}
