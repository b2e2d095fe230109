/** A run in words, tables and a picture. */

import type { Bar, Chart, Panel } from '../../report/chart.ts'
import { chartLine, type Report, runLines } from '../../report/report.ts'
import { figure, type Table } from '../../report/table.ts'
import { KINDS, LANGUAGES } from '../corpus/corpus.ts'
import type { SearchResults, SubjectResults } from './results.ts'

/** What a search may take in the largest base. */
export const AIM_P99_MS = 20
const MIB = 2 ** 20
const LANGUAGE_NAMES = { en: 'English', zh: 'Chinese' } as const

const METHOD = `Pages are made of facts: countries, capitals, elements, rivers, inventions and ideas of computing and science as
everybody may look them up, and made-up companies with founders, products, incidents and rules, each among sentences
about nothing that share their words with what is asked. Half is English, half Chinese, all in one base. What is asked
of a page follows from its facts, and so do the judgements: 3 for the page that is asked for, 2 for one that has the
answer, 1 for one that is about it. A larger corpus holds the smaller one and is asked the same.

- **Kinds**: exact titles; aliases; questions in whole sentences; several words of a topic; paraphrases, which use words
  of aliases, tags or everyday life; titles with a typing error (Chinese: a character too many); beginnings of titles.
- **Held out**: every other query served to choose weights, and is not in these figures.
- **nDCG@10** (gain 2^grade - 1) says how well the first ten are ordered, **recall@10** which part of the pages with
  grade 2 and 3 is among them.
- **MiniSearch** has the same fields and weights, fuzzy 0.2 and prefix search; once with its own tokenizer, once with
  ICU's words (Intl.Segmenter). It answers from the bench's memory. **tsvector** is PostgreSQL's own: weights A to D, a
  GIN index, any of the words, ts_rank_cd.
- **Time** is that of \`searchPages\`, from the call to the results with their snippets, twenty of them (the comparison:
  ten), one after the other, after a round that does not count. PostgreSQL is the embedded one with its small settings,
  on the same machine. CPU is that of the asking process.
- A run fails when MiniSearch is better in either figure over all held-out queries or over one language's.
- A quantile is the nearest rank: always a value that was seen.`

const decimals = (value: number | undefined): string => (value === undefined ? '–' : value.toFixed(3))
type Subjects = Pick<SearchResults, 'subjects'>
const ours = ({ subjects }: Subjects): SubjectResults => subjects.find(({ name }) => name === 'tollgate')!

/** In what we are behind MiniSearch. */
export function failuresOf(results: Subjects): string[] {
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

const runOf = ({ isFull, seconds, seed }: SearchResults): string =>
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
  columns: ['', 'searches', 'p50', 'p99', 'most'],
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
      `${pages.toLocaleString('en-US')} pages: stored and indexed in ${figure(buildSeconds)} s (${figure(pages / buildSeconds)} a second), index ${figure(indexBytes / MIB)} MiB; a search costs the asking process ${figure(cpuMs)} ms of CPU; nDCG@10 ${decimals(quality.ndcg)}, recall@10 ${decimals(quality.recall)}.`,
  )

/** A bar has room for so much. */
const shortly = (name: string): string => name.replace(' of 1,000 characters', ', long')

function panelsOf(results: SearchResults): Panel[] {
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

const chartOf = (results: SearchResults): Chart => ({
  title: 'Search in knowledge bases',
  subtitle: [
    chartLine(results),
    `Quality over held-out queries at ${results.comparedPages.toLocaleString('en-US')} pages; the dashed line is the aim for p99.`,
  ],
  panels: panelsOf(results),
})

export const reportOf = (results: SearchResults): Report => ({
  title: 'How well and how fast search answers',
  chart: chartOf(results),
  chartText: 'Quality and time of search',
  run: runLines(results, runOf(results)),
  tables: [overallTable(results), kindTable(results), sizeTable(results)],
  remarks: remarks(results),
  failures: results.failures,
  method: METHOD,
})
