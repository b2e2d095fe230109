import t from 'tap'
import { makeCorpus } from '../../../bench/search/corpus/corpus.ts'
import { KINDS, LANGUAGES } from '../../../bench/search/corpus/entry.ts'
import { heldOut } from '../../../bench/search/measure.ts'
import { ndcg, recall } from '../../../bench/search/report/metrics.ts'

const PAGES = 5_000
const LEAST_QUERIES = 100

t.test('the same seed makes the same corpus, and a larger one holds a smaller one', async (t) => {
  const [small, again, large] = [makeCorpus(PAGES, 1), makeCorpus(PAGES, 1), makeCorpus(PAGES + 500, 1)]
  t.same(small, again)
  t.same(large.pages.slice(0, PAGES), small.pages)
  t.same(large.queries, small.queries)
  t.not(makeCorpus(PAGES, 2).pages[PAGES - 1]?.title, small.pages[PAGES - 1]?.title)
})

t.test('every query has an answer among the pages, of every kind in every language', async (t) => {
  const { pages, queries } = makeCorpus(PAGES, 1)
  const keys = new Set(pages.map(({ key }) => key))
  t.equal(keys.size, PAGES)
  for (const { text, grades } of queries) {
    if (!Object.values(grades).includes(3)) t.fail(`nothing answers "${text}"`)
    for (const key of Object.keys(grades)) if (!keys.has(key)) t.fail(`"${text}": no page ${key}`)
  }
  for (const language of LANGUAGES) {
    const some = queries.filter((query) => query.language === language)
    t.ok(some.length >= LEAST_QUERIES)
    for (const kind of KINDS)
      t.ok(
        heldOut(queries).some((query) => query.language === language && query.kind === kind),
        `${language} ${kind} is held out too`,
      )
  }
})

t.test('measures', async (t) => {
  const grades = { best: 3, good: 2, related: 1 }
  t.equal(ndcg(['best', 'good', 'related'], grades), 1)
  t.equal(ndcg([], grades), 0)
  t.ok(ndcg(['good', 'best'], grades) < ndcg(['best', 'good'], grades))
  t.equal(recall(['other', 'good'], grades), 0.5, 'what is only related need not be found')
  t.equal(recall([...Array(10).fill('other'), 'best', 'good'], grades), 0, 'ten are read')
})
