/** The operator's page names every setting, every metric, and every field of the configuration file. */
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
import { GAUGE_NAMES } from '../../src/telemetry/gauges.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
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
