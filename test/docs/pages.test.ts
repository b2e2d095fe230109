/** Pages agree with the code. */
import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import t from 'tap'
import { z } from 'zod'
import { DEFAULT_TRIAL_CREDIT, MINIMUM_TOP_UP } from '../../schemas/accounts/account.ts'
import { KEY_LENGTH_CHARS, KEY_SHOWN_CHARS } from '../../schemas/accounts/key.ts'
import {
  LOG_CSV_MAX_ROWS,
  LOG_LIMIT_DEFAULT_ROWS,
  LOG_LIMIT_MAX_ROWS,
  UNIT_TYPES,
} from '../../schemas/call-log/row.ts'
import { LOG_SUMMARY_CACHE_SECONDS, LOG_SUMMARY_MAX_DAYS } from '../../schemas/call-log/summary.ts'
import { COLLECTION_LIMITS } from '../../schemas/collection-limits.ts'
import {
  capabilities,
  channelEntry,
  ENDPOINT_TYPES,
  ESTIMATE_OUTPUT_CAP_TOKENS,
  imageTraits,
  modelEntry,
  pricing,
  videoTraits,
} from '../../schemas/config/catalog.ts'
import { channelAuth } from '../../schemas/config/channel-auth.ts'
import { configFile } from '../../schemas/config/file.ts'
import { environment } from '../../schemas/config/settings.ts'
import { AUTH_MESSAGES, FAILURES, upstreamStatusName } from '../../schemas/failure.ts'
import {
  BATCH_MAX_PAGES,
  MCP_SEARCH_DEFAULT_LIMIT,
  READ_PAGE_BODY_MAX_CHARS,
  READ_PAGES_BODY_MAX_CHARS,
  REST_BATCH_BODY_MAX_CHARS,
  SEARCH_DEFAULT_LIMIT,
  SEARCH_MAX_LIMIT,
  SOURCE_LINK_TTL_SECS,
} from '../../schemas/knowledge/wiki.ts'
import { AVATAR_LIST_MAX, AVATAR_NAME_MAX_CHARS } from '../../schemas/media/avatars.ts'
import {
  CARD_DESCRIPTION_MAX_CHARS,
  CARD_NAME_MAX_CHARS,
  PICTURES_MAX,
  TITLE_MAX_CHARS,
} from '../../schemas/media/clips.ts'
import { CALLER_LINK_MAX_CHARS } from '../../schemas/media/fields.ts'
import { IMAGES_MAX, REFERENCE_IMAGES_MAX } from '../../schemas/media/images.ts'
import type { MediaWork } from '../../schemas/media/job.ts'
import { LYRICS_MAX_CHARS, MUSIC_PROMPT_MAX_CHARS } from '../../schemas/media/music.ts'
import { SPEECH_INPUT_MAX_CHARS, SPEED_MAX, SPEED_MIN } from '../../schemas/media/speech.ts'
import { TRANSCRIPT_URL_MAX_CHARS } from '../../schemas/media/transcripts.ts'
import { PORTRAITS_MAX } from '../../schemas/media/videos.ts'
import { ONE_CREDIT } from '../../schemas/money.ts'
import { EVENT_TYPES, TEST_EVENT } from '../../schemas/notifications/event.ts'
import { TASK_KINDS } from '../../schemas/tasks/kinds.ts'
import { outwardStatuses, TASK_LIST_DEFAULT, TASK_LIST_MAX } from '../../schemas/tasks/list.ts'
import { TASK_RULES } from '../../schemas/tasks/task.ts'
import { MEDIA_PROTOCOLS, mediaAdapterOf, worksOf } from '../../src/channels/media/registry.ts'
import { PRESETS } from '../../src/channels/providers/presets.ts'
import { protocolsOf } from '../../src/channels/providers/provider.ts'
import { DEMONSTRATION_FILE } from '../../src/config/demonstration.ts'
import { loadConfig, loadConfigFile } from '../../src/config/load.ts'
import { withProfile } from '../../src/config/profile.ts'
import { newId } from '../../src/core/keys/ids.ts'
import { bannerModel, firstCallBody } from '../../src/server/supervisor/banner.ts'
import { GAUGE_NAMES } from '../../src/telemetry/gauges.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { commandTree } from '../src/cli/support.ts'
import { newPayment, paymentNotice } from '../src/postgres/payments/support.ts'
import { newAccount, settlement, startDatabase } from '../src/postgres/support.ts'
import { hold, settle } from '../src/postgres/tasks/support.ts'
import { CHAT_PROVIDERS } from '../support/chat-providers.ts'
import { filesUnder, ROOT, readText } from '../support/source-files.ts'

