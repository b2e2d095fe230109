/**
 * Writes the rows of refused calls. Refusals cost their caller nothing, so their rows are bounded: beyond a number of
 * them in a minute, refusals of one key, model and reason share a row with their count.
 */
import type { Settlement } from '../schemas/events/event.ts'
import { stillHolds } from '../src/core/still-holds.ts'

/** Of one key. */
export const OWN_ROWS_PER_MINUTE = 600
const WINDOW_MS = 60_000
/** Shared rows are written after so long, then after twice as long each time until the minute is over. */
const FIRST_WAIT_MS = 1_000

export interface RefusalLogDeps {
  /** Writes a row. Must not throw. */
  readonly write: (settlement: Settlement) => void
  /** Returns false for a name that a client made up: those share their rows. */
  readonly isModel: (name: string) => boolean
  /** Calls `work` after `ms`, unless the process ends before. */
  readonly later: (work: () => void, ms: number) => void
  /** Returns epoch milliseconds. */
  readonly now: () => number
}

export class RefusalLog {
  readonly #deps: RefusalLogDeps
  #windowEndsAt = 0
  /** Refusals in the window by key. */
  readonly #counts = new Map<string, number>()
  /** Rows to be written, by key, reason and model. */
  readonly #shared = new Map<string, Settlement & { call_count: number }>()
  #waitMs = FIRST_WAIT_MS

  constructor(deps: RefusalLogDeps) {
    this.#deps = deps
  }

  /** Writes the refusal's row, or counts it in the row that it shares. */
  record(refused: Settlement): void {
    const now = this.#deps.now()
    if (!stillHolds(this.#windowEndsAt, now, WINDOW_MS)) this.#begin(now)
    const count = (this.#counts.get(refused.key_id) ?? 0) + 1
    this.#counts.set(refused.key_id, count)
    if (count <= OWN_ROWS_PER_MINUTE) this.#deps.write(refused)
    else this.#share(refused)
  }

  /** Writes the shared rows. Runs at an interval; must also be called before the journal is closed. */
  flush(): void {
    const created_at = this.#deps.now()
    for (const row of this.#shared.values()) this.#deps.write({ ...row, created_at })
    this.#shared.clear()
  }

  #begin(now: number): void {
    this.#windowEndsAt = now + WINDOW_MS
    this.#counts.clear()
    this.#waitMs = FIRST_WAIT_MS
  }

  #share(refused: Settlement): void {
    const model = this.#deps.isModel(refused.model) ? refused.model : ''
    const name = `${refused.key_id} ${refused.error_code} ${model}`
    const row = this.#shared.get(name)
    if (row !== undefined) {
      row.call_count++
      return
    }
    if (this.#shared.size === 0) {
      this.#deps.later(() => this.flush(), this.#waitMs)
      this.#waitMs = Math.min(2 * this.#waitMs, WINDOW_MS)
    }
    this.#shared.set(name, { ...refused, model, call_count: 1 })
  }
}
