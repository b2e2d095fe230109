/** The operator's page names every setting, command and metric, and every field of the configuration file. */

import t from 'tap'
import { z } from 'zod'
import {
  capabilities,
  channelEntry,
  imageTraits,
  modelEntry,
  pricing,
  videoTraits,
} from '../../schemas/config/catalog.ts'
import { configFile } from '../../schemas/config/file.ts'
import { environment } from '../../schemas/config/settings.ts'
import { MEDIA_PROTOCOLS } from '../../src/channels/media/registry.ts'
import { GAUGE_NAMES } from '../../src/telemetry/gauges.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { commandTree } from '../src/cli/support.ts'
import { readText } from '../support/source-files.ts'

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