t.test('pages are true', async (t) => {
  // What the pages name is there: files, commands of npm, dependencies, fields of the examples. `citations-resolve.test.ts`
  // checks links to headings of other pages.
  const PAGES = ['README.md', 'CHANGELOG.md', ...filesUnder('docs').filter((path) => path.endsWith('.md'))]
  const TESTS = filesUnder('test')
  const { scripts, dependencies, optionalDependencies, devDependencies } = JSON.parse(
    readText('package.json'),
  )

  t.test('every link leads somewhere', async (t) => {
    for (const page of PAGES) {
      const text = readText(page)
      for (const [, link = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(link)) continue
        const [path = '', anchor] = link.split('#')
        if (path !== '') t.ok(existsSync(join(ROOT, dirname(page), path)), `${page}: ${link}`)
        else t.ok(headings(text).includes(anchor ?? ''), `${page}: ${link}`)
      }
    }
  })

  /** The anchors of a page's headings. */
  function headings(text: string): string[] {
    return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
      title
        .toLowerCase()
        .replace(/[^\w\s-]/g, '')
        .replaceAll(' ', '-'),
    )
  }

  t.test('every file and every command of npm that is named exists', async (t) => {
    for (const page of PAGES) {
      const text = readText(page)
      for (const [, path = ''] of text.matchAll(
        /`((?:src|test|schemas|pipelines|console|deploy|docs|scripts|simulator|bench|\.ci)\/[\w./-]+)`/g,
      ))
        t.ok(existsSync(join(ROOT, path)), `${page}: ${path}`)
      for (const [, name = ''] of text.matchAll(/`([\w-]+\.test\.ts)`/g))
        t.ok(
          TESTS.some((path) => path.endsWith(`/${name}`)),
          `${page}: ${name}`,
        )
      for (const [, script = ''] of text.matchAll(/npm run (?:-s )?([a-z]+)/g))
        t.ok(Object.hasOwn(scripts, script), `${page}: npm run ${script}`)
    }
  })

  t.test('every dependency has a reason', async (t) => {
    const rows = readText('docs/dependencies.md').match(/^\| `.*$/gm) ?? []
    const named = rows.flatMap((row) =>
      [...row.split(' | ')[0]!.matchAll(/`([^`\s]+)`/g)].map(([, name]) => name),
    )
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...devDependencies }))
      t.ok(named.includes(name), name)
  })

  t.test('the configuration of the first own provider is sound', async (t) => {
    const example = /```yaml\n(.*?)```/s.exec(readText('docs/getting-started.md'))?.[1] ?? ''
    const path = join(t.testdir(), 'tollgate.yaml')
    writeFileSync(path, example)
    const result = loadConfigFile(path, { EXAMPLE_API_KEY: 'sk-example' })
    t.match(result, { ok: true, config: { channels: [{ id: 'primary', api_key: 'sk-example' }] } })
  })

  t.test('the README and the start of the service show the same first call', async (t) => {
    const result = loadConfigFile(DEMONSTRATION_FILE, { TOLLGATE_SIMULATOR_URL: 'http://127.0.0.1:1' })
    if (!result.ok) throw new Error('The demonstration does not load.')
    const served = (id: string) => result.config.channels.some(({ models }) => Object.hasOwn(models, id))
    const printed = firstCallBody(bannerModel(result.config.models, served)!)
    const shown = /chat\/completions[^']*'Content-Type: application\/json'[^']*-d '([^']+)'/.exec(
      readText('README.md'),
    )
    t.same(JSON.parse(shown?.[1] ?? 'null'), printed)
    t.ok(readText('docs/getting-started.md').includes(`model: '${printed.model}'`))
  })
})

