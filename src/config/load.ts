/** Reads `tollgate.yaml`: the whole configuration, or every problem with it at once. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { CHAT_PROTOCOLS, channelEntry, modelEntry } from '../../schemas/config/catalog.ts'
import { AUTH_SECRETS } from '../../schemas/config/channel-auth.ts'
import { type ConfigFile, configFile } from '../../schemas/config/file.ts'
import { MEDIA_PROTOCOLS } from '../channels/media/registry.ts'
import { findVendorTools, PRESETS, QUIRKS, withPresets } from '../channels/providers/presets.ts'
import { lacksCacheHitPrice, listCacheWritingModels } from '../core/pricing/cache-hits.ts'
import { hasAccess } from '../core/routing/channel-access.ts'
import { checkChannels } from './channel-checks.ts'
import { checkCosts, findMissingCosts } from './cost-checks.ts'
import { toProblems } from './issues.ts'
import { checkModels, collectNames, type Finding } from './model-checks.ts'
import type { Problem } from './problem.ts'
import { withProfile } from './profile.ts'
import { salvage } from './salvage.ts'
import { type Environment, readSource, type Source } from './source.ts'

const MAX_CONFIG_FILE_BYTES = 8 * 1024 * 1024

/** The schemas with the names that the providers bring. */
const knownChannel = channelEntry.extend({
  provider: z.enum(Object.keys(PRESETS)).optional(),
  protocol: z.enum([...CHAT_PROTOCOLS, ...MEDIA_PROTOCOLS]),
  quirks: z.array(z.enum(QUIRKS)).default([]),
})
const knownFile = configFile.extend({ channels: z.array(knownChannel).default([]) })

type TextResult =
  | {
      readonly ok: true
      readonly config: ConfigFile
      /** The `${NAME}`s that the file mentions. */
      readonly variables: ReadonlySet<string>
      /** Probable mistakes that do not prevent the use. */
      readonly warnings: readonly Problem[]
    }
  | { readonly ok: false; readonly problems: readonly Problem[] }

export type LoadResult = TextResult & {
  /** Distinguishes one content of the file from another; empty when it could not be read. */
  readonly digest: string
}

/** Content of a file; `refusal` is the reason why it is no configuration, whatever its text. */
interface ConfigText {
  readonly path: string
  /** As in `LoadResult`. */
  readonly digest: string
  readonly text: string
  readonly refusal: string | null
}

/** Without its channels a configuration can be read where variables are unset that only the service has. */
export type ConfigParts = 'all' | 'all but channels'

/** Reads the file: cheap compared with making a configuration of it. */
export function readConfigText(path: string, maxBytes = MAX_CONFIG_FILE_BYTES): ConfigText {
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const refusal = code === 'ENOENT' ? 'There is no such file.' : `It cannot be read: ${message}.`
    return { path, digest: '', text: '', refusal }
  }
  const digest = createHash('sha256').update(bytes).digest('hex')
  if (bytes.length > maxBytes) return { path, digest, text: '', refusal: `It is over ${maxBytes} bytes.` }
  const text = bytes.toString('utf8')
  // Some editors empty a file before they write it: that must not pass for a catalog without models.
  return { path, digest, text, refusal: text.trim() === '' ? 'The file is empty.' : null }
}

/**
 * Reads the configuration. `${NAME}` is replaced from `env`, by an empty text where it is unset; a channel whose
 * `api_key` is empty after that stays in the configuration and is off. Never throws for the content of a file.
 */
export function loadConfig(
  { path, digest, text, refusal }: ConfigText,
  env: Environment,
  parts: ConfigParts = 'all',
): LoadResult {
  if (refusal === null) return { ...loadConfigText(text, path, env, parts), digest }
  return { ok: false, digest, problems: [{ file: path, line: 1, column: 1, field: '', message: refusal }] }
}

export const loadConfigFile = (path: string, env: Environment, parts: ConfigParts = 'all'): LoadResult =>
  loadConfig(readConfigText(path), env, parts)

function loadConfigText(text: string, file: string, env: Environment, parts: ConfigParts): TextResult {
  const read = readSource(text, file, env)
  const source = parts === 'all' ? { ...read, value: withPresets(read.value) } : removeChannels(read)
  if (source.problems.length > 0) return { ok: false, problems: source.problems }
  const parsed = knownFile.safeParse(withProfile(source.value))
  const formal = parsed.success ? [] : toProblems(parsed.error.issues, knownFile, source)
  // A malformed field counts as absent in the cross checks, so that it is reported once.
  const malformed = new Set(formal.map(({ field }) => field))
  const problems = [...formal, ...crossChecks(source).filter(({ field }) => !malformed.has(field))]
  if (parsed.success && problems.length === 0)
    return {
      ok: true,
      config: inheritSettings(parsed.data),
      variables: source.variables,
      warnings: parts === 'all' ? findWarnings(source, parsed.data, read.value) : [],
    }
  problems.sort((a, b) => a.line - b.line || a.column - b.column)
  return { ok: false, problems }
}

