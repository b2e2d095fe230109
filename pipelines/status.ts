/** `GET /v1/status`: which models work. Strangers ask too, so answers come from memory. See docs/api-rules.md, "Status". */
import { Buffer } from 'node:buffer'
import { defer, map } from 'rxjs'
import { MODEL_STATUSES, type ModelStatus, type ServiceStatus, STATUS_DAYS } from '../schemas/status.ts'
import type { ModelSummaries } from '../src/clickhouse/call-log.ts'
import type { ModelDay, ModelOutcomes, Outcomes } from '../src/clickhouse/summaries/model-status.ts'
import { DAY_MS } from '../src/core/call-log/window.ts'
import { toApiShape } from '../src/core/json/snake-case.ts'
import type { Catalog } from '../src/core/routing/catalog.ts'
import type { Handler, HeaderList } from '../src/http/handler.ts'
import type { StatusNotes } from '../src/postgres/operation/repository.ts'
import type { StatusNote } from '../src/postgres/operation/status-notes.ts'

export interface StatusDeps {
  readonly callLog: ModelSummaries
  readonly statusNotes: { readonly list: StatusNotes['list'] }
  readonly catalog: () => Catalog
  /** Epoch milliseconds. */
  readonly now?: () => number
}

/** Each process reads the engines this often at most, however many ask. */
const FRESH_MS = 10_000
/** An answer of this age is still given while the next one is made. */
const STALE_MS = 60_000
/** The days before today change only while late calls are booked. */
const PAST_FRESH_MS = 60 * 60 * 1000
const WINDOW_MS = 15 * 60 * 1000
const MAX_NOTES = 50
const FAILING_BELOW = 0.5
const DEGRADED_BELOW = 0.95
/** Tenths of a percent. */
const SHARES = 1000
const HEADERS: HeaderList = [
  ['content-type', 'application/json; charset=utf-8'],
  ['cache-control', `public, max-age=${FRESH_MS / 1000}`],
]

export const statusNoteShape = toApiShape<StatusNote>

interface Measured {
  readonly at: number
  readonly outcomes: readonly ModelOutcomes[]
  readonly days: readonly ModelDay[]
}

/** Strangers learn no numbers: a share, rounded down so that 100 means that none failed. */
function toSuccessRate(outcomes: Outcomes | undefined): number | null {
  const { succeeded, failed } = outcomes ?? { succeeded: 0, failed: 0 }
  const calls = succeeded + failed
  return calls === 0 ? null : Math.floor((succeeded / calls) * SHARES) / (SHARES / 100)
}

function chooseStatus(isServed: boolean, newest: Outcomes | undefined): ModelStatus {
  if (!isServed) return 'failing'
  if (newest === undefined) return 'no_recent_calls'
  const share = newest.succeeded / (newest.succeeded + newest.failed)
  return share < FAILING_BELOW ? 'failing' : share < DEGRADED_BELOW ? 'degraded' : 'operational'
}

const printDay = (epochMs: number): string => new Date(epochMs).toISOString().slice(0, 10)

function printModels(catalog: Catalog, { at, outcomes, days }: Measured): ServiceStatus['models'] {
  const byModel = new Map(outcomes.map((one) => [one.model, one]))
  const byDay = new Map(days.map((one) => [`${one.model} ${one.day}`, one]))
  const dates = Array.from({ length: STATUS_DAYS }, (_, day) =>
    printDay(at - (STATUS_DAYS - 1 - day) * DAY_MS),
  )
  return catalog.models
    .filter(({ entry }) => entry.callable)
    .map((model) => {
      const found = byModel.get(model.id)
      return {
        id: model.id,
        display_name: model.entry.display_name ?? model.id,
        status: chooseStatus(catalog.isServed(model), found?.newest),
        success_rate: toSuccessRate(found),
        days: dates.map((date) => ({ date, success_rate: toSuccessRate(byDay.get(`${model.id} ${date}`)) })),
      }
    })
}

/** Leaves out who posted it. */
const printNote = (note: StatusNote): ServiceStatus['notes'][number] => {
  const { created_by: _, created_at: __, ...shown } = statusNoteShape(note)
  return shown
}

/** Keeps the last answer, and what it was made of. */
class StatusMemory {
  readonly #deps: StatusDeps
  readonly #now: () => number
  #measured: Measured | null = null
  #past: { readonly at: number; readonly day: number; readonly days: readonly ModelDay[] } | null = null
  #notes: readonly StatusNote[] = []
  #body: Buffer | null = null
  /** Why nothing was measured yet. */
  #error: unknown = null
  #triedAt = Number.NEGATIVE_INFINITY
  #trying: Promise<void> | null = null

  constructor(deps: StatusDeps) {
    this.#deps = deps
    this.#now = deps.now ?? Date.now
  }

  /** Returns the answer as JSON text. @throws Failure `service_unavailable` before the first one */
  async read(): Promise<Buffer> {
    const age = this.#now() - this.#triedAt
    if (age >= FRESH_MS || age < 0) this.#trying ??= this.#refresh().finally(() => (this.#trying = null))
    if (this.#body === null || age >= STALE_MS) await this.#trying
    if (this.#body === null) throw this.#error
    return this.#body
  }

  async #refresh(): Promise<void> {
    const now = this.#now()
    // Each part that cannot be read stays as it was.
    const [measured, notes] = await Promise.allSettled([
      this.#measure(now),
      this.#deps.statusNotes.list({
        isOpen: false,
        since: new Date(now - STATUS_DAYS * DAY_MS),
        before: null,
        limit: MAX_NOTES,
      }),
    ])
    if (measured.status === 'fulfilled') this.#measured = measured.value
    else this.#error = measured.reason
    if (notes.status === 'fulfilled') this.#notes = notes.value
    if (this.#measured !== null) this.#body = this.#print(this.#measured)
    this.#triedAt = now
  }

  async #measure(now: number): Promise<Measured> {
    const { callLog } = this.#deps
    const today = Math.floor(now / DAY_MS) * DAY_MS
    const [outcomes, past, ofToday] = await Promise.all([
      callLog.readModelOutcomes({ from: now - WINDOW_MS, to: now + 1 }),
      this.#readPast(now, today),
      callLog.sumModelDays({ from: today, to: today + DAY_MS }),
    ])
    return { at: now, outcomes, days: [...past, ...ofToday] }
  }

  async #readPast(now: number, today: number): Promise<readonly ModelDay[]> {
    const known = this.#past
    if (known !== null && known.day === today && now - known.at < PAST_FRESH_MS) return known.days
    const from = today - (STATUS_DAYS - 1) * DAY_MS
    const days = await this.#deps.callLog.sumModelDays({ from, to: today })
    this.#past = { at: now, day: today, days }
    return days
  }

  #print(measured: Measured): Buffer {
    const models = printModels(this.#deps.catalog(), measured)
    const status =
      MODEL_STATUSES.find((one) => models.some((model) => model.status === one)) ?? 'no_recent_calls'
    const answer: ServiceStatus = {
      object: 'status',
      status,
      measured_at: new Date(measured.at).toISOString(),
      models,
      notes: this.#notes.map(printNote),
    }
    return Buffer.from(JSON.stringify(answer))
  }
}

/** `GET /v1/status`, open to everyone. */
export function showStatus(deps: StatusDeps): Handler {
  const memory = new StatusMemory(deps)
  return () =>
    defer(() => memory.read()).pipe(
      map((body) => ({ type: 'full', status: 200, headers: HEADERS, body }) as const),
    )
}
