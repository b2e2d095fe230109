/** Notes each attempt of a call where it counts: in the call's record, its trace, and the health of its channel. */
import { performance } from 'node:perf_hooks'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { ChannelError } from '../../../src/core/routing/channel-activity.ts'
import type { GatewayRequest } from '../../../src/http/handler.ts'
import type { CallTrace } from '../../../src/telemetry/call-trace.ts'
import type { AttemptFailure } from '../../calls/upstream-error.ts'
import type { CallRecord, Ending } from './call-record.ts'
import type { Forwarding } from './deps.ts'
import type { RouteChoice } from './route-choice.ts'

export class AttemptNotes {
  readonly #health: Forwarding['health']
  readonly #record: CallRecord
  readonly #choice: RouteChoice
  readonly #trace: CallTrace | null
  readonly #path: string

  constructor(
    { health, startTrace }: Forwarding,
    { header, path }: GatewayRequest,
    record: CallRecord,
    choice: RouteChoice,
  ) {
    this.#health = health
    this.#record = record
    this.#choice = choice
    this.#trace = startTrace?.(header('traceparent')) ?? null
    this.#path = path
  }

  /** Returns the trace context of the attempt, for its upstream; null without traces. */
  begin(route: Route, dropped: readonly string[], now: number): string | null {
    this.#record.beginAttempt(route, dropped, now)
    this.#health.begin(route.channel.id)
    return this.#trace?.attempt(route.channel.id) ?? null
  }

  noteStatus(status: number): void {
    this.#record.recordStatus(status, performance.now())
    this.#trace?.answered(status)
  }

  /** Records the end of the attempt; `code` and `message` are null for one that did not fail. */
  end(code: string | null, message: string | null): void {
    this.#trace?.attemptEnded(code)
    this.#record.endAttempt(code, message, performance.now())
  }

  /** Records the end of a failed attempt. A channel that goes on with another key is not at fault. */
  fail(failure: AttemptFailure, isOtherKey: boolean): void {
    this.end(failure.code, failure.message)
    const isFault = isOtherKey ? false : this.#record.blames(failure)
    this.noteHealth(isFault, { ...failure, message: failure.detail ?? failure.message })
  }

  /** Records an attempt on a connection that had been closed: no fault of the channel. */
  replace({ code, message }: AttemptFailure): void {
    this.end(code, message)
    this.noteHealth(null)
  }

  /** Records the end of a stream that was not whole. */
  breakOff(ending: Ending): void {
    const error = { code: 'upstream_timeout', message: '', ...ending }
    this.end(error.code, error.message)
    const isTimeout = ending.kind === 'timeout'
    const isChannelFault = ending.kind !== 'refused'
    this.noteHealth(this.#record.blames({ isTimeout, isChannelFault }), error)
  }

  /** Ends the attempt that answered, or whose client left. The row itself describes an only attempt. */
  endOpen(): void {
    const { attempts, attemptsCount, ending, attempt } = this.#record
    if (attempts.length === attemptsCount) return
    if (ending.kind !== 'success') this.#health.noteAbandoned(attempt!.route.channel.id)
    if (attemptsCount > 1) this.end(null, null)
    else this.#trace?.attemptEnded(null)
  }

  /**
   * Notes what the attempt says of its channel.
   * @param isFault null: nothing
   * @param error absent: the attempt succeeded
   */
  noteHealth(isFault: boolean | null, error?: ChannelError): void {
    const { route } = this.#record.attempt!
    const { id } = route.channel
    if (isFault === null) this.#health.noteAbandoned(id)
    else if (isFault) {
      this.#record.faults.push(`${this.#record.attemptsCount}:${id}`)
      this.#health.noteFailure(id, error)
    } else if (error === undefined) {
      const ms = this.#record.measureMsToFirstByte()
      this.#health.noteSuccess(id, ms)
      this.#choice.noteTime(route, ms)
    } else this.#health.noteRefusal(id, error)
  }

  /** Ends the trace of the call. */
  endTrace(settlement: Settlement, status: number): void {
    this.#trace?.ended(settlement, this.#path, status)
  }
}
