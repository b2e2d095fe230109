/**
 * Identifiers: a prefix and a ULID (48 bits of time, 80 bits of chance, 26 characters of Crockford's base 32).
 * See docs/api-rules.md, "Names and forms".
 */
import { randomFillSync } from 'node:crypto'
import type { TaskIdPrefix } from '../../../schemas/tasks/task.ts'

type IdPrefix =
  | 'acc'
  | 'usr'
  | 'ses'
  | 'mtk'
  | 'pky'
  | 'inv'
  | 'key'
  | 'bud'
  | 'kreq'
  | 'req'
  | 'kb'
  | 'page'
  | 'agt'
  | 'job'
  | 'whe'
  | 'pay'
  | 'note'
  | TaskIdPrefix

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const CODES = Array.from(ALPHABET, (character) => character.charCodeAt(0))
const TIME_CHARS = 10
const CHANCE_CHARS = 16
const BITS = 5
const MASK = 31
/** Randomness is drawn for this many identifiers at once: one call into the kernel for all of them. */
const POOL_IDS = 512
/** Two characters take one. */
const CHANCE_WORDS = CHANCE_CHARS / 2

const pool = new Uint16Array(POOL_IDS * CHANCE_WORDS)
let poolAt = pool.length

/** Character codes of the last identifier with a prefix; the next one differs in its chance, and mostly in nothing else. */
interface Last {
  readonly codes: number[]
  readonly timeAt: number
  time: number
}

const lasts = new Map<IdPrefix | '', Last>()

function lastWith(prefix: IdPrefix | ''): Last {
  let last = lasts.get(prefix)
  if (last === undefined) {
    const front = Array.from(prefix === '' ? '' : `${prefix}_`, (character) => character.charCodeAt(0))
    const codes = [...front, ...new Array<number>(TIME_CHARS + CHANCE_CHARS).fill(CODES[0]!)]
    last = { codes, timeAt: front.length, time: -1 }
    lasts.set(prefix, last)
  }
  return last
}

function setTime(last: Last, now: number): void {
  let rest = now
  for (let at = last.timeAt + TIME_CHARS - 1; at >= last.timeAt; at--) {
    last.codes[at] = CODES[rest % (MASK + 1)]!
    rest = Math.floor(rest / (MASK + 1))
  }
  last.time = now
}

/** Returns an id as one flat string: V8 copies a concatenated one again at its first use. */
function idWith(prefix: IdPrefix | '', now: number): string {
  const last = lastWith(prefix)
  if (last.time !== now) setTime(last, now)
  if (poolAt === pool.length) {
    randomFillSync(pool)
    poolAt = 0
  }
  const { codes } = last
  for (let at = last.timeAt + TIME_CHARS; at < codes.length; at += 2) {
    const chance = pool[poolAt++]!
    codes[at] = CODES[(chance >> BITS) & MASK]!
    codes[at + 1] = CODES[chance & MASK]!
  }
  return String.fromCharCode(...codes)
}

/** Returns a ULID for the instant `now` (epoch milliseconds). */
export const ulid = (now: number = Date.now()): string => idWith('', now)

/** Returns an id such as `req_01J8Z3N4V9QKX2T5W7Y0ABCDEF`. */
export const newId = (prefix: IdPrefix, now: number = Date.now()): string => idWith(prefix, now)