t.test('citations resolve', async (t) => {
  // Every page, heading and row that code, tests and pages cite is there, and nothing is cited from elsewhere.
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
  const OWN = 'test/docs/pages.test.ts'
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
})

t.test('glossary terms are used', async (t) => {
  // The glossary defines words that are in use, each once, in order.
  const PAGE = 'docs/glossary.md'
  const LEAST_TERMS = 20
  const LEAST_FILES = 2

  const terms = [...readText(PAGE).matchAll(/^\| ([a-z -]+) \| (.+) \|$/gm)].flatMap(
    ([, term = '', meaning]) => (term === 'term' ? [] : [{ term, meaning }]),
  )

  /** As prose has a term, and as a name in code has it: `usage row`, `usage_row`, `UsageRow`, `bookedUsageRow`. */
  function patternOf(term: string): RegExp {
    const words = term.split(/[ -]/)
    const inProse = words
      .map((word) => `[${word[0]}${word[0]?.toUpperCase()}]${word.slice(1)}`)
      .join('[ _-]?')
    const inName = words.map((word) => `${word[0]?.toUpperCase()}${word.slice(1)}`).join('')
    return new RegExp(`(?<![A-Za-z])${inProse}|[a-z]${inName}`)
  }

  t.test('terms are in alphabetical order, each once', async (t) => {
    t.ok(terms.length >= LEAST_TERMS)
    const names = terms.map(({ term }) => term)
    t.same(names, [...new Set(names)].sort())
  })

  t.test('each term is used in code or in pages', async (t) => {
    const texts = filesUnder('schemas', 'pipelines', 'src', 'docs')
      .filter((path) => /\.(ts|md|sql)$/.test(path) && path !== PAGE)
      .map(readText)
    for (const { term } of terms) {
      const pattern = patternOf(term)
      t.ok(texts.filter((text) => pattern.test(text)).length >= LEAST_FILES, term)
    }
  })
})

