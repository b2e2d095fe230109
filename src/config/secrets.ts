/** Secrets in the text of a configuration: hidden before it is shown, and put back before it is stored. */
import { isMap, isScalar, isSeq, type Node, parseDocument } from 'yaml'

/** Stands for a secret that stays as it is. */
export const MASK = '********'

const SECRET_FIELDS = new Set(['api_key', 'token', 'client_secret'])
/** Every value below one of them is a secret. */
const SECRET_SECTIONS = ['headers', 'api_keys']
const VARIABLE = /^\$\{[A-Za-z_][A-Za-z0-9_]*\}$/

interface Found {
  /** The path of the field. An entry of a list has its id in it, so that it may be moved. */
  readonly path: string
  readonly value: string
  /** Offsets of the value in the text. */
  readonly from: number
  readonly to: number
}

/** Returns whether a field holds a secret. @param path names of the field and of those around it */
export const isSecretField = (path: readonly string[]): boolean =>
  SECRET_FIELDS.has(path.at(-1) ?? '') || path.slice(0, -1).some((name) => SECRET_SECTIONS.includes(name))

function idOf(node: unknown, index: number): string {
  const id = isMap(node) ? node.get('id') : undefined
  return typeof id === 'string' ? id : String(index)
}

function* secretsIn(node: unknown, path: readonly string[]): Generator<Found> {
  if (isMap(node))
    for (const { key, value } of node.items)
      yield* secretsIn(value, [...path, String(isScalar(key) ? key.value : key)])
  else if (isSeq(node))
    for (const [index, item] of node.items.entries()) yield* secretsIn(item, [...path, idOf(item, index)])
  else if (isScalar(node) && isSecretField(path)) {
    const [from, to] = (node as Node).range ?? [0, 0]
    yield { path: path.join('\n'), value: String(node.value ?? ''), from, to }
  }
}

const secretsOf = (text: string): Found[] => [...secretsIn(parseDocument(text).contents, [])]

/** Replaces parts of a text, the last first, so that the offsets of the others hold. */
const replaced = (text: string, parts: readonly { from: number; to: number; by: string }[]): string =>
  parts
    .toSorted((a, b) => b.from - a.from)
    .reduce((changed, { from, to, by }) => changed.slice(0, from) + by + changed.slice(to), text)

/** Returns the text with a mask in place of each secret; a variable, which names none, stays. */
export const withoutSecrets = (text: string): string =>
  replaced(
    text,
    secretsOf(text)
      .filter(({ value }) => value !== '' && !VARIABLE.test(value))
      .map(({ from, to }) => ({ from, to, by: JSON.stringify(MASK) })),
  )

/** Returns the text with the secrets of `current` in place of the masks. A mask without one stays. */
export function withSecretsOf(text: string, current: string): string {
  const known = new Map(secretsOf(current).map(({ path, value }) => [path, value]))
  return replaced(
    text,
    secretsOf(text).flatMap(({ path, value, from, to }) => {
      const secret = known.get(path)
      return value === MASK && secret !== undefined ? [{ from, to, by: JSON.stringify(secret) }] : []
    }),
  )
}
