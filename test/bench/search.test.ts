/** The bench of search. */
import t from 'tap'
import { toSvg } from '../../bench/report/chart.ts'
import { toPage, toTerminal } from '../../bench/report/report.ts'
import { makeCorpus } from '../../bench/search/corpus/corpus.ts'
import { KINDS, LANGUAGES } from '../../bench/search/corpus/entry.ts'
import { heldOut } from '../../bench/search/measure.ts'
import { COMPARED_PAGES, FULL_PAGES, parseOptions } from '../../bench/search/options.ts'
import { ndcg, recall } from '../../bench/search/report/metrics.ts'
import { listFailures, printReport } from '../../bench/search/report/report.ts'
import type { Quality, SearchResults } from '../../bench/search/report/results.ts'

t.test('options', async (t) => {
  t.test('without options it is a small run', async (t) => {
    t.match(parseOptions([]), { pages: COMPARED_PAGES, seed: 1, out: null, help: false })
  })

  t.test('the full size can be asked for in thousands', async (t) => {
    t.equal(parseOptions(['--pages', '100k']).pages, FULL_PAGES)
    t.equal(parseOptions(['--pages', '7_500']).pages, 7_500)
  })

  t.test('wrong usage is an error', async (t) => {
    for (const value of ['0', '100', '1000k', 'many'])
      t.throws(() => parseOptions(['--pages', value]), { message: value })
    t.throws(() => parseOptions(['--seed', 'x']), /--seed/)
    t.throws(() => parseOptions(['--fast']), /--fast/)
  })
})

t.test('corpus is judged', async (t) => {
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
})

t.test('report', async (t) => {
  const times = { searches: 100, p50Ms: 3, p99Ms: 14, maxMs: 17 }
  const quality = (figure: number): Record<string, Quality> =>
    Object.fromEntries(
      ['all', 'en', 'zh', 'en title'].map((key) => [key, { queries: 16, ndcg: figure, recall: figure }]),
    )
  const RESULTS: SearchResults = {
    date: '2026-01-02',
    isFull: false,
    seed: 1,
    seconds: 30,
    busyBeforePercent: 2,
    machine: { cpu: 'a processor', cores: 2, memoryGiB: 8, system: 'Linux' },
    tollgate: '0.1.0',
    node: '22.0.0',
    comparedPages: 5_000,
    subjects: [
      {
        name: 'tollgate',
        title: 'Tollgate',
        buildSeconds: 3,
        indexBytes: 2 ** 24,
        times,
        quality: quality(0.9),
      },
      {
        name: 'minisearch-icu',
        title: 'MiniSearch',
        buildSeconds: 2,
        indexBytes: null,
        times,
        quality: quality(0.8),
      },
    ],
    sizes: [
      {
        pages: 5_000,
        buildSeconds: 3,
        indexBytes: 2 ** 24,
        times: { 'judged queries': times },
        cpuMs: 1.3,
        quality: { queries: 16, ndcg: 0.9, recall: 0.95 },
      },
    ],
    failures: [],
  }

  t.test('a run is reported in text, in Markdown and in a picture', async (t) => {
    t.match(toTerminal(printReport(RESULTS)), 'MiniSearch')
    const report = toPage(printReport(RESULTS), 'search.svg')
    t.match(report, '(search.svg)')
    t.match(report, '0.900 / 0.900')
    t.notMatch(report, 'Failed')
    t.match(await toSvg(printReport(RESULTS).chart), /^<svg/)
  })

  t.test('to be behind MiniSearch is a failure, and is named', async (t) => {
    t.same(listFailures(RESULTS), [])
    const [own, other] = RESULTS.subjects
    const behind = {
      ...RESULTS,
      subjects: [{ ...own!, quality: { ...own!.quality, zh: other!.quality.zh! } }, other!],
    }
    t.same(listFailures(behind), [], 'as good is good enough')
    const worse = { ...RESULTS, subjects: [{ ...own!, quality: quality(0.7) }, other!] }
    t.equal(listFailures(worse).length, 6)
    t.match(
      toPage(printReport({ ...worse, failures: listFailures(worse) }), 'x.svg'),
      '**Failed**: ndcg of all: 0.700, MiniSearch 0.800',
    )
  })
})