/** Fills what channels leave to the installation. */
const inheritSettings = (config: ConfigFile): ConfigFile => ({
  ...config,
  channels: config.channels.map(
    ({
      hide_auth_errors = config.hide_auth_errors,
      upstream_errors = config.upstream_errors,
      ...channel
    }) => ({ ...channel, hide_auth_errors, upstream_errors }),
  ),
})

function removeChannels(source: Source): Source {
  const { value } = source
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return source
  const { channels, ...rest } = value as { channels?: unknown }
  return { ...source, value: rest }
}

function crossChecks(source: Source): Problem[] {
  const { models, channels } = (source.value ?? {}) as { models?: unknown; channels?: unknown }
  const soundModels = toList(models).map((entry) => salvage(modelEntry, entry))
  const soundChannels = toList(channels).map((entry) => salvage(knownChannel, entry))
  const names = collectNames(soundModels)
  const findings = [
    ...checkModels(soundModels, names),
    ...checkChannels(soundChannels, names),
    ...checkCosts(soundChannels, soundModels),
  ]
  return placeFindings(source, findings)
}

const placeFindings = (source: Source, findings: readonly Finding[]): Problem[] =>
  findings.map(({ path, message, atKey }) =>
    atKey ? source.toProblemWithKey(path, message) : source.toProblem(path, message),
  )

/** @param written the file as it is, without what presets fill in */
const findWarnings = (source: Source, config: ConfigFile, written: unknown): Problem[] =>
  [
    ...placeFindings(source, [
      ...findUnservedModels(config),
      ...findAssumedCacheHits(config),
      ...findMissingCosts(config),
      ...findToolsWithoutPrice(config, written),
    ]),
    ...findChannelsWithoutKey(source, config),
  ].sort((a, b) => a.line - b.line)

/** Finds channels that are off because a variable has no value. */
function findChannelsWithoutKey(source: Source, { channels }: ConfigFile): Problem[] {
  return channels.flatMap((channel, index): Problem[] => {
    if (hasAccess(channel)) return []
    const { auth } = channel
    const fields =
      auth === undefined ? [['api_key']] : AUTH_SECRETS[auth.type].map((field) => ['auth', field])
    const paths = fields.map((field) => ['channels', index, ...field])
    const first = paths.find((path) => source.findUnset(path).length > 0)
    if (first === undefined) return []
    const unset = paths.flatMap((path) => source.findUnset(path))
    return [source.toProblem(first, `The channel is off: not set in the environment: ${unset.join(', ')}.`)]
  })
}

/** Finds models without a channel. A channel that is off counts: its key comes from the environment. */
function findUnservedModels({ models, channels }: ConfigFile): Finding[] {
  const served = new Set(channels.flatMap((channel) => Object.keys(channel.models)))
  return models.flatMap(({ id, callable }, index): Finding[] =>
    callable && !served.has(id)
      ? [
          {
            path: ['models', index, 'id'],
            message: `No channel serves "${id}": calls are refused. callable: false lists it without a channel.`,
          },
        ]
      : [],
  )
}

/** Finds models whose cache hits have no price in a family with cache writes: they are billed at a tenth of the input. */
function findAssumedCacheHits({ models, channels }: ConfigFile): Finding[] {
  const writesCache = listCacheWritingModels(models, channels)
  const message =
    'has no cached_input: cache hits are billed at input x 0.1, because the family has cache writes. Set cached_input for another price.'
  return models.flatMap((model, index): Finding[] =>
    model.pricing !== undefined && lacksCacheHitPrice(model.pricing) && writesCache(model)
      ? [{ path: ['models', index, 'pricing'], message, atKey: true }]
      : [],
  )
}

/** Finds channels whose vendor's tools are off because they have a price in dollars only. */
function findToolsWithoutPrice({ channels }: ConfigFile, written: unknown): Finding[] {
  const own = toList((written as { channels?: unknown }).channels) as readonly { tools?: unknown }[]
  return channels.flatMap((channel, index): Finding[] => {
    const vendors = own[index]?.tools === undefined ? (findVendorTools(channel) ?? {}) : {}
    const off = Object.keys(vendors).filter((tool) => !channel.tools.some((name) => name === tool))
    if (off.length === 0) return []
    const message = `Off, because a dollar has no price in credits: ${off.join(', ')}. Set credits_per_dollar, or give the models prices for these tools.`
    return [{ path: ['channels', index, 'provider'], message }]
  })
}

const toList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
