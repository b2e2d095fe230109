import { type Control, interruptible, runProgram, sayOnStderr, withFacts } from '../harness/program.ts'
import { enterWorkFolder } from '../harness/work-folder.ts'
import { publish } from '../report/report.ts'
import { makeCorpus } from './corpus/corpus.ts'
import { COMMON_QUERIES, longMessages } from './corpus/messages.ts'
import { type BenchDatabase, startDatabase } from './engines/database.ts'
import type { Subject } from './engines/engine.ts'
import { minisearch } from './engines/minisearch.ts'
import { tollgate } from './engines/tollgate.ts'
import { tsvector } from './engines/tsvector.ts'
import { heldOut, judge, time } from './measure.ts'
import { COMPARED_PAGES, FULL_PAGES, type Options, parseOptions, usage } from './options.ts'
import { listFailures, printReport } from './report/report.ts'
import type { SearchResults, SizeResults, SubjectResults } from './report/results.ts'

/**
 * The bench of search: quality compared with other engines, and time in a large base. The bench starts its own PostgreSQL.
 * Queries: corpus/corpus.ts. Report: report/report.ts.
 */

const MS_PER_SECOND = 1_000
const US_PER_MS = 1_000
const ROUNDS = 2
/** The default number of results. */
const LIMIT = 20

async function built(subject: Subject, pages: Parameters<Subject['build']>[0]): Promise<number> {
  sayOnStderr(`${subject.title}: ${pages.length.toLocaleString('en-US')} pages …`)
  const from = performance.now()
  await subject.build(pages)
  return (performance.now() - from) / MS_PER_SECOND
}

async function compare({ sql, searching }: BenchDatabase, seed: number): Promise<SubjectResults[]> {
  const { pages, queries } = makeCorpus(COMPARED_PAGES, seed)
  const subjects = [
    tollgate(sql, searching),
    minisearch('icu'),
    minisearch('default'),
    tsvector(sql, 'english'),
    tsvector(sql, 'simple'),
  ]
  const results: SubjectResults[] = []
  for (const subject of subjects) {
    const buildSeconds = await built(subject, pages)
    const quality = await judge(subject.search, heldOut(queries))
    const texts = queries.map(({ text }) => text)
    results.push({
      name: subject.name,
      title: subject.title,
      buildSeconds,
      indexBytes: await subject.indexBytes(),
      times: await time(subject.search, texts, 1),
      quality,
    })
  }
  return results
}

async function measureSize({ sql, searching }: BenchDatabase, pageCount: number, seed: number) {
  const { pages, queries } = makeCorpus(pageCount, seed)
  const subject = tollgate(sql, searching)
  const buildSeconds = await built(subject, pages)
  const ask = (query: string) => subject.ask(query, LIMIT, 0)
  const before = process.cpuUsage()
  const judged = await time(
    ask,
    queries.map(({ text }) => text),
    ROUNDS,
  )
  const { user, system } = process.cpuUsage(before)
  // The untimed first round used CPU too.
  const searches = (judged.searches * (ROUNDS + 1)) / ROUNDS
  const quality = await judge(subject.search, heldOut(queries))
  const result: SizeResults = {
    pages: pageCount,
    buildSeconds,
    indexBytes: (await subject.indexBytes())!,
    times: {
      'judged queries': judged,
      'messages of 1,000 characters': await time(ask, longMessages(queries, seed), 2 * ROUNDS),
      'words of every page': await time(ask, COMMON_QUERIES, 4 * ROUNDS),
    },
    cpuMs: (user + system) / US_PER_MS / searches,
    quality: quality.all!,
  }
  return result
}

/** Each size has its own folder and a new server. */
async function withDatabase<T>(
  { checkpoint, signal }: Control,
  measure: (database: BenchDatabase) => Promise<T>,
): Promise<T> {
  checkpoint()
  const work = await enterWorkFolder()
  try {
    const database = await startDatabase(work.folder, signal)
    const close = () => database.close()
    // Ends searches that still run on the server.
    signal.addEventListener('abort', close)
    try {
      return await measure(database)
    } finally {
      signal.removeEventListener('abort', close)
      await close()
    }
  } finally {
    work.leave()
  }
}

async function measureAll({ pages, seed }: Options, control: Control) {
  const subjects = await withDatabase(control, (database) => compare(database, seed))
  const sizes: SizeResults[] = []
  for (const size of new Set([COMPARED_PAGES, pages]))
    sizes.push(await withDatabase(control, (database) => measureSize(database, size, seed)))
  return {
    isFull: pages >= FULL_PAGES,
    seed,
    comparedPages: COMPARED_PAGES,
    subjects,
    sizes,
    failures: listFailures({ subjects }),
  }
}

const run = (options: Options): Promise<number> =>
  interruptible(sayOnStderr, async (control) => {
    const results: SearchResults = await withFacts(sayOnStderr, () => measureAll(options, control))
    const place = { names: ['search', 'partial.search'], isFull: results.isFull, out: options.out } as const
    await publish(results, printReport(results), place, sayOnStderr)
    return results.failures.length === 0 ? 0 : 1
  })

await runProgram(parseOptions, usage, run)
