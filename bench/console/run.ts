/**
 * The bench of the console: the sizes of its files, and the time until the page of calls is usable on a processor that
 * Chromium slows down to a quarter. Usable means that rows are shown and the filter takes a key.
 */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { signIn } from '../../test/support/manage.ts'
import { endAll } from '../harness/children.ts'
import { FLAG, givenOptions, TEXT, wholeNumber } from '../harness/command-line.ts'
import { ROOT } from '../harness/machine.ts'
import { interruptible, runProgram, sayOnStderr, withFacts } from '../harness/program.ts'
import { median } from '../harness/statistics.ts'
import { enterWorkFolder } from '../harness/work-folder.ts'
import { runLines } from '../report/report.ts'
import { figure, type Table, toMarkdown, toText } from '../report/table.ts'
import { type Console, withConsole } from './service.ts'

const DEFAULT_RUNS = 7
const THROTTLING = 4
const CALLS = 40
const BYTES_PER_KB = 1000
const MS_PER_SECOND = 1000
const BUILT = join(ROOT, 'console', 'dist')
const RESULTS = join(ROOT, 'bench', 'results', 'console')
const MODEL = 'bench'
/** Nothing listens there: each call fails, and is a row of the log. */
const CONFIGURATION = {
  models: [{ id: MODEL, pricing: { unit: '1M_tokens', input: '1', output: '1' } }],
  channels: [
    {
      id: 'bench',
      protocol: 'chat-completions',
      base_url: 'http://127.0.0.1:9/v1',
      api_key: 'bench',
      models: { [MODEL]: MODEL },
    },
  ],
}

/** A file that does not become smaller is not compressed. */
const readSize = (name: string): number => {
  const path = join(BUILT, name)
  return statSync(existsSync(`${path}.br`) ? `${path}.br` : path).size / BYTES_PER_KB
}

function measureSizes(): Table {
  const page = readFileSync(join(BUILT, 'index.html'), 'utf8')
  const first = [
    'index.html',
    ...[...page.matchAll(/\/console\/(assets\/[^"]+\.(?:js|css))"/g)].map(([, name]) => name!),
  ]
  const sum = (names: readonly string[]) => names.reduce((total, name) => total + readSize(name), 0)
  const others = readdirSync(join(BUILT, 'assets'))
    .filter((name) => /\.(?:js|css)$/.test(name) && !first.includes(`assets/${name}`))
    .map((name) => [name.replace(/-[^-]{8}\.(js|css)$/, '.$1'), readSize(`assets/${name}`)] as const)
    .toSorted(([, a], [, b]) => b - a)
  return {
    title: 'Sizes, kB compressed',
    columns: ['', 'kB'],
    rows: [
      ['First load', figure(sum(first))],
      ...others.slice(0, 15).map(([name, size]) => [name, figure(size)]),
      ['All other files', figure(others.slice(15).reduce((total, [, size]) => total + size, 0))],
    ],
  }
}

/** Returns the seconds from the request of the page until it is usable: without a cache, and with one. */
async function measureOnce(browser: Browser, baseUrl: string, cookie: string): Promise<[number, number]> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
  try {
    const [name = '', value = ''] = cookie.split('=', 2)
    await context.addCookies([{ name, value, url: baseUrl }])
    const page = await context.newPage()
    const devtools = await context.newCDPSession(page)
    await devtools.send('Emulation.setCPUThrottlingRate', { rate: THROTTLING })
    const open = async (): Promise<number> => {
      const startedAt = performance.now()
      await page.goto(`${baseUrl}/console/calls`, { waitUntil: 'commit' })
      await page.getByText(MODEL, { exact: true }).first().waitFor()
      const filter = page.getByPlaceholder('Filter by model, key, error, session or id')
      await filter.pressSequentially('b')
      await page.waitForFunction(`document.activeElement?.value === 'b'`)
      return (performance.now() - startedAt) / MS_PER_SECOND
    }
    return [await open(), await open()]
  } finally {
    await context.close()
  }
}

async function measureTimes({ baseUrl, database, browser }: Console, runs: number): Promise<Table> {
  const { user, cookie } = await signIn({ baseUrl, database }, { role: 'operator' })
  const { raw } = await database.keys.create({ accountId: user.accountId, name: 'bench' })
  for (let count = 0; count < CALLS; count += 1)
    await fetch(`${baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${raw}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'hello' }] }),
    }).then((response) => response.text())
  const times: [number, number][] = []
  for (let run = 0; run < runs; run += 1) times.push(await measureOnce(browser, baseUrl, cookie))
  const row = (title: string, at: 0 | 1) => {
    const seconds = times.map((one) => one[at])
    return [title, figure(median(seconds)), figure(Math.min(...seconds)), figure(Math.max(...seconds))]
  }
  return {
    title: 'Until Calls is usable, seconds',
    columns: ['', 'median', 'least', 'most'],
    rows: [row('Nothing in the cache', 0), row('Files in the cache', 1)],
  }
}

const METHOD = `A fresh service with ${CALLS} calls in its log. Chromium runs on the same machine, its processor slowed down ${THROTTLING} times
(\`Emulation.setCPUThrottlingRate\`); the network is the loopback. Each run has an own browser context: it opens Calls with
an empty cache, and then once more. Usable means that a row of the log is shown and the filter has taken a typed key.`

interface Options {
  readonly runs: number
  readonly help: boolean
}

const run = ({ runs }: Options): Promise<number> =>
  interruptible(sayOnStderr, async () => {
    const work = await enterWorkFolder()
    try {
      const results = await withFacts(sayOnStderr, async () => ({
        tables: [
          await withConsole(work.folder, CONFIGURATION, (console) => measureTimes(console, runs)),
          measureSizes(),
        ],
      }))
      const lines = runLines(results, `${runs} runs`)
      process.stdout.write(`${[...lines, ...results.tables.map(toText)].join('\n\n')}\n`)
      writeFileSync(`${RESULTS}.json`, `${JSON.stringify(results, null, 2)}\n`)
      const page = [
        '# When the console is usable',
        lines.map((line) => `- ${line}`).join('\n'),
        ...results.tables.map(toMarkdown),
        '## How it was measured',
        METHOD,
      ]
      writeFileSync(`${RESULTS}.md`, `${page.join('\n\n')}\n`)
      return 0
    } finally {
      await endAll()
      work.leave()
    }
  })

const USAGE = `npm run bench:console -- [options]

  --runs N    how often Calls is opened; ${DEFAULT_RUNS} by default
  --help      this text
`

await runProgram(
  (args): Options => {
    const { runs = String(DEFAULT_RUNS), help = false } = givenOptions(args, { runs: TEXT, help: FLAG })
    return { runs: wholeNumber('runs', runs, 1, 1000), help }
  },
  () => USAGE,
  run,
)
