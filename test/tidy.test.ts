/** Style as a test: what no linter checks. */
import t from 'tap'
import { filesUnder, readText, sourceFiles } from './support/source-files.ts'

const MAX_FILE_LINES = 400
const MAX_LINE_CHARS = 160

const SOURCES = sourceFiles('schemas', 'pipelines', 'src', 'assembly', 'bench', 'deploy', 'test')
const SERVICE = SOURCES.filter(({ path }) => /^(schemas|pipelines|src)\//.test(path))
const TEXTS = filesUnder().filter((path) => !/\.(png|jpe?g|ico|woff2?|bin|gz)$/.test(path))

/** Where in the files a pattern is found, as `path:line: text`. */
function occurrences(files: readonly { path: string; text: string }[], pattern: RegExp): string[] {
  return files.flatMap(({ path, text }) =>
    text
      .split('\n')
      .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
  )
}

t.test('a file has one idea', async (t) => {
  t.not(SOURCES.length, 0)
  const long = SOURCES.filter(({ text }) => text.split('\n').length > MAX_FILE_LINES + 1)
  t.same(
    long.map(({ path, text }) => `${path}: ${text.split('\n').length - 1} lines`),
    [],
  )
})

t.test('a line fits on a screen, patterns and messages excepted', async (t) => {
  const long = SOURCES.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, index) => {
      const isLiteral = /['"`/]\S*.{40,}/.test(line)
      return line.length > MAX_LINE_CHARS && !isLiteral ? [`${path}:${index + 1}`] : []
    }),
  )
  t.same(long, [])
})

// Put together from pieces, so that this file does not find itself.
const any = (...words: string[]) => new RegExp(words.join('|'))

t.test('nothing is left for later, and nothing is switched off', async (t) => {
  const later = any(
    `\\b${'TO'}DO\\b`,
    `\\b${'FIX'}ME\\b`,
    `\\b${'XX'}X\\b`,
    `not ${'implemented'}`,
    `for ${'now'}\\b`,
  )
  t.same(occurrences(SOURCES, later), [])
  const evaded = any(
    `\\bas ${'any'}\\b(?! [a-z])`,
    `@ts-${'ignore'}`,
    `@ts-${'expect'}-error`,
    `@ts-${'nocheck'}`,
  )
  t.same(occurrences(SOURCES, evaded), [])
  const tests = SOURCES.filter(({ path }) => path.startsWith('test/'))
  const skipped = any(`\\.${'only'}\\(`, `\\.${'skip'}\\(`, `\\b${'skip'}: true`, `\\b${'todo'}: `)
  t.same(occurrences(tests, skipped), [])
})

t.test('every file of the service says what it is for', async (t) => {
  const silent = SERVICE.filter(({ text }) => !text.includes('/**')).map(({ path }) => path)
  t.same(silent, [])
})

t.test(
  'what a call passes through imports globals that are getters: such a one is called for each use',
  async (t) => {
    const passed = /^(src\/(core|http|journal|protocols|telemetry|upstream)|pipelines(\/stages)?)\/[^/]+$/
    const uses = /(?<![\w.'])(Buffer|performance)\.\w/g
    const files = SERVICE.filter(({ path }) => passed.test(path))
    t.ok(files.some(({ text }) => text.match(uses)))
    const looked = files.flatMap(({ path, text }) =>
      [...text.replace(/\/\*.*?\*\/|\/\/[^\n]*/gs, '').matchAll(uses)]
        .filter(([, name]) => !text.includes(`import { ${name} } from 'node:`))
        .map(([use]) => `${path}: ${use}`),
    )
    t.same(looked, [])
  },
)

t.test('every test can be found by its name', async (t) => {
  const tests = SOURCES.filter(({ path, imports }) => {
    return (
      path.startsWith('test/') && imports.some(({ specifier, typeOnly }) => specifier === 'tap' && !typeOnly)
    )
  })
  const misnamed = tests.filter(({ path }) => !path.endsWith('.test.ts') && !path.startsWith('test/support/'))
  t.same(
    misnamed.map(({ path }) => path),
    [],
  )
})

t.test('an empty list is looked for by its length: as a pattern it matches any list', async (t) => {
  const matches = /^( *)t\.match\((?:.*\)$|\n[\s\S]*?\n\1\)|.*[{[]\n[\s\S]*?\n\1[}\]])/gm
  const vacuous = SOURCES.filter(({ path }) => path.startsWith('test/')).flatMap(({ path, text }) =>
    [...text.matchAll(matches)].flatMap(([call]) => (call.includes(`: ${'[]'}`) ? [`${path}: ${call}`] : [])),
  )
  t.same(vacuous, [])
})

t.test('the repository speaks of itself alone', async (t) => {
  const texts = TEXTS.map((path) => ({ path, text: readText(path) }))
  const machine = any(
    `(^|[\\s'"\`=(])/${'work'}/`,
    `/${'home'}/(?!tollgate)[a-z]`,
    `/${'tmp'}/h/`,
    `[a-z]+\\.${'registry'}\\.`,
  )
  t.same(occurrences(texts, machine), [])
  const registry = any(`https?://[^\\s"']*(${'npmjs'}\\.org|${'artifactory'}|${'nexus'})`)
  t.same(occurrences(texts, registry), [])
})
