/** Pages agree with the code. */
import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import t from 'tap'
import type { MediaWork } from '../../schemas/media/job.ts'
import { ONE_CREDIT } from '../../schemas/money.ts'
import { listWorks } from '../../src/channels/media/registry.ts'
import { PRESETS } from '../../src/channels/providers/presets.ts'
import { listProtocols } from '../../src/channels/providers/provider.ts'
import { DEMONSTRATION_FILE } from '../../src/config/demonstration.ts'
import { loadConfig, loadConfigFile } from '../../src/config/load.ts'
import { newId } from '../../src/core/keys/ids.ts'
import { findBannerModel, makeFirstCallBody } from '../../src/server/supervisor/banner.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { newPayment, paymentNotice } from '../src/postgres/payments/support.ts'
import { newAccount, settlement, startDatabase } from '../src/postgres/support.ts'
import { hold, settle } from '../src/postgres/tasks/support.ts'
import { filesUnder, ROOT, readText } from '../support/source-files.ts'

t.test('pages are true', async (t) => {
  // What the pages name is there: files, commands of npm, dependencies, fields of the examples. `citations-resolve.test.ts`
  // checks links to headings of other pages.
  const PAGES = [
    'README.md',
    'CHANGELOG.md',
    'simulator/README.md',
    ...filesUnder('docs').filter((path) => path.endsWith('.md')),
  ]
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
      for (const [, script = ''] of text.matchAll(/npm run (?:-s )?([a-z:]+[a-z])/g))
        t.ok(Object.hasOwn(scripts, script), `${page}: npm run ${script}`)
    }
  })

  t.test('the pages name only metrics that exist', async (t) => {
    const served = await createMetrics('0', { hasStreams: true }).text()
    const named = PAGES.flatMap((page) => readText(page).match(/\btollgate_[a-z_]+_[a-z]+(?=`)/g) ?? [])
    const metrics = named.filter((name) => name !== 'tollgate_owner')
    t.ok(metrics.length > 10)
    for (const name of metrics) t.match(served, `# TYPE ${name} `, name)
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
    const printed = makeFirstCallBody(findBannerModel(result.config.models, served)!)
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

t.test('providers page agrees', async (t) => {
  // The page of providers has an example of each preset, and of each of its protocols of media, that works.
  const page = readText('docs/providers.md')
  const [media = '', channels = ''] = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text = '']) => text)
  const examples = channels.split(/^(?= {2}- )/m).slice(1)
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
    const models = MODELS.split('\n').filter((line) => /^\w/.test(line) || isServed(line))
    const text = `${models.join('\n')}\nchannels:\n${example}`
    return loadConfig({ path: 'c.yaml', digest: '', text, refusal: null }, env)
  }

  t.test('each provider has an example that is a sound channel', async (t) => {
    const shown = examples.flatMap((example) => /, provider: (\w+),/.exec(example)?.[1] ?? [])
    t.same([...new Set(shown)].sort(), Object.keys(PRESETS).sort())
    for (const example of examples) {
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
      const works = listWorks(protocol)
      if (works.length === 0) return []
      for (const id of Object.keys(models)) {
        const { endpoint_type } = read.config.models.find((model) => model.id === id)!
        t.ok(works.includes(WORKS[endpoint_type!]!), `${provider} ${protocol}: ${id}`)
      }
      return [`${provider} ${protocol}`]
    })
    const made = Object.entries(PRESETS).flatMap(([provider, preset]) =>
      listProtocols(preset)
        .filter((protocol) => listWorks(protocol).length > 0)
        .map((protocol) => `${provider} ${protocol}`),
    )
    t.same(shown.sort(), made.sort())
  })

  t.test('a configuration of all examples starts, and names the keys that are missing', async (t) => {
    const text = `${MODELS}${channels}`
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

t.test('notifications page agrees', async (t) => {
  // The page of notifications has the fields that events have when they are recorded.
  const namesIn = (cell: string): string[] =>
    [...cell.replace(/\([^)]*\)/g, '').matchAll(/`([\w.]+)`/g)].map(([, name = '']) => name)

  /** Fields by type, as the page has them. */
  const FIELDS = new Map(
    readText('docs/notifications.md')
      .split('\n## Webhooks')[0]!
      .split('\n')
      .filter((line) => /^\| `\w+\.\w+`/.test(line))
      .flatMap((line) => {
        const [types = '', , , data = ''] = line.slice(2, -2).split(' | ')
        return namesIn(types).map((type) => [type, namesIn(data).sort()] as const)
      }),
  )

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
