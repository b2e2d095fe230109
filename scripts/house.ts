/**
 * Prints how simple the code is, in numbers: `npm run house`. With `-- --walk` it also starts the service and counts the
 * files that one streamed call runs through, which takes a minute; with `-- --list` it lists what each number counts.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { parseAst } from 'vite'
import { PRESETS } from '../src/channels/providers/presets.ts'
import { filesUnder, ROOT, readText, sourceFiles, target } from '../test/support/source-files.ts'

interface Measure {
  readonly measure: string
  readonly aim: string
  /** What is counted, each once. */
  readonly found: readonly string[]
  /** Printed in place of the number of `found`. */
  readonly value?: string
  readonly how: string
}

const PRODUCT = ['src', 'pipelines', 'schemas', 'console', 'simulator', 'scripts', 'deploy']
const SHORT_FILE_LINES = 25
const LONG_FUNCTION_LINES = 100
/** Gemini and Qwen are names of clients, too. */
const TABLE_OF_CLIENTS = 'schemas/clients.ts'

const sources = sourceFiles('src', 'pipelines', 'schemas')
const pipelines = sources.filter(({ path }) => path.startsWith('pipelines/'))
const product = sourceFiles(...PRODUCT)
const code = product.filter(({ path }) => !path.startsWith('scripts/'))
const migrations = filesUnder('src/postgres/migrations').map((path) => ({ path, text: readText(path) }))

/** Returns every match of a pattern, with its file. */
const matches = (files: readonly { path: string; text: string }[], pattern: RegExp): string[] =>
  files.flatMap(({ path, text }) => [...text.matchAll(pattern)].map(([match]) => `${path}: ${match.trim()}`))

const findFilesWith = (files: readonly { path: string; text: string }[], pattern: RegExp): string[] =>
  files.filter(({ text }) => pattern.test(text)).map(({ path }) => path)

/** Returns the files of the commit that added the column `session_id`; earlier, those that name the last column. */
function listColumnFiles(): string[] {
  const log = ['log', '--format=%H', '--extended-regexp', '--grep=^Add the session of a call to its row']
  const [commit] = execFileSync('git', log, { cwd: ROOT, encoding: 'utf8' }).split('\n')
  if (!commit) return findFilesWith([...code, ...migrations], /\b(upstream_cost|upstreamCost)\b/)
  return execFileSync('git', ['show', '--name-only', '--format=', commit, '--', ...PRODUCT], {
    cwd: ROOT,
    encoding: 'utf8',
  })
    .split('\n')
    .filter((path) => path !== '')
}

