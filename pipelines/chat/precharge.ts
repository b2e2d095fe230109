/**
 * Reserves the estimate of a call before anything goes upstream: in this process, where the wallet, the spend cap and
 * the budgets that cover the key have to leave it free, then over all processes. Above any: 402. See docs/api-rules.md,
 * "Pre-charge".
 */

import { Observable } from 'rxjs'
import type { SpendRefusal } from '../../schemas/accounts/budget.ts'
import type { Admission } from '../../schemas/call-log/columns.ts'
import type { CallProtocol, Estimate } from '../../schemas/config/catalog.ts'
import type { Credits } from '../../schemas/money.ts'
import { printCredits } from '../../schemas/money.ts'
import {
  assumeToolCalls,
  type EstimatedCall,
  type EstimatePart,
  estimateAt,
  largestPart,
} from '../../src/core/pricing/estimate.ts'
import type { Catalog, Model } from '../../src/core/routing/catalog.ts'
import { readSession, toSessionId } from '../../src/core/routing/session.ts'
import type { Reservations } from '../../src/postgres/billing/repository.ts'
import {
  admitWithinLimits,
  endWithinLimits,
  insufficientBalance,
  isLimited,
  toSpendFailure,
} from '../calls/balance.ts'
import { assertPrice, readMaxPrice } from '../calls/max-price.ts'
import type { Stage } from '../calls/pipeline.ts'
import { addOthers, type CallWithOthers } from './other-models.ts'
import type { PricedCall, ServedModel } from './select-model.ts'
import type { CountedCall } from './stored/state.ts'

export interface AdmittedCall extends CountedCall {
  /** Reserved in the views of the wallet, of the key's spend cap and of budgets from here on; the end of the call releases it. */
  readonly estimate: Credits
  /** True when the estimate is reserved over all processes before the call goes upstream. */
  readonly isShared: boolean
  /** The formula of the estimate. */
  readonly estimateMode: Estimate
  /** Calls of one conversation go to one channel and one of its keys, for the sake of its cache: docs/api-rules.md, "Attempts". Null without one. */
  readonly pin: string | null
  /** The session, as the call log has it. */
  readonly sessionId: string | null
  /** The limits in force at its admission. */
  readonly time: {
    /** Of the whole call, streaming included. */
    readonly totalMs: number
    /** Of a stream without an event; null: the whole call's. */
    readonly idleMs: number | null
  }
}

interface Estimated {
  readonly request: PricedCall['request']
  readonly model: Model
  readonly fallbacks: readonly ServedModel[]
  readonly others: CallWithOthers['others']
  readonly call: EstimatedCall
}

/** Returns the estimate by the dearest model that may serve the call, and by those that its upstream may ask. */
export function estimateCall(
  { call, request, model, fallbacks, others }: Estimated,
  mode: Estimate,
): Credits {
  const options = { mode, now: request.submittedAt }
  const estimateBy = ({ price, entry }: Model) =>
    estimateAt({ price, pricing: entry.pricing! }, entry, call, options)
  let most = estimateBy(model)
  for (const { model: other } of fallbacks) {
    const estimate = estimateBy(other)
    if (estimate > most) most = estimate
  }
  return others.length === 0 ? most : addOthers(most, others, { ...options, call, model })
}

/** Names of the fields that a refusal speaks of. */
const FIELDS: Readonly<Record<CallProtocol, Readonly<Record<'conversation' | 'limit', string>>>> = {
  'chat-completions': { conversation: 'messages', limit: 'max_tokens' },
  messages: { conversation: 'messages', limit: 'max_tokens' },
  responses: { conversation: 'input', limit: 'max_output_tokens' },
  'generate-content': { conversation: 'contents', limit: 'maxOutputTokens' },
  // Without an output; where units are counted, no part is named.
  embeddings: { conversation: 'input', limit: '' },
  rerank: { conversation: 'documents', limit: '' },
  audio_transcriptions: { conversation: 'file', limit: '' },
}

function printPart(part: EstimatePart, { call, protocol, model }: PricedCall): string {
  const { conversation, limit } = FIELDS[protocol]
  switch (part) {
    case 'prompt':
      return `the bytes of ${conversation}`
    case 'kept':
      return `the ${call.keptTokens} tokens that the conversation holds already`
    case 'tools_and_schemas':
      return 'the bytes of tools and schemas'
    case 'links':
      return 'the files that are given by URL'
    case 'output':
      return call.outputLimit === null
        ? `an output without a limit: set ${limit}`
        : `an output of ${limit} ${call.outputLimit}`
    case 'thinking':
      return `the ${call.thinkingTokens} tokens of reasoning that it asks for`
    case 'tool_calls':
      return `the ${assumeToolCalls(model.entry, call)} calls of tools that the upstream may run`
    case 'summary':
      return 'the summary of the prompt that it asks for'
  }
}

