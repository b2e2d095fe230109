/** The terms of a query to look up in the vocabulary of the index. */
import { isFuzzy } from './likeness.ts'
import { joinName, nameBeginning, namePart, type QueryRun, queryRuns } from './terms.ts'

export interface QueryWord {
  readonly term: string
  readonly kind: 'word' | 'gram'
  /** The word of the query, folded: stemming spoils an unfinished word. */
  readonly surface: string
  readonly isCommon: boolean
  /** May be taken for one that is spelled alike. */
  readonly isFuzzy: boolean
  /** True for one character out of a run without spaces, often one that the dictionary could not parse. */
  readonly isLone: boolean
  /** Number of times that the query has it. */
  readonly count: number
}

/** Adjacent words that might be a page's title or alias. */
interface QueryName {
  readonly term: string
  /** Returns the terms of its words: computed only for the few names that exist. */
  readonly words: () => readonly string[]
}

export interface ParsedQuery {
  readonly words: readonly QueryWord[]
  readonly names: readonly QueryName[]
  /** The last word, which may not be finished; null: the query does not end in one. */
  readonly unfinished: string | null
  /** The beginning of a name that the query may be; null: the query is too short or too long. */
  readonly nameBegun: string | null
}

/** Words beyond these are not searched: a user's message of 1,000 characters has 200. */
const MAX_RUNS = 300
const MAX_NAME_RUNS = 6
const MAX_UNSPACED_NAME_CHARS = 10
const MAX_STRETCHED_CHARS = 24
const MAX_NAME_WORDS = 3
/** Further names are not looked up. */
const MAX_NAMES = 240
const SHORTEST_UNFINISHED = 3
const SHORTEST_NAME_BEGUN = 2

export function parseQuery(query: string): ParsedQuery {
  const runs = queryRuns(query).slice(0, MAX_RUNS)
  const unfinished = findUnfinished(runs, query)
  return { words: listWords(runs), names: listNames(runs), unfinished, nameBegun: findNameBegun(runs) }
}

function listWords(runs: readonly QueryRun[]): QueryWord[] {
  const words = new Map<string, QueryWord>()
  for (const run of runs)
    for (const { text: term, kind } of run.terms) {
      const surface = run.isSpaced ? run.text : term
      const known = words.get(term)
      words.set(term, {
        term,
        surface,
        kind: known?.kind === 'word' ? 'word' : kind,
        isCommon: isCommon(surface),
        isLone: !run.isSpaced && [...term].length === 1 && term !== run.text,
        isFuzzy: run.isSpaced && isFuzzy(term),
        count: (known?.count ?? 0) + 1,
      })
    }
  return [...words.values()]
}

/** Returns the names: the whole query first, then the shortest, because in a long message a name is a few words. */
function listNames(runs: readonly QueryRun[]): QueryName[] {
  const names = new Map<string, QueryName>()
  const add = (parts: readonly string[], words: () => readonly string[]): void => {
    const term = joinName(parts)
    if (term !== null && names.size < MAX_NAMES && !names.has(term)) names.set(term, { term, words })
  }
  const addRuns = (some: readonly QueryRun[]): void =>
    add(some.map(namePart), () => some.flatMap(({ terms }) => terms.map(({ text }) => text)))
  if (runs.length <= MAX_NAME_RUNS) addRuns(runs)
  for (let length = 1; length <= MAX_NAME_RUNS; length++)
    for (let from = 0; from + length <= runs.length && names.size < MAX_NAMES; from++) {
      if (length === 1 && isCommon(runs[from]!.text)) continue
      addRuns(runs.slice(from, from + length))
      if (length === 1 && !runs[from]!.isSpaced) addParts(runs[from]!, add)
    }
  return [...names.values()]
}

/**
 * Adds names inside a run without spaces: any part of a short one, of a long one sequences of the dictionary's words.
 */
function addParts(
  run: QueryRun,
  add: (parts: readonly string[], words: () => readonly string[]) => void,
): void {
  const chars = [...run.text]
  const isShort = chars.length <= MAX_STRETCHED_CHARS
  const units = isShort ? chars : run.terms.filter(({ kind }) => kind === 'word').map(({ text }) => text)
  const most = Math.min(isShort ? MAX_UNSPACED_NAME_CHARS : MAX_NAME_WORDS, units.length)
  for (let length = 1; length <= most; length++)
    for (let from = 0; from + length <= units.length; from++) {
      const text = units.slice(from, from + length).join('')
      if (!isCommon(text))
        add([text], () => run.terms.filter((term) => text.includes(term.text)).map((term) => term.text))
    }
}

function findUnfinished(runs: readonly QueryRun[], query: string): string | null {
  const last = runs.at(-1)
  if (!last?.isSpaced || !/[\p{L}\p{N}]$/u.test(query.trimEnd())) return null
  return last.text.length >= SHORTEST_UNFINISHED ? last.text : null
}

function findNameBegun(runs: readonly QueryRun[]): string | null {
  if (runs.length > MAX_NAME_RUNS) return null
  const begun = nameBeginning(runs)
  return begun.length > SHORTEST_NAME_BEGUN ? begun : null
}

/** Words typical of questions, not of pages: they count little, unless a query has no others. */
const ENGLISH = `a about all am an and any are as at be been but by can could did do does find for from get give got had
  has have help hello hey hi him his how i if in into is it its just kindly know like let list look many may me mean
  more most much my need no not of on one or our please question say she should show so some such tell than thank thanks
  that the their them there these they thing this those to told us use want was we were what when where which who whom
  whose why will with would you your explain describe`
const CHINESE = `的 了 是 在 和 与 及 或 有 为 于 之 也 都 就 而 吗 呢 吧 啊 我 你 您 他 她 它 我们 你们 他们 这 那 这个 那个
  哪 哪个 哪些 哪里 哪儿 什么 谁 怎么 怎样 如何 为什么 多少 几 几个 请 请问 告诉 知道 想 想要 一下 一个 是不是 有没有
  可以 能 能否 关于 介绍 解释 说明 帮 帮我 帮忙 是什么 什么是 时候 叫 叫做 由 把 被 让 给 对 从 到 以 中 里 上 下 个 位`

const COMMON = new Set([...ENGLISH.split(/\s+/), ...CHINESE.split(/\s+/)])

/** Returns whether `word` (folded, not stemmed) is common. */
const isCommon = (word: string): boolean => COMMON.has(word)