/** Returns the steps of the page's walks through a call and its settlement that go back to a folder of an earlier step. */
function listReturnsToFolders(): string[] {
  const page = readText('docs/architecture.md')
  const walks = ['A call', 'A settlement'].flatMap((heading) => {
    const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? ''
    return [...section.matchAll(/^\d+\. `([^`]+)`/gm)].map(([, path = '']) => path)
  })
  const folders = walks.map((path) => path.split('/').slice(0, 2).join('/'))
  return walks.filter(
    (_, at) => folders[at] !== folders[at - 1] && folders.slice(0, at).includes(folders[at]!),
  )
}

function listMutualImports(): string[] {
  const findFolder = (path: string) => path.split('/')[1] ?? ''
  const arrows = new Set(
    pipelines.flatMap(({ path, imports }) =>
      imports
        .map(({ specifier }) => target(path, specifier))
        .filter((file) => file?.startsWith('pipelines/') && findFolder(file) !== findFolder(path))
        .map((file) => `${findFolder(path)} ${findFolder(file!)}`),
    ),
  )
  return [...arrows].filter((arrow) => {
    const [from = '', to = ''] = arrow.split(' ')
    return from < to && arrows.has(`${to} ${from}`)
  })
}

/** Returns the code lines of a file: neither empty nor comments. */
const countCodeLines = (text: string): number =>
  text.split('\n').filter((line) => line.trim() !== '' && !/^\s*(\/\/|\/?\*)/.test(line)).length

function listShortFiles(): string[] {
  const importers = new Map<string, Set<string>>()
  for (const { path, imports } of product)
    for (const { specifier } of imports) {
      const file = target(path, specifier)
      if (file !== null) importers.set(file, (importers.get(file) ?? new Set()).add(path))
    }
  return product
    .filter(({ path, text }) => importers.get(path)?.size === 1 && countCodeLines(text) <= SHORT_FILE_LINES)
    .map(({ path }) => path)
}

interface Node {
  readonly type?: string
  readonly start?: number
  readonly end?: number
  readonly id?: { readonly name?: string } | null
}

function listLongFunctions(): string[] {
  return product.flatMap(({ path, text }) => {
    const found: string[] = []
    const countLinesTo = (at: number) => text.slice(0, at).split('\n').length
    const visit = (value: unknown): void => {
      if (Array.isArray(value)) return value.forEach(visit)
      if (typeof value !== 'object' || value === null) return
      const { type = '', start = 0, end = 0, id } = value as Node
      if (/Function/.test(type) && end > start) {
        const lines = countLinesTo(end) - countLinesTo(start) + 1
        if (lines > LONG_FUNCTION_LINES)
          found.push(`${path}:${countLinesTo(start)} ${id?.name ?? ''} has ${lines} lines`)
      }
      Object.values(value).forEach(visit)
    }
    visit(parseAst(text, { lang: path.endsWith('x') ? 'tsx' : 'ts' }))
    return found
  })
}

function listProviderComparisons(): string[] {
  const names = Object.keys(PRESETS).join('|')
  const elsewhere = sources.filter(
    ({ path }) => !path.startsWith('src/channels/providers/') && path !== TABLE_OF_CLIENTS,
  )
  return matches(
    elsewhere,
    new RegExp(`^.*[!=]== '(${names})'.*$|^ *(case '(${names})'|(${names}): [[{]).*$`, 'gm'),
  )
}

/** Returns the places in which code of others is changed while it is loaded. */
function listPatchedLibraries(): string[] {
  const loaders = filesUnder('src', 'test/support').filter((path) => /\.(ts|mjs)$/.test(path))
  const texts = [...loaders, 'package.json', '.taprc'].map((path) => ({ path, text: readText(path) }))
  return matches(
    texts,
    /registerHooks|module\.register\(|compileFunction|_resolveFilename|--import[ =][^\s"]+/g,
  )
}

const countProductLines = (): number =>
  execFileSync('git', ['ls-files', ...PRODUCT], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter((path) => /\.(tsx?|sql|css|html|ya?ml|json|md)$/.test(path))
    .reduce((sum, path) => sum + readText(path).split('\n').length - 1, 0)

const WARM_UP_CALLS = 3
/** Longer than every flow of the background needs for a round. */
const WINDOW_MS = 6_000
const COVERAGE_SIGNAL = 'SIGUSR2'
const WRITES_COVERAGE = `import v8 from 'node:v8';process.on('${COVERAGE_SIGNAL}',()=>v8.takeCoverage())`
const START_BOUND_MS = 180_000

interface Coverage {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly {
      readonly functionName: string
      readonly ranges: readonly { startOffset: number; count: number }[]
    }[]
  }[]
}

/** Returns the functions that ran, as `path function offset`, and forgets the reports. */
function listFunctionsThatRan(folder: string): Set<string> {
  const ran = new Set<string>()
  for (const name of readdirSync(folder)) {
    const { result }: Coverage = JSON.parse(readFileSync(join(folder, name), 'utf8'))
    rmSync(join(folder, name))
    for (const { url, functions } of result) {
      if (!url.startsWith('file:')) continue
      const path = relative(ROOT, fileURLToPath(url))
      if (!/^(src|pipelines|schemas)\//.test(path)) continue
      for (const { functionName, ranges } of functions)
        if (ranges[0]!.count > 0) ran.add(`${path} ${functionName} ${ranges[0]!.startOffset}`)
    }
  }
  return ran
}

/** Returns the processes of the service: those of Node.js below a process, itself included. */
function listProcessesBelow(root: number): number[] {
  const all = execFileSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
    .flatMap((found) =>
      found === null ? [] : [{ pid: Number(found[1]), parent: Number(found[2]), args: found[3]! }],
    )
  const below = new Set([root])
  for (let size = 0; size !== below.size; ) {
    size = below.size
    for (const { pid, parent } of all) if (below.has(parent)) below.add(pid)
  }
  return all
    .filter(({ pid, args }) => below.has(pid) && /src\/main\.ts|^tollgate: /.test(args))
    .map(({ pid }) => pid)
}

/** Starts the service, makes one streamed call and returns the files whose functions ran for it and not without it. */
async function walkOfStreamedCall(): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-house-'))
  const reports = join(folder, 'coverage')
  mkdirSync(reports)
  const service = spawn(process.execPath, ['src/main.ts', 'serve'], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env,
      ...{ TOLLGATE_DATA_DIR: join(folder, 'data'), TOLLGATE_PORT: '0', LOG_LEVEL: 'error' },
      NODE_V8_COVERAGE: reports,
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(WRITES_COVERAGE)}`,
    },
  })
  const ended = once(service, 'exit')
  try {
    const run = await readRunFile(join(folder, 'data', 'run.json'))
    const call = async () => {
      const answer = await fetch(`${run.base_url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${run.first_key}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'demo-chat',
          stream: true,
          messages: [{ role: 'user', content: 'Hello!' }],
        }),
      })
      const text = await answer.text()
      if (!text.includes('[DONE]')) throw new Error(`The call was not answered: ${answer.status} ${text}`)
    }
    const runFor = async (work: () => Promise<void>): Promise<Set<string>> => {
      await work()
      await pause(WINDOW_MS)
      for (const pid of listProcessesBelow(service.pid!)) process.kill(pid, COVERAGE_SIGNAL)
      await pause(WINDOW_MS / 2)
      return listFunctionsThatRan(reports)
    }
    for (let calls = 0; calls < WARM_UP_CALLS; calls += 1) await call()
    await runFor(async () => {})
    const idle = await runFor(async () => {})
    const ran = await runFor(call)
    return [...new Set([...ran].filter((one) => !idle.has(one)).map((one) => one.split(' ')[0]!))].sort()
  } finally {
    service.kill()
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
}

async function readRunFile(path: string): Promise<{ base_url: string; first_key: string }> {
  const until = Date.now() + START_BOUND_MS
  while (!existsSync(path)) {
    if (Date.now() > until) throw new Error('The service did not start')
    await pause(100)
  }
  return JSON.parse(readFileSync(path, 'utf8'))
}

const { walk: isWalked, list: isListed } = parseArgs({
  options: { walk: { type: 'boolean' }, list: { type: 'boolean' } },
}).values
const walk = isWalked ? await walkOfStreamedCall() : null
const deps = matches(pipelines, /(interface|type) [A-Za-z]*Deps\b/g)
const picks = matches(pipelines, /Pick</g)
const lines = countProductLines()

const MEASURES: readonly Measure[] = [
  {
    measure: 'files that a new column of the call log touches',
    aim: 'at most 8',
    found: listColumnFiles(),
    how: 'product files of the commit "Add the session of a call to its row", which added session_id',
  },
  {
    measure: 'files on the way of one streamed chat call',
    aim: 'at most 40',
    found: walk ?? [],
    value:
      walk === null
        ? 'with --walk'
        : `${walk.length}, ${walk.filter((path) => path.startsWith('pipelines/')).length} of them in pipelines`,
    how: 'files of src, pipelines, schemas with a function that runs, by coverage, during one call and not in the same time without one',
  },
  {
    measure: 'returns to a folder already left, on that way',
    aim: 'at most 2',
    found: listReturnsToFolders(),
    how: 'steps of the walks "A call" and "A settlement" in docs/architecture.md whose folder (two levels) an earlier, other step was in',
  },
  {
    measure: 'pairs of folders below pipelines that import each other',
    aim: 'none',
    found: listMutualImports(),
    how: 'pairs of first folders, types included',
  },
  {
    measure: 'types named ...Deps in pipelines',
    aim: 'at most 80',
    found: deps,
    how: '(interface|type) [A-Za-z]*Deps',
  },
  { measure: 'Pick< in pipelines', aim: 'at most 60', found: picks, how: 'places' },
  {
    measure: 'idempotency engines',
    aim: '1',
    found: findFilesWith(
      sources,
      /\b(INTO|UPDATE|FROM) \w*idempotency\w*|\b(idempotency|intent)_key\b/,
    ).filter((path) => /^src\/postgres\/.*\.ts$/.test(path)),
    how: 'files of src/postgres with SQL of an Idempotency-Key: idempotency in the name of a table or a column',
  },
  {
    measure: 'token-charging functions',
    aim: '1',
    found: findFilesWith(sources, /\blimitUsage\(/).filter((path) => !path.endsWith('/usage-bounds.ts')),
    how: 'files that bound reported usage, to charge it, by limitUsage()',
  },
  {
    measure: 'queue workers',
    aim: '1',
    found: findFilesWith(pipelines, /\bdelivery\??\.release\([^)]/),
    how: 'files of pipelines that give a message back for later: those that work on what a message names do (the settler books what it carries)',
  },
  {
    measure: 'routers',
    aim: '1',
    found: findFilesWith(sources, /\bpath\.(split\('\/'|startsWith\()|path\.exec\(/).filter((path) =>
      /^(pipelines|src\/(http|server|mcp|console))\//.test(path),
    ),
    how: 'files of the server and of pipelines that take the path of a request apart',
  },
  {
    measure: 'readers of JSON',
    aim: '2',
    found: [
      ...findFilesWith(sources, /\bQUOTE\b|0x22\b/).filter((path) =>
        /^src\/(core\/json\/[^/]+\.ts|protocols\/(?!sse))/.test(path),
      ),
      ...findFilesWith(sources, /function scanJson\b/),
    ],
    how: 'files of core/json and protocols (without sse) that look for quotation marks in bytes, and the tape',
  },
  {
    measure: "comparisons of a provider's name outside its folder",
    aim: 'none',
    found: listProviderComparisons(),
    how: `lines outside src/channels/providers, and the table of clients in ${TABLE_OF_CLIENTS}, with === 'name', case 'name' or an entry of a table by name`,
  },
  {
    measure: 'patches, stubs and hooks of third-party code',
    aim: 'none',
    found: listPatchedLibraries(),
    how: 'module hooks, patched resolution, recompiled sources and --import in src, test/support, package.json, .taprc',
  },
  {
    measure: `functions over ${LONG_FUNCTION_LINES} lines`,
    aim: 'none',
    found: listLongFunctions(),
    how: 'functions and methods of the product, from the first line to the last',
  },
  {
    measure: `files of at most ${SHORT_FILE_LINES} code lines with one importer`,
    aim: 'at most 30',
    found: listShortFiles(),
    how: 'files of the product; lines that are neither empty nor comments',
  },
  {
    measure: 'lines of product',
    aim: 'at most 105,000',
    found: [],
    value: lines.toLocaleString('en'),
    how: `lines of .ts, .tsx, .sql, .css, .html, .yaml, .json and .md in ${PRODUCT.join(', ')}`,
  },
]

const rows = MEASURES.map(
  ({ measure, aim, found, value, how }) => `| ${measure} | ${aim} | ${value ?? found.length} | ${how} |`,
)
const table = ['| measure | aim | now | how it is measured |', '|---|---|---|---|', ...rows]
const lists = MEASURES.filter(({ found }) => found.length > 0).flatMap(({ measure, found }) => [
  '',
  `${measure}:`,
  ...found.map((one) => `  ${one}`),
])
process.stdout.write(`${[...table, ...(isListed ? lists : [])].join('\n')}\n`)