/** Returns the part that most of the estimate is for, as a refusal names it: `, 12.8 of them for …`. */
export function explainEstimate(priced: PricedCall, mode: Estimate): string {
  const { part, amount } = largestPart(priced.call, (call) => estimateCall({ ...priced, call }, mode))
  return amount === 0n ? '' : `, ${printCredits(amount)} of them for ${printPart(part, priced)}`
}

/** Returns what a call may cost, for the refusal of a cap or a budget. An agent's key does not learn prices. */
export const explainCost = (priced: PricedCall, estimate: Credits, mode: Estimate): string =>
  priced.known.key.kind === 'agent'
    ? ''
    : ` (up to ${printCredits(estimate)} credits${explainEstimate(priced, mode)})`

/**
 * Refuses a call whose estimate is above its highest price, and leaves out other models whose
 * estimate is above it: those that may serve instead, and those that its upstream may ask.
 * @throws Failure `invalid_request`
 */
export const limitPrice =
  <C extends PricedCall>(catalog: () => Catalog): Stage<C, C> =>
  (call: C) => {
    const maxPrice = readMaxPrice(call)
    if (maxPrice === null) return call
    const { estimate: mode } = catalog().config
    const alone = { ...call, fallbacks: [], others: [] }
    assertPrice(call, maxPrice, estimateCall(alone, mode), () => explainEstimate(alone, mode))
    const fallbacks = call.fallbacks.filter(
      ({ model }) => estimateCall({ ...alone, model }, mode) <= maxPrice,
    )
    const others = estimateCall({ ...call, fallbacks }, mode) <= maxPrice ? call.others : []
    return { ...call, fallbacks, others }
  }

const MS_PER_SECOND = 1000

/** Reserves the estimate in this process. @throws Failure `quota_exceeded`, and nothing is reserved */
export const precharge =
  <C extends PricedCall>(catalog: () => Catalog): Stage<C, C & AdmittedCall> =>
  (call: C) => {
    const { known } = call
    const { wallet, estimate: mode, limits } = catalog().config
    const estimate = estimateCall(call, mode)
    const session = readSession(call.request.header)
    if (!known.view.admit(estimate, wallet.reserve_in_flight))
      throw insufficientBalance(known, estimate, explainEstimate(call, mode))
    const refuse = admitWithinLimits(known, estimate, call.request.submittedAt)
    if (refuse !== null) {
      known.view.end(estimate, 0n)
      throw refuse(explainCost(call, estimate, mode))
    }
    const isShared = wallet.reserve_in_flight && known.view.needsSharing(wallet.exact_below)
    const conversation = session || call.call.conversationKey
    const pin = conversation === undefined ? null : `${known.account.id} ${conversation}`
    const time = {
      totalMs: Math.min(limits.chat_seconds * MS_PER_SECOND, call.call.mostMs ?? Infinity),
      idleMs: limits.chat_idle_seconds && limits.chat_idle_seconds * MS_PER_SECOND,
    }
    return { ...call, estimate, estimateMode: mode, isShared, pin, sessionId: toSessionId(session), time }
  }

/** Changes reservations that were made. */
export interface ReservationChanges {
  readonly caps: Reservations
  /** Whether an error says that PostgreSQL does not answer. */
  readonly isAway: (error: unknown) => boolean
  /** Called when a reservation could not be changed though PostgreSQL answers. Must not throw. */
  readonly onReservationFault: (error: unknown) => void
}

/** Makes reservations, over all processes. */
export interface CallReservations extends ReservationChanges {
  /** Each reservation names its journal, so that `journal abandon` finds the calls of a lost machine. */
  readonly journalId: string
  /** Called for each call that the reservations of all processes refuse. Must not throw. */
  readonly onReservationRefused: (reason: 'wallet' | SpendRefusal['by']) => void
}

/** A call that has just ended gives back the rest of its estimate this soon: a client's next call is not refused for it. */
const RETRY_AFTER_MS = [50, 250]

