/**
 * The keys of channels that have several: used in turn, a conversation's always the same; only the one that its upstream refuses rests, and the channel goes
 * on with the others. Gateway processes do not share pools.
 */
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import type { ChannelReport, KeyReport } from '../../../schemas/config/channel-report.ts'
import { stillHolds } from '../still-holds.ts'
import { pickByPin } from './order.ts'

/** For a key that is refused as such. */
export const REFUSED_KEY_REST_MS = 10 * 60_000
/** For a key that is over its limit, where the upstream does not say for how long. */
export const LIMITED_KEY_REST_MS = 30_000
/** The longest rest, whatever the upstream says. */
export const MAX_KEY_REST_MS = 60 * 60_000

/** One key of a channel as every process sees it. */
interface SeenKey extends KeyReport {
  readonly tail: string
}

/** Joins what processes report of a channel's keys: the longest rest, and all refusals. */
export const keysSeen = (
  tails: readonly string[],
  reports: readonly Pick<ChannelReport, 'keys'>[],
): SeenKey[] =>
  tails.map((tail, index) => {
    const position = index + 1
    const seen = reports.flatMap(({ keys }) => keys.filter((key) => key.position === position))
    const rests = seen.flatMap(({ resting_until }) => resting_until ?? [])
    return {
      position,
      tail,
      resting_until: rests.sort().at(-1) ?? null,
      refusals: seen.reduce((sum, { refusals }) => sum + refusals, 0),
    }
  })

interface Pool {
  readonly keys: readonly string[]
  /** The channel once with each key. */
  readonly channels: readonly ChannelEntry[]
  readonly restsUntil: number[]
  readonly refusals: number[]
  /** Index of the key whose turn it is. */
  turn: number
}

export class KeyPools {
  readonly #pools = new Map<string, Pool>()
  readonly #now: () => number

  /** @param now returns milliseconds */
  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /**
   * Returns the channel with the key for its next call: in turn, or by `pin` the same one as long as it does not rest.
   * Where every key rests, the one that rests least.
   */
  pick(channel: ChannelEntry, pin: string | null = null): ChannelEntry {
    if (channel.api_keys.length === 0) return channel
    const pool = this.#findPool(channel)
    const { channels, restsUntil, turn } = pool
    const now = this.#now()
    if (pin !== null) {
      const ready = channels.filter((_, index) => !stillHolds(restsUntil[index]!, now, MAX_KEY_REST_MS))
      if (ready.length > 0) return pickByPin(ready, pin, ({ api_key: key }) => key)
    }
    for (let step = 0; step < channels.length; step++) {
      const index = (turn + step) % channels.length
      if (stillHolds(restsUntil[index]!, now, MAX_KEY_REST_MS)) continue
      pool.turn = index + 1
      return channels[index]!
    }
    return channels[restsUntil.indexOf(Math.min(...restsUntil))]!
  }

  /** Lets the key with which `channel` was picked rest. Returns whether another key of the channel is ready. */
  rest(channel: ChannelEntry, ms: number): boolean {
    const pool = this.#findPool(channel)
    const index = pool.keys.indexOf(channel.api_key)
    const now = this.#now()
    if (index >= 0) {
      pool.restsUntil[index] = now + Math.min(ms, MAX_KEY_REST_MS)
      pool.refusals[index]!++
    }
    return !pool.restsUntil.every((until) => stillHolds(until, now, MAX_KEY_REST_MS))
  }

  /** Returns the state of each key of a channel; nothing before its first call. */
  report(channelId: string): KeyReport[] {
    const pool = this.#pools.get(channelId)
    const now = this.#now()
    return (pool?.restsUntil ?? []).map((until, index) => ({
      position: index + 1,
      resting_until: stillHolds(until, now, MAX_KEY_REST_MS) ? new Date(until).toISOString() : null,
      refusals: pool!.refusals[index]!,
    }))
  }

  /** Returns the channel's pool. After a change of the configuration, known keys keep their state. */
  #findPool(channel: ChannelEntry): Pool {
    const { id, api_keys: keys } = channel
    const known = this.#pools.get(id)
    if (known?.keys === keys) return known
    const findFormer = (key: string) => known?.keys.indexOf(key) ?? -1
    const pool: Pool = {
      keys,
      channels: keys.map((key) => ({ ...channel, api_key: key })),
      restsUntil: keys.map((key) => known?.restsUntil[findFormer(key)] ?? 0),
      refusals: keys.map((key) => known?.refusals[findFormer(key)] ?? 0),
      turn: known?.turn ?? 0,
    }
    this.#pools.set(id, pool)
    return pool
  }
}
