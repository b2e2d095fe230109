/**
 * Metrics of how calls are metered: by reported usage, by estimate or beyond possible usage, and answers from another
 * model than was requested. Accounts are no labels: their number has no bound.
 */
import type { Settlement } from '../../schemas/call-log/columns.ts'
import type { Register } from './register.ts'

/** Pairs of channel and model beyond this many are counted under empty labels. */
const MAX_PAIRS = 5_000

/** One ended call that was forwarded to a channel. */
interface MeteredCall {
  readonly channel: string
  readonly model: string
  readonly source: Settlement['usage_source']
  readonly isSuspect: boolean
  readonly isOtherModel: boolean
  readonly inputTokens: number
  /** Of the input, those that the provider read from its cache. */
  readonly cachedTokens: number
}

export interface MeteringMeters {
  metered(call: MeteredCall): void
  /** Counts a settlement that was not booked: `refused` by PostgreSQL, or `malformed`. It is not charged. */
  unbooked(reason: 'refused' | 'malformed'): void
}

interface PairTotals {
  readonly channel: string
  readonly model: string
  upstream: number
  estimate: number
  suspect: number
  otherModel: number
  inputTokens: number
  cachedTokens: number
}

export function registerMetering(register: Register): MeteringMeters {
  /** By channel, then by model. */
  const channels = new Map<string, Map<string, PairTotals>>()
  const unbooked = { refused: 0, malformed: 0 }
  let pairs = 0

  const findTotals = (channel: string, model: string): PairTotals => {
    let models = channels.get(channel)
    const known = models?.get(model)
    if (known !== undefined) return known
    if (pairs >= MAX_PAIRS && (channel !== '' || model !== '')) return findTotals('', '')
    if (models === undefined) {
      models = new Map()
      channels.set(channel, models)
    }
    const counts = { upstream: 0, estimate: 0, suspect: 0, otherModel: 0, inputTokens: 0, cachedTokens: 0 }
    const totals = { channel, model, ...counts }
    models.set(model, totals)
    pairs++
    return totals
  }
  const rows = (samples: (totals: PairTotals) => (readonly [labels: object, value: number])[]) =>
    [...channels.values()]
      .flatMap((models) => [...models.values()])
      .flatMap((totals) =>
        samples(totals)
          .filter(([, value]) => value > 0)
          .map(([labels, value]) => ({
            labels: { channel: totals.channel, model: totals.model, ...labels },
            value,
          })),
      )

  register(
    'tollgate_metered_calls_total',
    'Calls that were charged by usage: as reported by the upstream, or by estimate.',
    'counter',
    () =>
      rows(({ upstream, estimate }) => [
        [{ source: 'upstream' }, upstream],
        [{ source: 'estimate' }, estimate],
      ]),
  )
  register(
    'tollgate_channel_input_tokens_total',
    'Prompt tokens of ended calls: read from the cache of the provider (hit), or not (miss).',
    'counter',
    () =>
      rows(({ inputTokens, cachedTokens }) => [
        [{ cache: 'hit' }, cachedTokens],
        [{ cache: 'miss' }, inputTokens - cachedTokens],
      ]),
  )
  register(
    'tollgate_usage_suspect_total',
    'Calls whose upstream reported usage that no call can have: they are charged at the bound.',
    'counter',
    () => rows(({ suspect }) => [[{}, suspect]]),
  )
  register(
    'tollgate_answered_by_other_model_total',
    'Calls whose upstream named another model in its answer than was requested.',
    'counter',
    () => rows(({ otherModel }) => [[{}, otherModel]]),
  )
  register(
    'tollgate_settlements_unbooked_total',
    'Settlements that were not booked and charged nobody: refused by PostgreSQL, or malformed.',
    'counter',
    () => Object.entries(unbooked).map(([reason, value]) => ({ labels: { reason }, value })),
  )
  return {
    metered({ channel, model, source, isSuspect, isOtherModel, inputTokens, cachedTokens }) {
      const totals = findTotals(channel, model)
      if (source !== 'none') totals[source]++
      if (isSuspect) totals.suspect++
      if (isOtherModel) totals.otherModel++
      totals.inputTokens += inputTokens
      totals.cachedTokens += cachedTokens
    },
    unbooked: (reason) => void unbooked[reason]++,
  }
}
