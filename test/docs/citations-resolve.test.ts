/** Every page, heading and row that code, tests and pages cite is there, and nothing is cited from elsewhere. */
import { existsSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import t from 'tap'
import { filesUnder, ROOT, readText } from '../support/source-files.ts'

const FOLDERS = [
  'schemas',
  'pipelines',
  'src',
  'console/src',
  'bench',
  'deploy',
  'scripts',
  'simulator',
  'docs',
  'scripts',
  'test',
]
const TEXT = /\.(ts|mjs|js|sql|md|ya?ml|json|html|css)$/
/** What quotes citations in order to test them. */
const OWN = 'test/docs/citations-resolve.test.ts'
const PAGES = ['README.md', 'CHANGELOG.md', 'console/README.md']
const FILES = [...filesUnder(...FOLDERS), ...PAGES, 'Dockerfile', 'docker-compose.yml'].filter(
  (path) => (TEXT.test(path) || !path.includes('.')) && path !== OWN,
)

/** Comments as running text: a citation may go on in the next line. */
const joined = (text: string): string => text.replace(/\s*\n\s*(?:\*(?!\/)|\/\/|#|--)?\s*/g, ' ')

const headingsOf = (page: string): string[] =>
  [...readText(page).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title)

/** As GitHub makes them of headings. */
const anchorsOf = (page: string): string[] =>
  headingsOf(page).map((title) =>
    title
      .toLowerCase()
      .replace(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  )

const sectionOf = (page: string, heading: string): string =>
  readText(page)
    .split(/^#+ /m)
    .find((section) => section.startsWith(`${heading}\n`)) ?? ''

const CITED = /"([^"]+)"(?:, rows? (\d+(?:(?:, | and | to )\d+)*))?/g
const CITATION =
  /\b(docs\/[\w-]+\.md)((?:(?:,| and|, and) "[^"]+"(?:, rows? \d+(?:(?:, | and | to )\d+)*)?)*)/g

interface Citation {
  readonly page: string
  readonly heading: string | null
  readonly rows: readonly string[]
}

function citationsIn(text: string): Citation[] {
  return [...joined(text).matchAll(CITATION)].flatMap(([, page = '', cited = '']): Citation[] => {
    const headings = [...cited.matchAll(CITED)].map(([, heading = '', rows = '']) => ({
      page,
      heading,
      rows: rows.match(/\d+/g) ?? [],
    }))
    return headings.length === 0 ? [{ page, heading: null, rows: [] }] : headings
  })
}

/** What is wrong with a citation; null where it resolves. */
function fault({ page, heading, rows }: Citation): string | null {
  if (!existsSync(join(ROOT, page))) return `there is no ${page}`
  if (heading === null) return null
  if (!headingsOf(page).includes(heading)) return `${page} has no heading "${heading}"`
  const missing = rows.filter((row) => !sectionOf(page, heading).includes(`\n| ${row} |`))
  return missing.length === 0 ? null : `${page}, "${heading}" has no row ${missing.join(', ')}`
}

t.test('a citation that does not resolve is found', async (t) => {
  const faults = (text: string) => citationsIn(text).map(fault)
  t.same(faults('See docs/api-rules.md, "Videos". See docs/api-rules.md, "Tasks" and "Images".'), [
    null,
    null,
    null,
  ])
  t.same(faults(' * See docs/api-rules.md, "Built-in\n * tools".'), [null])
  t.same(faults('docs/failure-modes.md, "Money", rows 7, 8 and 12 and "Streams", row 30.'), [null, null])
  t.match(faults('See docs/failure-modes.md, "Money", row 30.')[0], 'has no row 30')
  t.match(faults('See docs/api-rules.md, "Tasks" and "Filme".')[1], 'no heading "Filme"')
  t.match(faults('See docs/rules.md.')[0], 'there is no docs/rules.md')
})

t.test('every cited page, heading and row exists', async (t) => {
  const found = FILES.flatMap((path) =>
    citationsIn(readText(path)).map((citation) => ({ path, problem: fault(citation), ...citation })),
  )
  t.ok(found.filter(({ heading }) => heading !== null).length > 100)
  t.same(
    found.filter(({ problem }) => problem !== null).map(({ path, problem }) => `${path}: ${problem}`),
    [],
  )
})

t.test('every link to a heading of another page leads to it', async (t) => {
  for (const path of FILES.filter((file) => file.endsWith('.md')))
    for (const [, page = '', anchor = ''] of readText(path).matchAll(/\]\(([\w./-]+\.md)#([^)\s]+)\)/g))
      t.ok(anchorsOf(posix.join(dirname(path), page)).includes(anchor), `${path}: ${page}#${anchor}`)
})

const OUTSIDE = new RegExp(
  [
    /\bSource: /,
    /(?<!OpenTelemetry |JSON Schema |Webhooks |test\/)\b[Ss]pecification('s)?\b/,
    /\b(decisions|failures|design|operator|management|prices)\.md\b/,
    /\b([Dd]ecisions|[Ff]ailures|[Oo]perator|[Dd]esign)[:,] ("|rows? \d|rule)/,
    /\b[Dd]esign rules?\b/,
    /\/work\//,
  ]
    .map(({ source }) => source)
    .join('|'),
)

t.test('nothing is cited that is not in the repository', async (t) => {
  const found = FILES.flatMap((path) =>
    readText(path)
      .split('\n')
      .flatMap((line, index) => (OUTSIDE.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
  )
  t.same(found, [])
})