t.test('api rules page agrees', async (t) => {
  // The numbers and states of docs/api-rules.md are those of the schemas.
  const page = readText('docs/api-rules.md')

  const section = (heading: string): string =>
    page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? ''

  const inWords = (value: number): string => value.toLocaleString('en-US')

  const BOUNDS: Readonly<Record<string, readonly (number | string)[]>> = {
    'Names and forms': [KEY_LENGTH_CHARS, KEY_SHOWN_CHARS],
    'Accounts and wallets': [DEFAULT_TRIAL_CREDIT, MINIMUM_TOP_UP],
    'Pre-charge': [ESTIMATE_OUTPUT_CAP_TOKENS],
    Tasks: [TASK_LIST_DEFAULT, TASK_LIST_MAX],
    'Links from clients': [CALLER_LINK_MAX_CHARS],
    Images: [IMAGES_MAX, REFERENCE_IMAGES_MAX],
    Music: [MUSIC_PROMPT_MAX_CHARS, LYRICS_MAX_CHARS],
    Speech: [SPEECH_INPUT_MAX_CHARS, SPEED_MIN, SPEED_MAX],
    Models: ENDPOINT_TYPES,
    'Call log rows': UNIT_TYPES,
    Transcripts: [TRANSCRIPT_URL_MAX_CHARS],
    Avatars: [AVATAR_NAME_MAX_CHARS, AVATAR_LIST_MAX],
    'Digital humans': [PORTRAITS_MAX],
    Clips: [TITLE_MAX_CHARS, CARD_NAME_MAX_CHARS, CARD_DESCRIPTION_MAX_CHARS, PICTURES_MAX],
    'Call log list': [LOG_LIMIT_DEFAULT_ROWS, LOG_LIMIT_MAX_ROWS],
    'Call log CSV': [LOG_CSV_MAX_ROWS],
    'Call log summary': [LOG_SUMMARY_MAX_DAYS, LOG_SUMMARY_CACHE_SECONDS],
    'Knowledge search': [
      SEARCH_DEFAULT_LIMIT,
      SEARCH_MAX_LIMIT,
      BATCH_MAX_PAGES,
      REST_BATCH_BODY_MAX_CHARS,
      SOURCE_LINK_TTL_SECS,
    ],
    MCP: [
      MCP_SEARCH_DEFAULT_LIMIT,
      SEARCH_MAX_LIMIT,
      BATCH_MAX_PAGES,
      READ_PAGE_BODY_MAX_CHARS,
      READ_PAGES_BODY_MAX_CHARS,
    ],
  }

  t.test('each bound is named under its heading', async (t) => {
    for (const [heading, bounds] of Object.entries(BOUNDS))
      for (const bound of bounds) {
        const text = typeof bound === 'number' ? inWords(bound) : bound
        t.match(section(heading), new RegExp(`(?<![\\d,.])${text}(?![\\d,]*\\d)`), `${heading}: ${text}`)
      }
  })

  const MINUTE_MS = 60_000
  const DURATIONS: Readonly<Record<string, number>> = {
    hours: 60 * MINUTE_MS,
    minutes: MINUTE_MS,
    seconds: 1000,
  }

  t.test('each kind of task has the states and times of its row', async (t) => {
    for (const kind of TASK_KINDS) {
      const row = new RegExp(`^\\| ${kind} \\| (.+) \\| (\\d+) (\\w+) \\| (\\d+) s.* \\|$`, 'm').exec(
        section('Tasks'),
      )
      const [, states = '', count, unit = '', submitSeconds] = row ?? []
      const rules = TASK_RULES[kind]
      t.equal(Number(count) * (DURATIONS[unit] ?? 0), rules.deadlineMs, `${kind}: time`)
      t.equal(Number(submitSeconds) * 1000, rules.submitTimeoutMs, `${kind}: submit`)
      if (!states.startsWith('not shown'))
        t.same(states.split(', ').sort(), [...outwardStatuses(kind)].sort(), kind)
    }
  })
})

t.test('errors page agrees', async (t) => {
  const page = readText('docs/errors.md')

  /** The rows of the table whose head begins with these cells; marks of code taken off. */
  function table(head: string): string[][] {
    const lines = page.split('\n')
    const start = lines.findIndex((line) => line.startsWith(head))
    if (start < 0) throw new Error(`no table ${head}`)
    const end = lines.findIndex((line, index) => index > start && !line.startsWith('|'))
    return lines.slice(start + 2, end).map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim().replaceAll('`', '')),
    )
  }

  t.test('the catalog and the page list the same failures, named alike', async (t) => {
    const rows = table('| HTTP | code |')
    t.same(
      rows.map(([status, code, type, messagesType, generateStatus]) => ({
        code,
        status: Number(status),
        type,
        messagesType,
        generateStatus,
      })),
      Object.entries(FAILURES).map(([code, row]) => ({ code, ...row })),
    )
    for (const [, code, , , , when] of rows) t.match(when, /^[A-Z].*\.$/, `${code} says when`)
  })

  t.test("an upstream's status is named as the page has it", async (t) => {
    for (const [status = '', code, type] of table('| upstream status |'))
      t.same(upstreamStatusName(status === 'any other' ? 418 : Number(status)), { code, type }, status)
  })

  t.test('the messages of 401 are those of the page', async (t) => {
    t.same(Object.fromEntries(table('| reason |')), AUTH_MESSAGES)
  })
})

