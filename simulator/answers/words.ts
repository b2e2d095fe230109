/** The words of the simulated provider, in several scripts, drawn from a seed. */

import { hash } from 'node:crypto'
import { isObject } from '../dialect.ts'

/**
 * One, two, three and four byte characters, combining marks and joined emoji: code that cuts a stream between
 * bytes, code points or graphemes meets each of them within a few dozen words.
 */
const WORDS = [
  ...['river', 'lantern', 'quiet', 'morning', 'copper', 'window', 'under', 'seven', 'garden', 'paper'],
  ...['harbour', 'slowly', 'the', 'of', 'and', 'between', 'letter', 'salt', 'winter', 'bridge', 'a', 'in'],
  ...['orchard', 'signal', 'distant', 'measure', 'stone', 'amber', 'north', 'weather', 'to', 'open', 'by'],
  ...['café', 'naïve', 'Århus', 'mañana', 'Straße', 'żółw', 'crème', 'brûlée', 'œuvre', 'Ελλάδα', 'мост'],
  ...['你好', '世界', '河流', '灯笼', '東京', 'さくら', '안녕', 'שלום', 'مرحبا', 'नमस्ते', 'สวัสดี', '𠮷野'],
  ...['🙂', '🚲', '🌧️', '👩‍🚀', '👨‍👩‍👧', '🇳🇴', '👍🏽'],
] as const

/** Every word with a space before it, so that drawing one allocates nothing. */
const SPACED_WORDS = WORDS.map((word) => ` ${word}`)

const ID_CHARACTERS = 24
const LITERAL_TOKEN_CODE_POINTS = 12
const LITERAL_TOKENS = new RegExp(`\\s*\\S{1,${LITERAL_TOKEN_CODE_POINTS}}|\\s+$`, 'gu')
const JSON_PIECE_CODE_POINTS = 6
const JSON_PIECES = new RegExp(`.{1,${JSON_PIECE_CODE_POINTS}}`, 'gsu')

/** Returns the next number in [0, 1); equal seeds give equal sequences. */
export type Random = () => number

/** Returns a 32-bit seed for a text. */
export function toSeed(text: string): number {
  return hash('sha1', text, 'buffer').readUInt32BE(0)
}

/** Returns a mulberry32 generator. */
export function makeSeededRandom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Returns 24 hexadecimal characters, as in the ids of public providers. */
export const makeId = (text: string): string => hash('sha1', text, 'hex').slice(0, ID_CHARACTERS)

/** Returns a random id of the same form. */
export function makeHexadecimalId(random: Random): string {
  const words = Array.from({ length: 3 }, () => Math.floor(random() * 2 ** 32))
  return words.map((word) => word.toString(16).padStart(8, '0')).join('')
}

export function drawWord(random: Random): string {
  return WORDS[Math.floor(random() * WORDS.length)] as string
}

/** Draws `count` tokens, one word each; joined without a separator they are the text. */
export function drawTokens(random: Random, count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const words = index === 0 ? WORDS : SPACED_WORDS
    return words[Math.floor(random() * words.length)] as string
  })
}

/** Draws `count` different words other than the token, with a space before them if the token has one. */
export function otherWords(random: Random, token: string, count: number): string[] {
  const first = Math.floor(random() * WORDS.length)
  const words = [...WORDS.slice(first), ...WORDS.slice(0, first)].filter((word) => word !== token.trim())
  return words.slice(0, count).map((word) => (token.startsWith(' ') ? ` ${word}` : word))
}

/** Splits a text into tokens of at most twelve visible characters. */
export function tokensOfLiteral(text: string): string[] {
  return text.match(LITERAL_TOKENS) ?? []
}

/** Splits JSON into tokens of at most six characters. */
export function tokensOfJson(json: string): string[] {
  return json.match(JSON_PIECES) ?? []
}

const MAX_DEPTH = 8
const MAX_SAMPLED_INTEGER = 100

/**
 * A value of the schema. It follows `const`, `enum`, `type`, `properties`, `items`, the first of `anyOf` and
 * `oneOf`, and `$ref` into the schema itself; beyond eight levels it is null.
 */
export function sampleJson(schema: unknown, random: Random): unknown {
  return sample(schema, { root: schema, random, depth: 0 })
}

type Sampling = { readonly root: unknown; readonly random: Random; readonly depth: number }

function sample(schema: unknown, sampling: Sampling): unknown {
  if (!isObject(schema) || sampling.depth > MAX_DEPTH) return null
  const deeper = { ...sampling, depth: sampling.depth + 1 }
  if ('const' in schema) return schema.const
  if (Array.isArray(schema.enum)) return schema.enum[0]
  if (typeof schema.$ref === 'string') return sample(resolve(sampling.root, schema.$ref), deeper)
  for (const choice of [schema.anyOf, schema.oneOf]) {
    if (Array.isArray(choice)) return sample(choice[0], deeper)
  }
  // Some interfaces write type names in capitals.
  switch (String(Array.isArray(schema.type) ? schema.type[0] : schema.type).toLowerCase()) {
    case 'string':
      return drawWord(sampling.random)
    case 'integer':
      return Math.floor(sampling.random() * MAX_SAMPLED_INTEGER)
    case 'number':
      return Math.floor(sampling.random() * MAX_SAMPLED_INTEGER) + 0.5
    case 'boolean':
      return sampling.random() < 0.5
    case 'array':
      return [sample(schema.items, deeper)]
    case 'null':
      return null
    default:
      return sampleObject(schema.properties, deeper)
  }
}

function sampleObject(properties: unknown, sampling: Sampling): Record<string, unknown> {
  if (!isObject(properties)) return {}
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, sample(schema, sampling)]),
  )
}

function resolve(root: unknown, reference: string): unknown {
  let found = root
  for (const step of reference.replace(/^#\/?/, '').split('/').filter(Boolean)) {
    found = isObject(found) ? found[step] : undefined
  }
  return found
}
