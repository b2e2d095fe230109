import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { describeCheckout, describeMachine } from '../harness/machine.ts'
import { busyPercentDuring } from '../harness/proc.ts'
import { enterGround } from '../logs/ground.ts'
import { UsageError } from '../options.ts'
import { makeCorpus } from './corpus.ts'
import { type BenchDatabase, startDatabase } from './database.ts'
import { heldOut, judge, time } from './measure.ts'
import { COMMON_QUERIES, longMessages } from './messages.ts'
import { minisearch } from './minisearch.ts'
import { COMPARED_PAGES, FULL_PAGES, type Options, parseOptions, usage } from './options.ts'
import { chartOf, failuresOf, reportOf, textOf } from './report.ts'
import type { SearchResults, SizeResults, SubjectResults } from './results.ts'
import type { Subject } from './subject.ts'
import { tollgate } from './tollgate.ts'
import { tsvector } from './tsvector.ts'

/**
 * The bench of search: how good its answers are beside those of others, and how long they take in a large base.
 * PostgreSQL is the bench's own and ends with it. What is asked: corpus.ts; what comes of it: report.ts.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const RESULTS = fileURLToPath(new URL('../results', import.meta.url))
const QUIET_CHECK_MS = 1_000
const BUSY_PERCENT = 10
const MS_PER_SECOND = 1_000
const US_PER_MS = 1_000
const ROUNDS = 2
/** As a client without a wish gets them. */
const LIMIT = 20
const EXIT_USAGE = 2

const say = (line: string): void => {
  process.stderr.write(`${line}\n`)
}

async function built(subject: Subject, pages: Parameters<Subject['build']>[0]): Promise<number> {
  say(`${subject.title}: ${pages.length.toLocaleString('en-US')} pages …`)
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
  // The first round, which is not timed, was work as well.
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

/** Each in a folder of its own, on a server that nothing was asked of yet. */
async function withDatabase<T>(work: (database: BenchDatabase) => Promise<T>): Promise<T> {
  const ground = await enterGround(null)
  try {
    const database = await startDatabase(ground.folder)
    try {
      return await work(database)
    } finally {
      await database.close()
    }
  } finally {
    ground.leave()
  }
}

async function measureAll({ pages, seed }: Options): Promise<SearchResults> {
  const busyBeforePercent = await busyPercentDuring(delay(QUIET_CHECK_MS))
  if (busyBeforePercent > BUSY_PERCENT)
    say(`the machine is ${Math.round(busyBeforePercent)} % busy with other things: times will be wrong`)
  const startedAt = performance.now()
  const subjects = await withDatabase((database) => compare(database, seed))
  const sizes: SizeResults[] = []
  for (const size of new Set([COMPARED_PAGES, pages]))
    sizes.push(await withDatabase((database) => measureSize(database, size, seed)))
  const results: SearchResults = {
    date: new Date().toISOString().slice(0, 10),
    isFull: pages >= FULL_PAGES,
    seed,
    seconds: (performance.now() - startedAt) / MS_PER_SECOND,
    busyBeforePercent,
    machine: describeMachine(),
    tollgate: describeCheckout(ROOT),
    node: process.versions.node,
    comparedPages: COMPARED_PAGES,
    subjects,
    sizes,
    failures: [],
  }
  return { ...results, failures: failuresOf(results) }
}

/** A partial run never takes the place of the full one. */
function write(results: SearchResults, { out }: Options): void {
  const folder = out ?? RESULTS
  const name = results.isFull || out !== null ? 'search' : 'partial.search'
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(results, null, 2)}\n`)
  writeFileSync(join(folder, `${name}.svg`), chartOf(results))
  writeFileSync(join(folder, `${name}.md`), reportOf(results, `${name}.svg`))
  say(`written: ${join(folder, name)}.{json,md,svg}`)
}

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2))
  if (options.help) {
    process.stdout.write(usage())
    return 0
  }
  const results = await measureAll(options)
  process.stdout.write(`${textOf(results)}\n`)
  write(results, options)
  return results.failures.length === 0 ? 0 : 1
}

process.exitCode = await main().catch((error: Error) => {
  process.stderr.write(`bench: ${error.message}\n`)
  return error instanceof UsageError ? EXIT_USAGE : 1
})