t.test('operating page agrees', async (t) => {
  // The operator's page names every setting, command and metric, and every field of the configuration file.
  const page = readText('docs/operating.md')

  /** Words between backticks, the commas and braces within them taken apart. */
  const named = new Set([...page.matchAll(/`([^`]+)`/g)].flatMap(([, code = '']) => code.split(/[{},.\s]+/)))

  t.test('every setting', async (t) => {
    for (const name of Object.keys(environment.shape)) t.ok(named.has(name), name)
  })

  t.test('every metric of ours', async (t) => {
    for (const name of GAUGE_NAMES) t.ok(named.has(name), name)
    const metrics = createMetrics('0', { hasStreams: true })
    for (const { name } of await metrics.snapshot())
      if (name.startsWith('tollgate_')) t.ok(named.has(name), name)
    for (const [name] of page.matchAll(/\btollgate_[a-z_]+/g))
      t.ok((await metrics.text()).includes(`# TYPE ${name} `), `${name} exists`)
  })

  t.test('every field of the configuration file', async (t) => {
    const groups = { configFile, modelEntry, pricing, capabilities, imageTraits, videoTraits, channelEntry }
    for (const [group, schema] of Object.entries(groups)) {
      const fields = Object.keys(schema.shape)
      t.not(fields.length, 0)
      for (const field of fields) t.ok(named.has(field), `${group}.${field}`)
    }
    for (const tiers of ['tiers', 'pixel_tiers'] as const) {
      const tier = pricing.shape[tiers].unwrap().element
      t.type(tier, z.ZodObject)
      for (const field of Object.keys(tier.shape)) t.ok(named.has(field), `${tiers}.${field}`)
    }
  })

  t.test('every media adapter', async (t) => {
    const [, table = ''] = page.split('**Media adapters**')
    const rows = table.split('\n\n')[1]?.split('\n') ?? []
    const protocols = rows.flatMap((row) =>
      [...row.split(' | ')[0]!.matchAll(/`([\w-]+)`/g)].map(([, name]) => name),
    )
    t.same(protocols.filter((name) => name !== 'protocol').sort(), [...MEDIA_PROTOCOLS].sort())
  })

  const [, commandTable = ''] = page.split('| command | does |\n|---|---|\n')
  const commandRows = (commandTable.split('\n\n')[0] ?? '')
    .split('\n')
    .map((row) => row.split(/(?<!\\) \| /)[0]!)

  /** The commands of a row: of `channels pause\|drain ID`, two; the first word after a name is an argument, or an option. */
  const commandsOf = (row: string): string[] =>
    [...row.matchAll(/`([^`]+)`/g)].flatMap(([, code = '']) => {
      const words = code.replaceAll('\\|', '|').split(' ')
      const end = words.findIndex((word) => !/^[a-z]/.test(word))
      const [group, ...rest] = end === -1 ? words : words.slice(0, end)
      if (group === undefined) return []
      return rest.length === 0
        ? [group]
        : rest
            .join(' ')
            .split('|')
            .map((name) => `${group} ${name}`)
    })

  t.test('every command, and no other', async (t) => {
    const byDefault = (words: string) => words.replace(/^channels list$/, 'channels')
    const tree = commandTree().map(({ words }) => byDefault(words.join(' ')))
    const listed = commandRows.flatMap(commandsOf)
    t.same([...new Set(listed)].sort(), tree.sort())
  })

  t.test('every option of a command is in a row that names the command', async (t) => {
    for (const { words, command } of commandTree()) {
      const name = words.join(' ')
      const rows = commandRows.filter((row) => commandsOf(row).includes(name)).join('\n')
      for (const { long, short } of command.options) {
        if (long === '--json') continue
        t.match(rows, new RegExp(`(${long}|${short})(?![\\w-])`), `${name} ${long}`)
      }
    }
  })
})

t.test('providers page agrees', async (t) => {
  // The page of providers has each preset in its table, and an example of each, and of each protocol of media, that works.
  const page = readText('docs/providers.md')
  const blocks = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text = '']) => text)
  const [media = ''] = blocks.filter((text) => text.startsWith('models:'))
  const examples = blocks.filter((text) => text !== media)
  /** Models of the examples: those of the page, and one of chat. */
  const MODELS = `${media}  - { id: sonata-large, pricing: { unit: 1M_tokens, input: "1", output: "2", cached_input: "0.1" } }\n`

  /** Kinds of work by the endpoint at which a model is called. */
  const WORKS: Readonly<Record<string, MediaWork>> = {
    images_generations: 'image',
    videos_generations: 'video',
    music_generations: 'music',
    audio_speech: 'speech',
  }

  /** Returns the configuration of the example and its models alone, its environment filled in. */
  function loaded(example: string) {
    const env = Object.fromEntries(
      [...example.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => [name, 'k-0123456789']),
    )
    const isServed = (line: string) => example.includes(`${/ id: ([\w-]+),/.exec(line)?.[1]}: `)
    const models = MODELS.split('\n').filter((line) => line === 'models:' || isServed(line))
    const text = `${models.join('\n')}\nchannels:\n${example.replace(/^/gm, '  ')}`
    return loadConfig({ path: 'c.yaml', digest: '', text, refusal: null }, env)
  }

  t.test('the table has each provider with its name and its protocols, the usual one first', async (t) => {
    const rows = [...page.split('## Access')[0]!.matchAll(/^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|/gm)]
    const listed = rows.map(([, provider = '', title, protocols = '']) => [
      provider,
      [title, [...protocols.matchAll(/`([^`]+)`/g)].map(([, name]) => name)],
    ])
    t.equal(listed.length, Object.keys(PRESETS).length)
    t.same(
      Object.fromEntries(listed),
      Object.fromEntries(
        Object.entries(PRESETS).map(([provider, preset]) => [provider, [preset.title, protocolsOf(preset)]]),
      ),
    )
  })

  t.test('each provider has an example of ten lines at most that is a sound channel', async (t) => {
    const shown = examples.flatMap((example) => /^ {2}provider: (\w+)$/m.exec(example)?.[1] ?? [])
    t.same([...new Set(shown)].sort(), Object.keys(PRESETS).sort())
    for (const example of examples) {
      t.ok(example.trimEnd().split('\n').length <= 10, example)
      const read = loaded(example)
      t.ok(
        read.ok,
        read.ok ? '' : read.problems.map(({ field, message }) => `${field}: ${message}`).join('\n'),
      )
      if (read.ok) t.same(read.warnings, [])
    }
  })

  t.test('each protocol of media of each provider has an example, whose models it makes', async (t) => {
    const shown = examples.flatMap((example) => {
      const read = loaded(example)
      if (!read.ok) throw new Error(example)
      const [channel] = read.config.channels
      const { provider, protocol, models } = channel!
      const works = worksOf(protocol)
      if (works.length === 0) return []
      for (const id of Object.keys(models)) {
        const { endpoint_type } = read.config.models.find((model) => model.id === id)!
        t.ok(works.includes(WORKS[endpoint_type!]!), `${provider} ${protocol}: ${id}`)
      }
      return [`${provider} ${protocol}`]
    })
    const made = Object.entries(PRESETS).flatMap(([provider, preset]) =>
      protocolsOf(preset)
        .filter((protocol) => worksOf(protocol).length > 0)
        .map((protocol) => `${provider} ${protocol}`),
    )
    t.same(shown.sort(), made.sort())
  })

  t.test('each job that is polled has a row that says what its adapter can do', async (t) => {
    const [, section = ''] = page.split('## Jobs of media\n')
    const rows = [...section.matchAll(/^\| `([\w-]+)` \| (yes|no) \| (yes|no) \|/gm)].map(
      ([, protocol = '', found, cancelled]) => [protocol, { found, cancelled }],
    )
    const said = (is: unknown): string => (is === undefined ? 'no' : 'yes')
    const polled = [...new Set(Object.values(PRESETS).flatMap(protocolsOf))].flatMap((protocol) => {
      const { follow = null } = mediaAdapterOf(protocol) ?? {}
      if (follow === null) return []
      return [[protocol, { found: said(follow.find), cancelled: said(follow.cancel) }]]
    })
    t.same(Object.fromEntries(rows), Object.fromEntries(polled))
  })

  t.test('the page of prices says how each provider of chat models reports usage', async (t) => {
    const head = '| family | what it reports in its own way |\n'
    const [, section = ''] = readText('docs/pricing.md').split(head)
    const table = section.split('\n\n')[0] ?? ''
    for (const provider of CHAT_PROVIDERS) t.match(table, `\`${provider}\``)
  })

  t.test('each field of each kind of access is named', async (t) => {
    const [, section = ''] = page.split('## Access without a key\n')
    for (const kind of channelAuth.options)
      for (const field of Object.keys(kind.shape)) t.match(section, `\`${field}\``)
  })

  t.test('a configuration of all examples starts, and names the keys that are missing', async (t) => {
    const text = `${MODELS}channels:\n${examples.join('').replace(/^/gm, '  ')}`
    const loaded = loadConfig({ path: 'c.yaml', digest: '', text, refusal: null }, {})
    if (!loaded.ok) throw new Error('the configuration is refused')
    t.equal(loaded.config.channels.length, examples.length)
    for (const { message } of loaded.warnings)
      t.match(
        message,
        /not set in the environment: [A-Z_]+_(API_KEY|CLIENT_SECRET|ACCESS_KEY|SECRET_KEY|CREDENTIALS)/,
      )
    t.equal(loaded.warnings.length, examples.length)
  })
})

