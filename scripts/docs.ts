/**
 * Writes the tables of `docs` that must agree with the code: `npm run docs`. A line such as `<!-- table: settings -->` stands
 * above each. Rows, their order and most cells come from the code. A cell that is prose is kept from the page, found by the
 * first cell of its row; in a new row it is empty, and `test/docs/tables.test.ts` asks for it.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import { CUSTOMER_COLUMNS, findColumn } from '../schemas/call-log/columns.ts'
import { CLIENTS, type SettingsFile } from '../schemas/clients.ts'
import { COLLECTION_LIMITS } from '../schemas/collection-limits.ts'
import { capabilities, channelEntry, modelEntry, pricing } from '../schemas/config/catalog.ts'
import { channelAuth } from '../schemas/config/channel-auth.ts'
import { configFile } from '../schemas/config/file.ts'
import { environment } from '../schemas/config/settings.ts'
import { AUTH_MESSAGES, FAILURES, nameUpstreamStatus } from '../schemas/failure.ts'
import { printCredits } from '../schemas/money.ts'
import { EMAILED_EVENTS, EVENT_TYPES, TEST_EVENT } from '../schemas/notifications/event.ts'
import { TASK_KINDS } from '../schemas/tasks/kinds.ts'
import { listOutwardStatuses } from '../schemas/tasks/list.ts'
import { TASK_RULES } from '../schemas/tasks/task.ts'
import { findMediaAdapter, listWorks, MEDIA_PROTOCOLS } from '../src/channels/media/registry.ts'
import { PRESETS } from '../src/channels/providers/presets.ts'
import { listProtocols } from '../src/channels/providers/provider.ts'
import { withProfile } from '../src/config/profile.ts'
import { fillFields } from '../src/core/clients/settings.ts'
import { commandTree } from '../test/src/cli/support.ts'
import { filesUnder, ROOT, readText } from '../test/support/source-files.ts'
import { type Cell, code, RECORDED, splitCells, type Table } from './recorded-tables.ts'

const list = (words: readonly string[]): string => words.map(code).join(', ')
const count = (value: number): string => value.toLocaleString('en-US')

/** Wrappers that say nothing about the form of a value. */
function unwrap(schema: z.ZodType): z.ZodType {
  const { type, innerType, in: input } = schema.def as { type: string; innerType?: z.ZodType; in?: z.ZodType }
  if (['optional', 'prefault', 'nullable', 'default'].includes(type)) return unwrap(innerType!)
  return type === 'pipe' ? unwrap(input!) : schema
}

function printDefault(value: unknown): string {
  if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) return 'none'
  if (typeof value === 'bigint') return code(`"${printCredits(value)}"`)
  if (Array.isArray(value)) return list(value)
  return typeof value === 'object' ? 'none' : code(String(value))
}

/** The default of a field; null where the page says what an absent or empty one means. */
function defaultCell(schema: z.ZodType): Cell {
  const parsed = schema.safeParse(undefined)
  if (!parsed.success) return 'required'
  return parsed.data === undefined || parsed.data === null || parsed.data === ''
    ? null
    : printDefault(parsed.data)
}

/** A field whose parts have rows is a group and has no row; `single` names the groups that get one row. */
function listFieldRows(
  shape: Readonly<Record<string, z.ZodType>>,
  single: readonly string[],
  path = '',
): Cell[][] {
  return Object.entries(shape).flatMap(([name, schema]): Cell[][] => {
    const inner = unwrap(schema)
    return inner instanceof z.ZodObject && !single.includes(name)
      ? listFieldRows(inner.shape, single, `${path}${name}.`)
      : [[code(path + name), null, defaultCell(schema)]]
  })
}

const FIELDS = ['field', 'meaning', 'default']

/** The leaves of a value by their paths. */
function listLeaves(value: unknown, path = ''): (readonly [string, unknown])[] {
  if (Array.isArray(value)) return value.flatMap((item) => listLeaves(item, `${path}[]`))
  if (typeof value !== 'object' || value === null) return [[path, value]]
  return Object.entries(value).flatMap(([name, item]) =>
    listLeaves(item, path === '' ? name : `${path}.${name}`),
  )
}

/** What `profile: public` sets, with what holds without it. */
function listPublicProfile(): Cell[][] {
  const given = { profile: 'public', models: [{ capabilities: { reasoning: true } }] }
  const paths = new Set(listLeaves(given).map(([path]) => path))
  const defaults = new Map(listLeaves(configFile.parse({})))
  return listLeaves(withProfile(given))
    .filter(([path]) => !paths.has(path))
    .map(([path, value]) => [
      code(path),
      printDefault(defaults.get(path.replace('models[].', ''))),
      printDefault(value),
      null,
    ])
}

