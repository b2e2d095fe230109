/** Style as a test: what no linter checks. */
import t from 'tap'
import { filesUnder, readText, sourceFiles } from './support/source-files.ts'

const MAX_FILE_LINES = 400
const MAX_LINE_CHARS = 160

const SOURCES = sourceFiles('schemas', 'pipelines', 'src', 'bench', 'scripts', 'simulator', 'test')
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

t.test('what a call passes through imports globals that are getters, called at each use', async (t) => {
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
})

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

/**
 * Words that no search finds, and what to say instead. Put together from pieces where this file would find itself.
 */
const BANNED: ReadonlyArray<readonly [pattern: RegExp, instead: string]> = [
  [any(`\\b${'who'}ever\\b`), 'name the actor: "a client that ...", "the caller", "the next process"'],
  [any(`\\b${'an'}ew\\b`), '"again"; "creates", "reads again", "rebuilds"'],
  [
    any(`\\b(is|are|was|were|be|been|being) ${'to'}ld\\b`, `\\b${'to'}ld of\\b`),
    '"gets", "receives", "is reported", "is logged"; of a callback "Called with ..."',
  ],
  [any(`\\bhears? ${'of'}\\b`), '"receives", "is notified of"'],
  [any(`\\bstands? ${'be'}(hind|side)\\b`), '"follows", "is next to", "is used with"'],
  [any(`\\blets? ${'go'} of\\b`), '"releases", "aborts", "detaches"'],
  [any(`\\bcall(ed|s|ing)? ${'off'}\\b`), '"cancels"'],
  [any(`\\blook(s|ed)? ${'at'}\\b`), '"reads", "checks", "polls"'],
  [any(`\\bset ${'aside'}\\b`), '"reserved"; of a channel "its circuit breaker is open"'],
  [any(`\\bgone ${'on'} with\\b`, `\\bof its own ${'accord'}\\b`), '"continued", "by default"'],
  [any(`\\bnobody('s| else's) ${'business'}\\b`), '"is ignored", "is private"'],
  [any(`\\b${'ne'}ws\\b`), '"notification"'],
  [any(`\\b${'ver'}dicts?\\b`, `\\bLimit${'Book'}\\b`), '"decision", "limiter state"'],
  [any(`\\b(Off${'ice'}|Ask${'er'})\\b`), '"arbiter", "client"'],
  [any(`\\b${'Pas'}sage\\b`), '"protocol adapter"'],
  [any(`\\b(or${'Record'}|carry${'Out'})\\b`), '"recordRefusals", "execute"'],
  [any(`\\b${'for'}saken\\b`, `\\b${'follow'}less\\b`), '"abandoned submit", "synchronous"'],
  [any(`\\bRemembered${'Texts'}\\b`, `\\bSpare${'Files'}\\b`), '"string interner", "reserved descriptors"'],
  [any(`\\bnowhere${'Journal'}\\b`, `\\bletGo${'Of'}`), '"null journal", "abort", "release"'],
]

t.test('code and documents use the words of the field', async (t) => {
  const spoken = /^(schemas|pipelines|src|scripts|simulator|deploy|bench|test|docs|README)/
  // Word lists are data.
  const data = ['src/core/search/common.ts', 'bench/search/corpus/prose.ts']
  const files = TEXTS.filter(
    (path) => spoken.test(path) && /\.(ts|mjs|md)$/.test(path) && !data.includes(path),
  )
  const texts = files.map((path) => ({ path, text: readText(path) }))
  t.not(texts.length, 0)
  for (const [pattern, instead] of BANNED) {
    const found = occurrences(texts, new RegExp(pattern, 'i'))
    t.same(found, [], `${pattern} is banned; say instead: ${instead}`)
  }
})

t.test('a docstring begins with what the function does or is', async (t) => {
  // Folders whose comments do not follow the rule yet.
  const excepted = /^(src\/(fetch|upstream)|pipelines\/(media|tasks))\//
  const files = SERVICE.filter(({ path }) => !excepted.test(path))
  t.not(files.length, 0)
  const riddle = /\/\*\*\s+(?:\* )?(?:What|Whose|Who|How|Where|Nobody|Asked|Told)\b[^\n]*/g
  const riddles = files.flatMap(({ path, text }) =>
    [...text.matchAll(riddle)].map(([comment]) => `${path}: ${comment}`),
  )
  t.same(riddles, [], 'begin with a verb: "Returns ...", "Reads ...", "Called once when ..."')
  // A user of Unix has the name.
  const named = files.filter(({ path }) => path !== 'src/embedded/programs.ts')
  const people = any(`(\\*|//).*\\b(no${'body'}|some${'body'})\\b`)
  t.same(occurrences(named, people), [], 'name the actor: "no process", "the client has left"')
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
