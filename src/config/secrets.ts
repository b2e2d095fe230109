/** Secrets in the text of a configuration: hidden before it is shown, and put back before it is stored. */

import { isMap, isScalar, isSeq, type Node, parseDocument } from 'yaml'
import { AUTH_SECRETS } from '../../schemas/config/channel-auth.ts'

/** Stands for a secret that stays as it is. In a list of secrets the place of the secret in the file follows it. */
export const MASK = '********'

const SECRET_FIELDS = new Set(['api_key', 'token', ...Object.values(AUTH_SECRETS).flat()])
/** Every value below one of them is a secret. */
const SECRET_SECTIONS = ['headers', 'api_keys']
const VARIABLE = /^\$\{[A-Za-z_][A-Za-z0-9_]*\}$/

interface Found {
  /** The path of the field. An entry of a list has its id in it, so that it may be moved; one without an id has a `*`. */
  readonly path: string
  readonly value: string
  /** The value as it is written, with its quotes. */
  readonly written: string
  /** The text that hides the value. It names one of several secrets that have the same path. */
  readonly mask: string
  /** Offsets of the value in the text. */
  readonly from: number
  readonly to: number
}

/** Returns whether a field holds a secret. @param path names of the field and of those around it */
const isSecretField = (path: readonly string[]): boolean =>
  SECRET_FIELDS.has(path.at(-1) ?? '') || path.slice(0, -1).some((name) => SECRET_SECTIONS.includes(name))

/** The state of a walk: the path, and the places in lists whose entries have no id. */
interface Position {
  readonly path: readonly string[]
  readonly places: readonly number[]
}

function findEntry({ path, places }: Position, node: unknown, index: number): Position {
  const id = isMap(node) ? node.get('id') : undefined
  return typeof id === 'string'
    ? { path: [...path, id], places }
    : { path: [...path, '*'], places: [...places, index + 1] }
}

function* listSecrets(node: unknown, at: Position): Generator<Omit<Found, 'written'>> {
  const { path, places } = at
  if (isMap(node))
    for (const { key, value } of node.items)
      yield* listSecrets(value, { path: [...path, String(isScalar(key) ? key.value : key)], places })
  else if (isSeq(node))
    for (const [index, item] of node.items.entries()) yield* listSecrets(item, findEntry(at, item, index))
  else if (isScalar(node) && isSecretField(path)) {
    const [from, to] = (node as Node).range ?? [0, 0]
    const mask = MASK + places.join('.')
    yield { path: path.join('\n'), value: String(node.value ?? ''), mask, from, to }
  }
}

const findSecrets = (text: string): Found[] =>
  [...listSecrets(parseDocument(text).contents, { path: [], places: [] })].map((found) => {
    // The end of the line belongs to a value that is written as a block.
    const written = text.slice(found.from, found.to).trimEnd()
    return { ...found, written, to: found.from + written.length }
  })

/** Replaces parts of a text, the last first, so that the offsets of the others hold. */
const replaceParts = (text: string, parts: readonly { from: number; to: number; by: string }[]): string =>
  parts
    .toSorted((a, b) => b.from - a.from)
    .reduce((changed, { from, to, by }) => changed.slice(0, from) + by + changed.slice(to), text)

/** Returns the text with a mask in place of each secret; a variable, which names none, stays. */
export const hideSecrets = (text: string): string =>
  replaceParts(
    text,
    findSecrets(text)
      .filter(({ value }) => value !== '' && !VARIABLE.test(value))
      .map(({ mask, from, to }) => ({ from, to, by: JSON.stringify(mask) })),
  )

/**
 * Returns the text with the secrets of `current` in place of the masks: each is found by its path and its mask, wherever
 * its entry is now. A mask without a secret stays.
 */
export function restoreSecrets(text: string, current: string): string {
  const known = new Map(
    findSecrets(current).map(({ path, mask, value, written }) => [
      `${path}\n${mask}`,
      // A block of several lines fits only where it stood.
      written.includes('\n') ? JSON.stringify(value) : written,
    ]),
  )
  return replaceParts(
    text,
    findSecrets(text).flatMap(({ path, value, from, to }) => {
      const secret = known.get(`${path}\n${value}`)
      return secret === undefined ? [] : [{ from, to, by: secret }]
    }),
  )
}