/** The commands by their first word. */
function listCommandGroups(): Cell[][] {
  const groups = Map.groupBy(commandTree(), ({ words }) => words[0]!)
  return [...groups].map(([name, commands]) => {
    const below = commands.flatMap(({ words }) => (words.length === 1 ? [] : [words.slice(1).join(' ')]))
    return [code(name), list(below.sort()) || '–', null]
  })
}

/** Clients whose settings the page shows as a file. */
const SHOWN_CLIENTS = ['claude', 'codex']
const EXAMPLE = { base_url: 'http://127.0.0.1:8080', key: 'KEY', model: 'MODEL' }

/** Returns a settings file in one line: its name, then each field with its value. */
function describeSettings(folder: string, file: SettingsFile): string {
  const { names, format, fields } = fillFields(file, EXAMPLE)
  const path = ['~', folder, names.at(-1)!].filter((part) => part !== '').join('/')
  const sign = format === 'env' ? '=' : ': '
  const assigned = fields
    .filter(({ keeps }) => !keeps)
    .map(({ path, value }) => code(path.join('.').replace(/\.name=\w+/, '[]') + sign + value))
  return `${format === 'by hand' ? names[0] : code(path)}: ${assigned.join(', ')}`
}

const MINUTE_MS = 60_000

function printDuration(ms: number): string {
  if (ms % MINUTE_MS !== 0 || ms < 10 * MINUTE_MS) return `${ms / 1000} s`
  return ms % (60 * MINUTE_MS) === 0 ? `${ms / MINUTE_MS / 60} h` : `${ms / MINUTE_MS} min`
}

const isSupported = (part: unknown): string => (part === undefined ? 'no' : 'yes')

const UPSTREAM_STATUSES = [400, 401, 403, 404, 422, 429]
/** Stands for every other status. */
const OTHER_STATUS = 418

const TABLES: Readonly<Record<string, Table>> = {
  ...RECORDED,
  'call-columns': {
    head: ['field', 'kind', 'rule'],
    rows: CUSTOMER_COLUMNS.map((name) => [code(name), findColumn(name).kind, null]),
    isPartial: true,
  },
  clients: {
    head: ['client', 'name', 'protocol', 'settings', 'note'],
    rows: Object.entries(CLIENTS)
      .filter(([name]) => !SHOWN_CLIENTS.includes(name))
      .map(([name, { title, protocol, folder, files }]) => [
        title,
        code(name),
        protocol,
        files.map((file) => describeSettings(folder.default, file)).join('; '),
        null,
      ]),
  },
  tasks: {
    head: ['kind', 'id', 'statuses that clients see', 'ends within', 'one submit', 'all submits'],
    rows: TASK_KINDS.map((kind) => {
      const { idPrefix, deadlineMs, submitTimeoutMs, ladderTimeoutMs } = TASK_RULES[kind]
      const times = [deadlineMs, submitTimeoutMs, ladderTimeoutMs].map(printDuration)
      return [kind, code(`${idPrefix}_`), listOutwardStatuses(kind).join(', '), ...times]
    }),
  },
  failures: {
    head: ['HTTP', 'code', 'type', 'messages type', 'generate-content status', 'when'],
    rows: Object.entries(FAILURES).map(([name, { status, type, messagesType, generateStatus }]) => [
      String(status),
      ...[name, type, messagesType, generateStatus].map(code),
      null,
    ]),
  },
  'upstream-statuses': {
    head: ['upstream status', 'code', 'type'],
    rows: [...UPSTREAM_STATUSES, OTHER_STATUS].map((status) => {
      const { code: name, type } = nameUpstreamStatus(status)
      return [status === OTHER_STATUS ? 'any other' : String(status), code(name), code(type)]
    }),
  },
  'messages-of-401': { head: ['reason', 'message'], rows: Object.entries(AUTH_MESSAGES) },
  settings: {
    head: ['variable', 'meaning', 'default'],
    rows: Object.entries(environment.shape).map(([name, schema]) => [code(name), null, defaultCell(schema)]),
  },
  commands: { head: ['command', 'words behind it', 'does'], rows: listCommandGroups() },
  configuration: {
    head: FIELDS,
    rows: listFieldRows(configFile.omit({ models: true, channels: true }).shape, ['payments']),
  },
  models: {
    head: FIELDS,
    rows: listFieldRows(modelEntry.shape, ['capabilities', 'pricing']).map((row) =>
      row[0] === '`capabilities`' ? [row[0], list(Object.keys(capabilities.shape)), 'all `false`'] : row,
    ),
  },
  pricing: { head: FIELDS, rows: listFieldRows(pricing.shape, ['with_audio']) },
  channels: { head: FIELDS, rows: listFieldRows(channelEntry.shape, []) },
  'media-adapters': {
    head: [
      '`protocol`',
      'makes',
      '`base_url` ends in',
      'found after a lost answer',
      'cancelled while queued',
      'length of a video that is charged',
    ],
    rows: MEDIA_PROTOCOLS.map((name) => {
      const { follow = null } = findMediaAdapter(name) ?? {}
      const makesVideos = listWorks(name).includes('video')
      return [
        code(name),
        listWorks(name).join(', '),
        null,
        follow === null ? '–' : isSupported(follow.find),
        follow === null ? '–' : isSupported(follow.cancel),
        makesVideos ? null : '–',
      ]
    }),
  },
  providers: {
    head: ['provider', 'name', 'protocols', 'note'],
    rows: Object.entries(PRESETS).map(([name, preset]) => [
      code(name),
      preset.title,
      list(listProtocols(preset)),
      null,
    ]),
    mayBeEmpty: true,
  },
  access: {
    head: ['`type`', 'fields, with their defaults', 'what a request carries'],
    rows: channelAuth.options.map(({ shape: { type, ...fields } }) => [
      code(type.value),
      Object.entries(fields)
        .map(([name, schema]) => {
          const cell = defaultCell(schema as z.ZodType)
          return cell === 'required' ? code(name) : `${code(name)} (${cell ?? 'optional'})`
        })
        .join(', '),
      null,
    ]),
  },
  'public-profile': {
    head: ['setting', 'without a profile', '`profile: public`', 'what a client sees'],
    rows: listPublicProfile(),
  },
  collections: {
    head: ['limit', 'at most', 'counted'],
    rows: Object.entries(COLLECTION_LIMITS).map(([name, most]) => [code(name), count(most), null]),
    mayBeEmpty: true,
  },
  events: {
    head: ['type', 'email', 'when', '`data`'],
    rows: [...EVENT_TYPES, TEST_EVENT].map((type) => [
      code(type),
      EMAILED_EVENTS.some((emailed) => emailed === type) ? 'yes' : 'no',
      null,
      null,
    ]),
  },
}

