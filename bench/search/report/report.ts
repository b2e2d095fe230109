/** The report of a run: text, tables and a chart. */

import type { Bar, Chart, Panel } from '../../report/chart.ts'
import { chartLine, type Report, runLines } from '../../report/report.ts'
import { figure, type Table } from '../../report/table.ts'
import { KINDS, LANGUAGES } from '../corpus/entry.ts'
import type { SearchResults, SubjectResults } from './results.ts'

/** The aim for a search in the largest base. */
const AIM_P99_MS = 20
const MIB = 2 ** 20
const LANGUAGE_NAMES = { en: 'English', zh: 'Chinese' } as const

const METHOD = `Pages are generated from facts: countries, capitals, elements, rivers, inventions and ideas of computing and science, which
are public, and invented companies with founders, products, incidents and rules. Filler sentences share words with the
queries and answer none. Half is English, half Chinese, all in one base. The queries of a page and their grades follow
from its facts: 3 for the page itself, 2 for a page with the answer, 1 for a page about it. A larger corpus contains the
smaller one and has the same queries.

- **Kinds**: exact titles; aliases; questions in whole sentences; several words of a topic; paraphrases, which use words
  of aliases, tags or everyday life; titles with a typing error (Chinese: an extra character); prefixes of titles.
- **Held out**: half of the queries served to choose weights, and are not in these figures.
- **nDCG@10** (gain 2^grade - 1) measures the order of the first ten, **recall@10** the share of pages with grade 2 and 3
  among them.
- **MiniSearch** has the same fields and weights, fuzzy 0.2 and prefix search; once with its own tokenizer, once with
  ICU's words (Intl.Segmenter). It has all pages in the bench's memory. **tsvector** is PostgreSQL's own: weights A to D, a
  GIN index, any of the words, ts_rank_cd.
- **Time** is that of \`searchPages\`, from the call to the results with their snippets, twenty of them (the comparison:
  ten), one after the other, after a warm-up round. PostgreSQL is the embedded one with its small settings, on the same
  machine. CPU is that of the calling process.
- A run fails when MiniSearch is better in either figure over all held-out queries or over one language's.
- A quantile is the nearest rank: always a measured value.`

const decimals = (value: number | undefined): string => (value === undefined ? '–' : value.toFixed(3))
type Subjects = Pick<SearchResults, 'subjects'>
const ours = ({ subjects }: Subjects): SubjectResults => subjects.find(({ name }) => name === 'tollgate')!

/** Returns the figures in which MiniSearch is better. */
export function listFailures(results: Subjects): string[] {
  const own = ours(results)
  const others = results.subjects.filter(({ name }) => name.startsWith('minisearch'))
  return others.flatMap((other) =>
    ['all', ...LANGUAGES].flatMap((key) =>
      (['ndcg', 'recall'] as const)
        .filter((measure) => own.quality[key]![measure] < other.quality[key]![measure])
        .map(
          (measure) =>
            `${measure} of ${key}: ${decimals(own.quality[key]![measure])}, ${other.title} ${decimals(other.quality[key]![measure])}`,
        ),
    ),
  )
}

const toRun = ({ isFull, seconds, seed }: SearchResults): string =>
  `${isFull ? 'full' : 'partial'} run in ${Math.round(seconds)} s, seed ${seed}`

const overallTable = ({ subjects, comparedPages }: SearchResults): Table => ({
  title: `Quality at ${comparedPages.toLocaleString('en-US')} pages, held-out queries`,
  columns: [
    '',
    'nDCG@10',
    'recall@10',
    'English',
    'recall',
    'Chinese',
    'recall',
    'p50, ms',
    'p99, ms',
    'index, MiB',
    'build, s',
  ],
  rows: subjects.map(({ title, quality, times, indexBytes, buildSeconds }) => [
    title,
    ...['all', ...LANGUAGES].flatMap((key) => [decimals(quality[key]?.ndcg), decimals(quality[key]?.recall)]),
    figure(times.p50Ms),
    figure(times.p99Ms),
    figure(indexBytes === null ? null : indexBytes / MIB),
    figure(buildSeconds),
  ]),
})

