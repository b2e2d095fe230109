/** Compares two configurations, as both are written. */
import type { checkConfiguration, Difference } from '../../../schemas/management/configuration.ts'
import type { AnswerOf } from '../../../schemas/management/operation.ts'

type Entry = Readonly<Record<string, unknown>>

const LISTS = ['models', 'channels'] as const

const readSection = (configuration: unknown, name: string): unknown =>
  (configuration as Entry | null | undefined)?.[name]

const listEntries = (configuration: unknown, name: string): ReadonlyMap<string, Entry> => {
  const list = readSection(configuration, name)
  const entries = Array.isArray(list) ? (list as (Entry | null)[]) : []
  return new Map(entries.flatMap((entry) => (typeof entry?.id === 'string' ? [[entry.id, entry]] : [])))
}

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

function listChanges(before: unknown, after: unknown, name: string, isSecret: (field: string) => boolean) {
  const [old, now] = [listEntries(before, name), listEntries(after, name)]
  const print = (field: string, value: unknown) =>
    value === undefined || isSecret(field) ? null : JSON.stringify(value)
  const changed = [...now].flatMap(([id, entry]) => {
    const former = old.get(id)
    if (former === undefined || isSame(former, entry)) return []
    const names = [...new Set([...Object.keys(former), ...Object.keys(entry)])]
    const fields = names
      .filter((field) => !isSame(former[field], entry[field]))
      .map((field) => ({
        name: field,
        before: print(field, former[field]),
        after: print(field, entry[field]),
      }))
    return fields.length === 0 ? [] : [{ id, fields }]
  })
  return {
    added: [...now.keys()].filter((id) => !old.has(id)),
    removed: [...old.keys()].filter((id) => !now.has(id)),
    changed,
  }
}

/** @param isSecret says of a field of a channel whether its values must not be shown */
export function compareConfigurations(
  before: unknown,
  after: unknown,
  isSecret: (field: string) => boolean,
): Difference {
  const names = [...new Set([before, after].flatMap((side) => Object.keys((side ?? {}) as Entry)))]
  return {
    models: listChanges(before, after, 'models', isSecret),
    channels: listChanges(before, after, 'channels', isSecret),
    sections: names.filter(
      (name) =>
        !LISTS.some((list) => list === name) && !isSame(readSection(before, name), readSection(after, name)),
    ),
  }
}

type Line = AnswerOf<typeof checkConfiguration>['lines'][number]

/** Larger differences are shown whole: comparing each line with each would take too long. */
const MAX_COMPARED = 4_000_000
const CONTEXT_LINES = 2

/** Returns, for each two places, how many lines both texts have in common from there on. */
function countCommon(old: readonly string[], now: readonly string[]): Uint32Array[] {
  const table = Array.from({ length: old.length + 1 }, () => new Uint32Array(now.length + 1))
  for (let a = old.length - 1; a >= 0; a--)
    for (let b = now.length - 1; b >= 0; b--)
      table[a]![b] =
        old[a] === now[b] ? table[a + 1]![b + 1]! + 1 : Math.max(table[a + 1]![b]!, table[a]![b + 1]!)
  return table
}

/** Returns the lines in which two texts differ, each with some lines around it. */
export function listChangedLines(before: string, after: string): Line[] {
  const [old, now] = [before.split('\n'), after.split('\n')]
  let begin = 0
  while (begin < Math.min(old.length, now.length) && old[begin] === now[begin]) begin++
  let same = 0
  while (same < Math.min(old.length, now.length) - begin && old.at(-1 - same) === now.at(-1 - same)) same++
  const [oldPart, nowPart] = [old.slice(begin, old.length - same), now.slice(begin, now.length - same)]
  const table = oldPart.length * nowPart.length > MAX_COMPARED ? null : countCommon(oldPart, nowPart)
  const lines: Line[] = []
  const add = (kind: Line['kind'], index: number, text: string) => lines.push({ kind, line: index + 1, text })
  for (let at = 0; at < begin; at++) add('same', at, now[at]!)
  let [a, b] = [0, 0]
  while (a < oldPart.length || b < nowPart.length) {
    const isSame = table !== null && a < oldPart.length && b < nowPart.length && oldPart[a] === nowPart[b]
    const isAdded =
      a === oldPart.length || (b < nowPart.length && table !== null && table[a]![b + 1]! > table[a + 1]![b]!)
    if (isSame) add('same', begin + b, nowPart[b]!)
    else if (isAdded) add('added', begin + b, nowPart[b]!)
    else add('removed', begin + a, oldPart[a]!)
    if (isSame || !isAdded) a++
    if (isSame || isAdded) b++
  }
  for (let at = now.length - same; at < now.length; at++) add('same', at, now[at]!)
  const isNear = (index: number) =>
    lines
      .slice(Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1)
      .some(({ kind }) => kind !== 'same')
  return lines.filter((_, index) => isNear(index))
}