t.test('security page agrees', async (t) => {
  // The page about security has a row for every setting that the public profile fills, with both values.
  type Group = Readonly<Record<string, unknown>>

  const isGroup = (value: unknown): value is Group => typeof value === 'object' && value !== null

  /** The values within a group, by the path that leads to each: `models[].after_client_leaves`. */
  function listLeaves(value: unknown, path = ''): readonly (readonly [path: string, value: unknown])[] {
    if (Array.isArray(value)) return value.flatMap((item) => listLeaves(item, `${path}[]`))
    if (!isGroup(value)) return [[path, value]]
    return Object.entries(value).flatMap(([name, item]) =>
      listLeaves(item, path === '' ? name : `${path}.${name}`),
    )
  }

  const GIVEN = { profile: 'public', models: [{ capabilities: { reasoning: true } }] }

  const page = readText('docs/security.md')
  const section = page.split('## In front of strangers')[1]?.split('\n## ')[0] ?? ''
  const HEAD = '| setting | without a profile | `profile: public` | what a client sees |\n|---|---|---|---|\n'
  const rows = (section.split(HEAD)[1]?.split('\n\n')[0] ?? '')
    .split('\n')
    .map((line) => line.slice(2, -2).split(' | '))

  const inWords = (value: unknown): string =>
    value === null || value === undefined ? 'none' : `\`${value}\``

  t.test(
    'every setting that the public profile fills is a row, with its default and its value',
    async (t) => {
      const given = new Set(listLeaves(GIVEN).map(([path]) => path))
      const filled = listLeaves(withProfile(GIVEN)).filter(([path]) => !given.has(path))
      t.not(filled.length, 0)
      const defaults = new Map(listLeaves(configFile.parse({})))
      for (const [path, value] of filled) {
        const row = rows.find(([setting]) => setting?.startsWith(`\`${path}\``))
        // A model that does not set a field has that of the file.
        const byDefault = defaults.get(path.replace('models[].', ''))
        t.match(row?.slice(1, 3), [inWords(byDefault), inWords(value)], path)
        t.ok(row?.[3], `${path} says what a client sees`)
      }
    },
  )

  t.test('every limit of a collection is a row, with its number', async (t) => {
    for (const [limit, most] of Object.entries(COLLECTION_LIMITS))
      t.ok(page.includes(`\n| \`${limit}\` | ${most.toLocaleString('en')} | `), limit)
  })
})