export const PAGES = filesUnder('docs').filter((path) => path.endsWith('.md'))

const MARKED = /^<!-- table: ([\w-]+) -->\n((?:\|.*\n)*)/gm

function renderTable(name: string, written: string): string {
  const table = TABLES[name]
  if (table === undefined) throw new Error(`There is no table "${name}" in scripts/docs.ts.`)
  const { head, rows, isPartial } = table
  // A failure is found by its code, since several have one status.
  const key = head[0] === 'HTTP' ? 1 : 0
  const [columns = [], , ...lines] = written.trimEnd().split('\n').map(splitCells)
  const prose = new Map(lines.map((cells) => [cells[key], cells]))
  const full = rows.map((row) => {
    const kept = prose.get(row[key] ?? '')
    return row.map((cell, index) => cell ?? kept?.[columns.indexOf(head[index]!)] ?? '')
  })
  const shown = isPartial ? full.filter((cells) => !cells.includes('')) : full
  return [head, ...shown]
    .map((cells) => `| ${cells.join(' | ')} |\n`)
    .toSpliced(1, 0, `|${head.map(() => '---').join('|')}|\n`)
    .join('')
}

/** Returns the page with its tables as the code has them. */
export const renderPage = (text: string): string =>
  text.replace(
    MARKED,
    (_, name: string, written: string) => `<!-- table: ${name} -->\n${renderTable(name, written)}`,
  )

/** Returns the rows of the page's tables whose prose is not written yet. */
export const findEmptyRows = (text: string): string[] =>
  [...text.matchAll(MARKED)]
    .filter(([, name = '']) => !TABLES[name]?.mayBeEmpty)
    .flatMap(([, , written = '']) => written.trimEnd().split('\n').slice(2))
    .filter((row) => splitCells(row).includes(''))

/** Returns the names of tables that no page has. */
export const findAbsentTables = (texts: readonly string[]): string[] =>
  Object.keys(TABLES).filter((name) => !texts.some((text) => text.includes(`<!-- table: ${name} -->`)))

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  for (const page of PAGES) writeFileSync(join(ROOT, page), renderPage(readText(page)))
