/**
 * Identifiers: a prefix and a ULID (48 bits of time, 80 bits of chance, 26 characters of Crockford's base 32).
 * Source: decisions, "Names".
 */
import { randomFillSync } from 'node:crypto'
import type { TaskIdPrefix } from '../../schemas/task.ts'

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const TIME_CHARS = 10
const CHANCE_WORDS = 8
/** Randomness is drawn for this many identifiers at once: one call into the kernel for all of them. */
const POOL_IDS = 512

/** Every 10-bit value as two characters, so that 80 bits take eight look-ups. */
const PAIRS = Array.from({ length: 1024 }, (_, i) => ALPHABET.charAt(i >> 5) + ALPHABET.charAt(i & 31))

const pool = new Uint16Array(POOL_IDS * CHANCE_WORDS)
let poolAt = pool.length
let lastTime = -1
let lastTimeText = ''

function timeText(now: number): string {
  if (now === lastTime) return lastTimeText
  let rest = now
  let text = ''
  for (let i = 0; i < TIME_CHARS; i++) {
    text = ALPHABET.charAt(rest % 32) + text
    rest = Math.floor(rest / 32)
  }
  lastTime = now
  lastTimeText = text
  return text
}

/** A ULID for the instant `now` (epoch milliseconds). */
export function ulid(now: number = Date.now()): string {
  if (poolAt === pool.length) {
    randomFillSync(pool)
    poolAt = 0
  }
  let text = timeText(now)
  for (const end = poolAt + CHANCE_WORDS; poolAt < end; poolAt++) text += PAIRS[pool[poolAt]! & 1023]
  return text
}

export type IdPrefix = 'acc' | 'key' | 'kreq' | 'req' | 'kb' | 'page' | 'agt' | TaskIdPrefix

/** Such as `req_01J8Z3N4V9QKX2T5W7Y0ABCDEF`. */
export const newId = (prefix: IdPrefix, now?: number): string => `${prefix}_${ulid(now)}`