/** Takes a failed write: it is corrected when the row is booked, or when the reservation expires. */
const reportFault =
  ({ isAway, onReservationFault }: ReservationChanges) =>
  (error: unknown): void => {
    if (!isAway(error)) onReservationFault(error)
  }

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Returns the call as its journal will have it. */
export const toAdmission = (admitted: AdmittedCall): Admission => ({
  request_id: admitted.request.requestId,
  account_id: admitted.known.account.id,
  key_id: admitted.known.key.id,
  model: admitted.model.id,
  protocol: admitted.protocol,
  stream: admitted.call.stream && admitted.call.isAssembled !== true,
  submitted_at: admitted.request.submittedAt,
  estimate: admitted.estimate.toString(),
  session_id: admitted.sessionId,
})

type ReservedIn = Parameters<Reservations['reserveWallet']>[0]['reservedIn']

async function reserveInWallet(
  { caps }: CallReservations,
  { known, request, estimate, time }: AdmittedCall,
  reservedIn: ReservedIn,
): Promise<boolean> {
  const wanted = {
    accountId: known.account.id,
    requestId: request.requestId,
    amount: estimate,
    callMs: time.totalMs,
    reservedIn,
  }
  for (const ms of RETRY_AFTER_MS) {
    if (await caps.reserveWallet(wanted)) return true
    await wait(ms)
  }
  return caps.reserveWallet(wanted)
}

/** @throws Failure `quota_exceeded`; any other error as PostgreSQL has it */
async function reserveOverProcesses(deps: CallReservations, call: AdmittedCall): Promise<void> {
  const { known, request, estimate, isShared } = call
  const reservedIn = { journalId: deps.journalId, admission: toAdmission(call) }
  if (isShared && !(await reserveInWallet(deps, call, reservedIn))) {
    deps.onReservationRefused('wallet')
    throw insufficientBalance(known, estimate, explainEstimate(call, call.estimateMode))
  }
  if (!isLimited(known)) return
  const { requestId, submittedAt } = request
  const refusal = await deps.caps.reserveSpend({
    keyId: known.key.id,
    requestId,
    amount: estimate,
    callMs: call.time.totalMs,
    submittedAt,
    reservedIn,
  })
  if (refusal === null) return
  deps.onReservationRefused(refusal.by)
  throw toSpendFailure(refusal, explainCost(call, estimate, call.estimateMode))
}

/** Reserves, then emits the call. Until then a refusal, or a client that leaves, gives back what was admitted here. */
const reserveAndEmit = <C extends AdmittedCall>(deps: CallReservations, admitted: C): Observable<C> =>
  new Observable((subscriber) => {
    const { request, known, estimate } = admitted
    let isHandedOver = false
    subscriber.add(() => {
      if (isHandedOver) return
      known.view.end(estimate, 0n)
      endWithinLimits(known, { estimate, cost: 0n }, request.submittedAt)
    })
    const giveBack = () => void deps.caps.release(request.requestId).catch(reportFault(deps))
    void reserveOverProcesses(deps, admitted)
      .then(
        () => null,
        (error: unknown) => (deps.isAway(error) ? null : error),
      )
      .then((refusal) => {
        if (subscriber.closed) giveBack()
        else if (refusal === null) {
          isHandedOver = true
          subscriber.next(admitted)
          subscriber.complete()
        } else {
          giveBack()
          subscriber.error(refusal)
        }
      })
  })

/**
 * Reserves what a call may cost in PostgreSQL, over all processes, before anything goes upstream: in the wallet where
 * its balance is low, and in the spend cap and the budgets that cover the key. It stays reserved until the call's row is booked.
 * While PostgreSQL is down, this process's own view of the balance decides. Any other error of it fails the call: a
 * statement that is wrong must not switch reservations off.
 * Reserves the estimate over all processes, where the balance is low or a spend cap or budget covers the key.
 * @throws Failure `quota_exceeded`; any other error that is no absence of PostgreSQL
 */
export const reserve =
  <C extends AdmittedCall>(deps: CallReservations): Stage<C, C> =>
  (call: C) =>
    !isLimited(call.known) && !call.isShared ? call : reserveAndEmit(deps, call)

/** Ends the reservations of an admitted call, in this process and over all of them. */
export function endReservation(
  deps: ReservationChanges,
  { request, known, estimate, isShared }: AdmittedCall,
  cost: Credits,
): void {
  known.view.end(estimate, cost)
  if (isLimited(known)) endWithinLimits(known, { estimate, cost }, request.submittedAt)
  else if (!isShared) return
  // Until the row is booked only its cost stays reserved: the rest is free for the next call.
  deps.caps.shrink(request.requestId, cost).catch(reportFault(deps))
}