t.test('notifications page agrees', async (t) => {
  // The page of notifications has every type of event, and the fields that events have when they are recorded.
  const namesIn = (cell: string): string[] =>
    [...cell.replace(/\([^)]*\)/g, '').matchAll(/`([\w.]+)`/g)].map(([, name = '']) => name)

  /** Fields by type, as the page has them. */
  const FIELDS = new Map(
    readText('docs/notifications.md')
      .split('\n## Webhooks')[0]!
      .split('\n')
      .filter((line) => /^\| `\w+\.\w+`/.test(line))
      .flatMap((line) => {
        const [types = '', , data = ''] = line.slice(2, -2).split(' | ')
        return namesIn(types).map((type) => [type, namesIn(data).sort()] as const)
      }),
  )

  t.test('the page and the code have the same types', async (t) => {
    t.same([...FIELDS.keys()].sort(), [...EVENT_TYPES, TEST_EVENT].sort())
  })

  t.test('each event has the fields of the page', async (t) => {
    const { database, sql } = await startDatabase(t)
    const accountId = await newAccount(database, 100n)
    await database.alerts.setLowBalance(accountId, 50n * ONE_CREDIT)
    await database.budgets.put({
      accountId,
      scope: 'account',
      subjectId: accountId,
      amount: 100n * ONE_CREDIT,
      period: 'day',
      timezone: 'UTC',
    })
    const made = await hold(database, accountId, 100n)
    await settle(database, made, 40n)
    const spent = { request_id: newId('req'), cost: String(200n * ONE_CREDIT), submitted_at: Date.now() }
    await database.bookings.book([settlement(accountId, spent)])

    const paid = await newPayment(database, accountId)
    await database.payments.takeNotice(paymentNotice(paid))
    const failed = await newPayment(database, accountId)
    await database.payments.takeNotice(
      paymentNotice(failed, { event: 'failed', failureCode: 'card_declined' }),
    )
    const confirming = await newPayment(database, accountId)
    await database.payments.takeNotice(paymentNotice(confirming, { event: 'confirmation_needed' }))

    const { key } = await database.keys.create({
      accountId,
      name: 'a key',
      expiresAt: new Date(Date.now() + 12 * 60 * 60 * 1000),
    })
    await sql`UPDATE api_keys SET created_at = created_at - interval '30 days' WHERE id = ${key.id}`
    await database.keys.recordExpiring()
    await database.keys.revoke(key.id)

    const breaker = (isOpen: boolean) => database.alerts.recordBreakers([{ channelId: 'primary', isOpen }])
    await breaker(true)
    await breaker(false)
    await sql`UPDATE channel_breakers SET closed_since = closed_since - interval '2 minutes'`
    await breaker(false)
    await sql`
    INSERT INTO journals (id, node, directory, seen_at)
    VALUES ('journal-1', 'node-1', '/data/journal', now() - interval '1 hour')`
    await database.journals.recordSilent()

    const url = 'https://receiver.example.com/hook'
    const { endpoint } = await database.webhooks.create({
      kind: 'webhook',
      accountId,
      url,
      description: '',
      events: null,
    })
    const { id } = await database.webhooks.test({ id: endpoint.id, accountId })
    await sql`UPDATE webhook_endpoints SET failing_since = now() - interval '6 days' WHERE id = ${endpoint.id}`
    const deliveries = await database.deliveries.read([id])
    const attempt = {
      at: new Date().toISOString(),
      duration_ms: 1,
      status: 500,
      error: 'The receiver answered 500.',
      headers: null,
      answer: null,
    }
    await database.deliveries.endAttempts(
      deliveries.map((delivery) => ({ delivery, attempt, state: 'failed' as const, pauseMs: 0 })),
    )

    const rows = await sql<{ type: string; fields: string[] }[]>`
    SELECT type, array_agg(DISTINCT field) AS fields FROM events, jsonb_object_keys(data) AS field GROUP BY type`
    const recorded = new Map(rows.map(({ type, fields }) => [type, fields.sort()]))
    for (const [type, fields] of FIELDS) {
      // The end of a task has the same fields, however it ended.
      const found = recorded.get(type === 'task.failed' ? 'task.succeeded' : type) ?? []
      if (type !== 'topup.failed') t.same(found, fields, type)
      else
        t.same(
          found.filter((field) => !fields.includes(field)),
          [],
          `${type} has no other fields`,
        )
      t.ok(found.length > 0, `${type} was recorded`)
    }
  })
})
