import t from 'tap'
import { toSvg } from '../../../bench/report/chart.ts'
import { toPage, toTerminal } from '../../../bench/report/report.ts'
import { failuresOf, reportOf } from '../../../bench/search/report/report.ts'
import type { Quality, SearchResults } from '../../../bench/search/report/results.ts'

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
  t.match(toTerminal(reportOf(RESULTS)), 'MiniSearch')
  const report = toPage(reportOf(RESULTS), 'search.svg')
  t.match(report, '(search.svg)')
  t.match(report, '0.900 / 0.900')
  t.notMatch(report, 'Failed')
  t.match(await toSvg(reportOf(RESULTS).chart), /^<svg/)
})

t.test('to be behind MiniSearch is a failure, and is named', async (t) => {
  t.same(failuresOf(RESULTS), [])
  const [own, other] = RESULTS.subjects
  const behind = {
    ...RESULTS,
    subjects: [{ ...own!, quality: { ...own!.quality, zh: other!.quality.zh! } }, other!],
  }
  t.same(failuresOf(behind), [], 'as good is good enough')
  const worse = { ...RESULTS, subjects: [{ ...own!, quality: quality(0.7) }, other!] }
  t.equal(failuresOf(worse).length, 6)
  t.match(
    toPage(reportOf({ ...worse, failures: failuresOf(worse) }), 'x.svg'),
    '**Failed**: ndcg of all: 0.700, MiniSearch 0.800',
  )
})
