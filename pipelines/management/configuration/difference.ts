/** Compares two configurations, as both are written. */
import { structuredPatch } from 'diff'
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

const CONTEXT_LINES = 2
/** Texts that differ in more lines count as different in all of them: the search for what they share takes too long. */
const MAX_EDITED_LINES = 2_000

const KINDS: Readonly<Record<string, Line['kind']>> = { ' ': 'same', '-': 'removed', '+': 'added' }

/** Returns the lines in which two texts differ, each with some lines around it. */
export function listChangedLines(before: string, after: string): Line[] {
  const options = { context: CONTEXT_LINES, maxEditLength: MAX_EDITED_LINES }
  const patch = structuredPatch('', '', before, after, '', '', options)
  if (patch === undefined) return [...listLines('removed', before), ...listLines('added', after)]
  return patch.hunks.flatMap(({ oldStart, newStart, lines }) => {
    let [old, now] = [oldStart, newStart]
    return lines.flatMap((printed): Line[] => {
      const kind = KINDS[printed[0]!]
      // A remark, that the text does not end with a new line.
      if (kind === undefined) return []
      const line = kind === 'removed' ? old : now
      if (kind !== 'added') old++
      if (kind !== 'removed') now++
      return [{ kind, line, text: printed.slice(1) }]
    })
  })
}

const listLines = (kind: Line['kind'], text: string): Line[] =>
  text.split('\n').map((line, index) => ({ kind, line: index + 1, text: line }))
