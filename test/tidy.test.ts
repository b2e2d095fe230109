/** What no linter checks: leftovers, the length of files, and what the repository speaks of. */
import t from 'tap'
import { filesUnder, readText, sourceFiles } from './support/source-files.ts'

const MAX_FILE_LINES = 400

const SOURCES = sourceFiles('schemas', 'pipelines', 'src', 'bench', 'scripts', 'simulator', 'test')
const TEXTS = filesUnder().filter((path) => !/\.(png|jpe?g|ico|woff2?|bin|gz)$/.test(path))

/** Where in the files a pattern is found, as `path:line: text`. */
function occurrences(files: readonly { path: string; text: string }[], pattern: RegExp): string[] {
  return files.flatMap(({ path, text }) =>
    text
      .split('\n')
      .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
  )
}

t.test('a file has one idea, and a file of tests one module', async (t) => {
  t.not(SOURCES.length, 0)
  const long = SOURCES.filter(
    ({ path, text }) => !path.endsWith('.test.ts') && text.split('\n').length > MAX_FILE_LINES + 1,
  )
  t.same(
    long.map(({ path, text }) => `${path}: ${text.split('\n').length - 1} lines`),
    [],
  )
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
  const evaded = any(`@ts-${'expect'}-error`, `@ts-${'nocheck'}`)
  t.same(occurrences(SOURCES, evaded), [])
  const tests = SOURCES.filter(({ path }) => path.startsWith('test/'))
  const skipped = any(`\\.${'only'}\\(`, `\\.${'skip'}\\(`, `\\b${'skip'}: true`, `\\b${'todo'}: `)
  t.same(occurrences(tests, skipped), [])
})

// Biome says so of types as well, which are gone when the code runs.
t.test('what a call passes through imports globals that are getters, called at each use', async (t) => {
  const passed = /^(src\/(core|http|journal|protocols|telemetry|upstream)|pipelines(\/calls)?)\/[^/]+$/
  const uses = /(?<![\w.'])(Buffer|performance)\.\w/g
  const files = SOURCES.filter(({ path }) => passed.test(path))
  t.ok(files.some(({ text }) => text.match(uses)))
  const looked = files.flatMap(({ path, text }) =>
    [...text.replace(/\/\*.*?\*\/|\/\/[^\n]*/gs, '').matchAll(uses)]
      .filter(([, name]) => !text.includes(`import { ${name} } from 'node:`))
      .map(([use]) => `${path}: ${use}`),
  )
  t.same(looked, [])
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