const kindTable = ({ subjects }: SearchResults): Table => ({
  title: 'nDCG@10 / recall@10 by kind',
  columns: ['', 'queries', ...subjects.map(({ title }) => title)],
  rows: LANGUAGES.flatMap((language) =>
    KINDS.map((kind) => {
      const key = `${language} ${kind}`
      return [
        `${LANGUAGE_NAMES[language]}, ${kind}`,
        String(subjects[0]?.quality[key]?.queries ?? 0),
        ...subjects.map(
          ({ quality }) => `${decimals(quality[key]?.ndcg)} / ${decimals(quality[key]?.recall)}`,
        ),
      ]
    }),
  ),
})

const sizeTable = ({ sizes }: SearchResults): Table => ({
  title: 'Time of a search, milliseconds',
  columns: ['', 'searches', 'p50', 'p99', 'max'],
  rows: sizes.flatMap(({ pages, times }) =>
    Object.entries(times).map(([name, { searches, p50Ms, p99Ms, maxMs }]) => [
      `${pages.toLocaleString('en-US')} pages, ${name}`,
      String(searches),
      figure(p50Ms),
      figure(p99Ms),
      figure(maxMs),
    ]),
  ),
})

const remarks = ({ sizes }: SearchResults): string[] =>
  sizes.map(
    ({ pages, buildSeconds, indexBytes, cpuMs, quality }) =>
      `${pages.toLocaleString('en-US')} pages: stored and indexed in ${figure(buildSeconds)} s (${figure(pages / buildSeconds)} a second), index ${figure(indexBytes / MIB)} MiB; a search costs the calling process ${figure(cpuMs)} ms of CPU; nDCG@10 ${decimals(quality.ndcg)}, recall@10 ${decimals(quality.recall)}.`,
  )

/** Shortens the label of a bar. */
const shortly = (name: string): string => name.replace(' of 1,000 characters', ', long')

function drawPanels(results: SearchResults): Panel[] {
  const { subjects, sizes } = results
  const quality = (title: string, key: string, measure: 'ndcg' | 'recall'): Panel => ({
    title,
    unit: '',
    aim: null,
    bars: subjects.map(
      (subject): Bar => ({
        label: subject.title,
        value: subject.quality[key]?.[measure] ?? 0,
        note: '',
        own: subject.name === 'tollgate',
      }),
    ),
  })
  const times = sizes.map(
    ({ pages, times }): Panel => ({
      title: `Time at ${pages.toLocaleString('en-US')} pages`,
      unit: 'ms',
      aim: AIM_P99_MS,
      bars: Object.entries(times).flatMap(([name, { p50Ms, p99Ms }]) => [
        { label: `${shortly(name)}, p50`, value: p50Ms, note: '', own: true },
        { label: `${shortly(name)}, p99`, value: p99Ms, note: '', own: true },
      ]),
    }),
  )
  return [
    quality('nDCG@10, English', 'en', 'ndcg'),
    quality('nDCG@10, Chinese', 'zh', 'ndcg'),
    quality('Recall@10, English', 'en', 'recall'),
    quality('Recall@10, Chinese', 'zh', 'recall'),
    ...times,
  ]
}

const drawChart = (results: SearchResults): Chart => ({
  title: 'Search in knowledge bases',
  subtitle: [
    chartLine(results),
    `Quality over held-out queries at ${results.comparedPages.toLocaleString('en-US')} pages. Dashed: the aim for p99.`,
  ],
  panels: drawPanels(results),
})

export const printReport = (results: SearchResults): Report => ({
  title: 'How well and how fast search answers',
  chart: drawChart(results),
  chartText: 'Quality and time of search',
  run: runLines(results, toRun(results)),
  tables: [overallTable(results), kindTable(results), sizeTable(results)],
  remarks: remarks(results),
  failures: results.failures,
  method: METHOD,
})
