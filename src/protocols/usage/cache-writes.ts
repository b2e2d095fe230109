/** The lifetimes of what an upstream's cache keeps. Five minutes and an hour have prices. See docs/pricing.md, "Usage". */
import type { Buffer } from 'node:buffer'
import type { LooseObject } from '../loose.ts'

const FIVE_MINUTES = 'ephemeral_5m_input_tokens'
/** The counts of `cache_creation`, one for each lifetime. */
const IS_COUNT = /^ephemeral_.+_input_tokens$/

interface CacheWrites {
  /** Null without a count. */
  readonly short: number | null
  /** What is kept for an hour, or for a time without a price: an hour has the highest. Null without a count. */
  readonly long: number | null
}

/** Returns the tokens of a `cache_creation` object. `count` returns null for what is no count. */
export function readCacheWrites(written: LooseObject, count: (value: unknown) => number | null): CacheWrites {
  let long: number | null = null
  for (const name in written)
    if (name !== FIVE_MINUTES && IS_COUNT.test(name)) {
      const tokens = count(written[name])
      if (tokens !== null) long = (long ?? 0) + tokens
    }
  return { short: count(written[FIVE_MINUTES]), long }
}

const LIFETIME = '"ttl"'
const MARK = /"cache_control"\s*:\s*\{[^{}]*"ttl"\s*:\s*"([^"\\]*)"/
/** A mark is short: it begins and ends this near to its lifetime. */
const MARK_BYTES = 256
/** Vendors take a few marks. More places are not searched: a body may be long. */
const MOST_PLACES = 64
const PRICED: ReadonlySet<string> = new Set(['5m', '1h'])
const MAX_LIFETIME_CHARS = 16

/** Returns the lifetimes without a price that a request asks for, for `X-Protocol-Warning`, such as `cache_control.ttl 24h`. */
export function listUnpricedLifetimes(request: Buffer): readonly string[] {
  const unpriced = new Set<string>()
  let at = request.indexOf(LIFETIME)
  for (let places = 0; at >= 0 && places < MOST_PLACES; places++) {
    const around = request.toString('latin1', Math.max(0, at - MARK_BYTES), at + MARK_BYTES)
    const lifetime = MARK.exec(around)?.[1]
    if (lifetime !== undefined && !PRICED.has(lifetime))
      unpriced.add(`cache_control.ttl ${lifetime.slice(0, MAX_LIFETIME_CHARS)}`)
    at = request.indexOf(LIFETIME, at + LIFETIME.length)
  }
  return [...unpriced]
}
