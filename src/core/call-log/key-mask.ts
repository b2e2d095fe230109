/**
 * Masks the keys of a channel in the bytes of its answer, which pass otherwise as they are. Bytes that may be the
 * beginning of a key wait for those that follow: a key may be split between two reads.
 */
import { Buffer } from 'node:buffer'
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import { listSentKeys, listTokens } from '../routing/channel-access.ts'

const MASK = Buffer.from('[secret]')
const NONE = Buffer.alloc(0)
const BEFORE = -1
/** The place of a key that is not there. */
const NEVER = Number.MAX_SAFE_INTEGER
const MIN_KEY_CHARS = 8
/** A word in place of a key, at an upstream that asks for none: an answer may hold it. */
const PLAIN_WORD = /^[A-Za-z]{1,15}$/

const isSecret = (key: string): boolean => key.length >= MIN_KEY_CHARS && !PLAIN_WORD.test(key)

/** The longest first: one may begin with another. */
interface MaskedKeys {
  readonly keys: readonly Buffer[]
  /** Whether a byte is in a key: most reads end with one that is in none. */
  readonly isInKey: Uint8Array
}

export function makeMaskedKeys(texts: readonly string[]): MaskedKeys {
  const keys = [...new Set(texts)].sort((a, b) => b.length - a.length).map((key) => Buffer.from(key))
  const isInKey = new Uint8Array(256)
  for (const key of keys) for (const byte of key) isInKey[byte] = 1
  return { keys, isInKey }
}

/** The mask of one answer. */
export class KeyMask {
  readonly #keys: readonly Buffer[]
  readonly #isInKey: Uint8Array
  #held: Buffer | null = null
  /** The place of each key in the bytes that are read, from the current place on. */
  readonly #next: number[]

  constructor({ keys, isInKey }: MaskedKeys) {
    this.#keys = keys
    this.#isInKey = isInKey
    this.#next = keys.map(() => BEFORE)
  }

  /** Takes a piece; returns the bytes that may go out, which may be a view of it, and null for none. */
  push(piece: Buffer): Buffer | null {
    const bytes = this.#held === null ? piece : Buffer.concat([this.#held, piece])
    this.#held = null
    return this.#maskPiece(bytes, true)
  }

  /** Returns the bytes that have waited, without keys; null for none. */
  end(): Buffer | null {
    const held = this.#held
    this.#held = null
    return held && this.maskWhole(held)
  }

  /** Returns the bytes without keys: the same where they hold none. */
  maskWhole(bytes: Buffer): Buffer {
    return this.#maskPiece(bytes, false) ?? NONE
  }

  #maskPiece(bytes: Buffer, mayGoOn: boolean): Buffer | null {
    let out: Buffer[] | null = null
    let from = 0
    this.#next.fill(BEFORE)
    for (let found = this.#find(bytes, from); found >= 0; found = this.#find(bytes, from)) {
      const at = this.#next[found]!
      // It may be the beginning of a longer key.
      if (mayGoOn && this.#findWaiting(bytes, at) === at) break
      out ??= []
      out.push(bytes.subarray(from, at), MASK)
      from = at + this.#keys[found]!.length
    }
    const end = mayGoOn ? this.#findWaiting(bytes, from) : bytes.length
    if (end < bytes.length) this.#held = Buffer.from(bytes.subarray(end))
    if (out === null) return end === bytes.length ? bytes : end === 0 ? null : bytes.subarray(0, end)
    return Buffer.concat([...out, bytes.subarray(from, end)])
  }

  /** Finds the first key from `from` on, the longest of those that begin there. Returns its index; -1 for none. */
  #find(bytes: Buffer, from: number): number {
    let first = -1
    for (let index = 0; index < this.#keys.length; index++) {
      // Each is sought from where it was found last: what has many keys is read once for each of them.
      if (this.#next[index]! < from) this.#next[index] = findNext(bytes, this.#keys[index]!, from)
      if (this.#next[index]! < (first < 0 ? NEVER : this.#next[first]!)) first = index
    }
    return first
  }

  /** Returns where the bytes end in the beginning of a key that is not whole, from `from` on; their end where they do not. */
  #findWaiting(bytes: Buffer, from: number): number {
    const { length } = bytes
    if (length === from || this.#isInKey[bytes[length - 1]!] === 0) return length
    const longest = this.#keys[0]!.length - 1
    for (let at = Math.max(from, length - longest); at < length; at++)
      if (this.#keys.some((key) => isBeginning(bytes, at, key))) return at
    return length
  }
}

function findNext(bytes: Buffer, key: Buffer, from: number): number {
  const at = bytes.indexOf(key, from)
  return at < 0 ? NEVER : at
}

/** Returns whether the bytes from `at` on are the beginning of `key`, which is longer. */
const isBeginning = (bytes: Buffer, at: number, key: Buffer): boolean =>
  bytes.length - at < key.length && key.compare(bytes, at, bytes.length, 0, bytes.length - at) === 0

interface Known {
  readonly tokens: readonly string[] | undefined
  /** Null: there is nothing to mask. */
  readonly keys: MaskedKeys | null
}
const known = new WeakMap<ChannelEntry, Known>()

function findMaskedKeys(channel: ChannelEntry): MaskedKeys | null {
  const tokens = listTokens(channel)
  const last = known.get(channel)
  if (last !== undefined && last.tokens === tokens) return last.keys
  const texts = listSentKeys(channel).filter(isSecret)
  const keys = texts.length === 0 ? null : makeMaskedKeys(texts)
  known.set(channel, { tokens, keys })
  return keys
}

/** Returns the mask for an answer of the channel; null for a channel without a key. */
export function makeKeyMask(channel: ChannelEntry): KeyMask | null {
  const keys = findMaskedKeys(channel)
  return keys === null ? null : new KeyMask(keys)
}

/** Returns a whole answer of the channel without its keys: the same bytes where it holds none. */
export const withoutKeys = (channel: ChannelEntry, body: Buffer): Buffer =>
  makeKeyMask(channel)?.maskWhole(body) ?? body
