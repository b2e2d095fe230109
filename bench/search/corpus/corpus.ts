/** The corpus: pages generated from facts, and queries whose relevant pages follow from the facts. */
import { Random } from '../../harness/random.ts'
import { type BenchPage, type Entry, type JudgedQuery, KINDS, LANGUAGES } from './entry.ts'
import { conceptEntries, countryEntries, elementEntries, inventionEntries, riverEntries } from './known.ts'
import { companyEntries } from './synthetic.ts'

interface Corpus {
  readonly pages: readonly BenchPage[]
  readonly queries: readonly JudgedQuery[]
}

/** Queries of each kind in each language. */
const QUERIES_PER_KIND = 32
/** Every corpus has the pages of known facts and this many of invented companies. The queries are about these. */
const ASKED_COMPANIES = 150

/** Generates the corpus of a seed. A larger corpus has all pages and queries of a smaller one. */
export function makeCorpus(pageCount: number, seed: number): Corpus {
  const random = new Random(seed)
  const known = LANGUAGES.flatMap((language) => [
    ...countryEntries(language, random),
    ...elementEntries(language, random),
    ...conceptEntries(language, random),
    ...inventionEntries(language, random),
    ...riverEntries(language, random),
  ])
  const pages = known.flatMap((entry) => entry.pages)
  const asked = [...known]
  const companies = LANGUAGES.map((language) => companyEntries(language, new Random(seed + language.length)))
  for (let count = 0; pages.length < pageCount; count++) {
    const entry = companies[count % companies.length]!.next().value
    pages.push(...entry.pages)
    if (count < ASKED_COMPANIES) asked.push(entry)
  }
  return { pages: pages.slice(0, pageCount), queries: chooseQueries(asked, new Random(seed + 1)) }
}

function chooseQueries(entries: readonly Entry[], random: Random): JudgedQuery[] {
  const all = merge(entries.flatMap(({ queries }) => queries))
  return LANGUAGES.flatMap((language) =>
    KINDS.flatMap((kind) => {
      const some = all.filter((query) => query.kind === kind && query.language === language)
      return random.shuffle(some).slice(0, QUERIES_PER_KIND)
    }),
  )
}

/** Merges queries with the same words, and their grades. */
function merge(queries: readonly JudgedQuery[]): JudgedQuery[] {
  const byText = new Map<string, JudgedQuery>()
  for (const query of queries) {
    const before = byText.get(query.text)
    byText.set(query.text, before ? { ...before, grades: { ...before.grades, ...query.grades } } : query)
  }
  return [...byText.values()]
}
