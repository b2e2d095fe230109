/** Builds pages and queries from any facts. */
import type { Random } from '../../harness/random.ts'
import type { BenchPage, Grades, JudgedQuery, Kind, Language } from './entry.ts'
import { prose } from './prose.ts'

interface Draft {
  readonly key: string
  readonly title: string
  readonly aliases?: readonly string[]
  readonly tags: readonly string[]
  readonly summary: string
  readonly facts: readonly string[]
  readonly filler?: number
}

const MAX_FILLER = 14

/** Reads a table of facts: a row a line, its columns separated by `|`. */
export const toRows = (table: string): string[][] =>
  table
    .trim()
    .split('\n')
    .map((line) => line.split('|'))

export const toPage = (language: Language, random: Random, draft: Draft): BenchPage => ({
  key: `${language}:${draft.key}`,
  language,
  title: draft.title,
  aliases: draft.aliases ?? [],
  tags: draft.tags,
  summary: draft.summary,
  text: prose(language, draft.facts, draft.filler ?? random.between(3, MAX_FILLER), random),
})

/** Queries in a language, each with its grades. */
export const asking =
  (language: Language) =>
  (kind: Kind, text: string, grades: Grades): JudgedQuery => ({ kind, language, text, grades })

/** Makes one typing error: two letters swapped, or one omitted, doubled or replaced by its neighbour. Never the first. */
function misspell(word: string, random: Random): string {
  const at = random.between(1, word.length - 1)
  const [before, letter, next, after] = [word.slice(0, at), word[at]!, word[at + 1] ?? '', word.slice(at + 2)]
  switch (random.between(0, 4)) {
    case 0:
      return letter === next ? before + next + after : before + next + letter + after
    case 1:
      return before + next + after
    case 2:
      return before + letter + letter + next + after
    default:
      return before + random.pick([...'aeionrst'].filter((other) => other !== letter)) + next + after
  }
}

/** Queries for nearly every page: its title, an alias, a prefix, a typing error. */
export function nameQueries(page: BenchPage, random: Random, related: Record<string, number> = {}) {
  const { key, language, title, aliases } = page
  const grades = { ...related, [key]: 3 }
  const query = (kind: Kind, text: string): JudgedQuery => asking(language)(kind, text, grades)
  const queries = [query('title', title)]
  if (aliases.length > 0) queries.push(query('alias', random.pick(aliases)))
  const longest = title.split(' ').reduce((most, word) => (word.length > most.length ? word : most))
  if (language === 'zh') {
    // An extra character, as from an input method, and a prefix.
    if (title.length >= 4)
      queries.push(query('typo', title.slice(0, 2) + random.pick([...'的了是']) + title.slice(2)))
    if (title.length >= 4) queries.push(query('prefix', title.slice(0, Math.ceil(title.length * 0.6))))
    return queries
  }
  if (longest.length >= 5)
    queries.push(query('typo', title.replace(longest, misspell(longest, random)).toLowerCase()))
  if (longest.length >= 6)
    queries.push(query('prefix', longest.slice(0, Math.ceil(longest.length * 0.65)).toLowerCase()))
  return queries
}
