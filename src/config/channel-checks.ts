/** Checks a channel beyond the form of its fields. See docs/operating.md, "The configuration file". */
import { CHAT_PROTOCOLS, type ChannelEntry, type ChannelProtocol } from '../../schemas/config/catalog.ts'
import { isOlderAzure } from '../channels/providers/azure/azure.ts'
import { VERTEX_BASE } from '../channels/providers/vertex/vertex.ts'
import { suggestion } from '../core/suggest.ts'
import type { Finding, SoundModel } from './model-checks.ts'
import type { Salvaged } from './salvage.ts'

export type SoundChannel = Salvaged<ChannelEntry>

/** Every name of the catalog: ids, and aliases with their ids. */
export interface CatalogNames {
  readonly ids: ReadonlySet<string>
  readonly aliases: ReadonlyMap<string, string>
}

export function namesOf(models: readonly SoundModel[]): CatalogNames {
  const aliases = models.flatMap(({ id, aliases = [] }) =>
    id === undefined ? [] : aliases.map((a) => [a, id] as const),
  )
  return { ids: new Set(models.flatMap(({ id }) => id ?? [])), aliases: new Map(aliases) }
}

export function checkChannels(channels: readonly SoundChannel[], names: CatalogNames): Finding[] {
  const owners = new Map<string, number>()
  return channels.flatMap((channel, index): Finding[] => {
    const findings = [
      ...checkBaseUrl(channel),
      ...checkModelNames(channel, names),
      ...checkHeaders(channel),
      ...checkKeys(channel),
      ...checkAuth(channel),
      ...checkStorage(channel),
    ]
    const owner = channel.id === undefined ? undefined : owners.get(channel.id)
    if (owner !== undefined)
      findings.push({ path: ['id'], message: `"${channel.id}" is already the id of channels[${owner}].` })
    else if (channel.id !== undefined) owners.set(channel.id, index)
    return findings.map((finding) => ({ ...finding, path: ['channels', index, ...finding.path] }))
  })
}

function checkModelNames({ models = {} }: SoundChannel, { ids, aliases }: CatalogNames): Finding[] {
  return Object.keys(models).flatMap((name): Finding[] => {
    if (ids.has(name)) return []
    const id = aliases.get(name)
    const message =
      id === undefined
        ? `There is no model "${name}" in the catalog.${suggestion(name, ids)}`
        : `"${name}" is an alias: name the model by its id, "${id}".`
    return [{ path: ['models', name], message, atKey: true }]
  })
}

const isChat = (protocol: ChannelProtocol): boolean =>
  (CHAT_PROTOCOLS as readonly ChannelProtocol[]).includes(protocol)

function checkKeys({ protocol, api_keys: keys = [] }: SoundChannel): Finding[] {
  if (keys.length === 0 || protocol === undefined || isChat(protocol)) return []
  const message = 'goes with chat protocols only: a job is polled with the key that submitted it.'
  return [{ path: ['api_keys'], message, atKey: true }]
}

/** Fields of keys beside `auth`, and kinds of it that need the whole request at hand. */
function checkAuth({ protocol, auth, api_key: key = '', api_keys: keys = [] }: SoundChannel): Finding[] {
  if (auth?.type === undefined) return []
  const findings: Finding[] = []
  if (key !== '' || keys.length > 0)
    findings.push({
      path: ['auth'],
      message: 'takes the place of a key: leave out api_key and api_keys.',
      atKey: true,
    })
  if (auth.type === 'aws-sigv4') {
    if (protocol !== undefined && !isChat(protocol))
      findings.push({ path: ['auth', 'type'], message: 'aws-sigv4 goes with chat protocols only.' })
    if ((auth.access_key_id === undefined) !== (auth.secret_access_key === undefined))
      findings.push({
        path: ['auth'],
        message:
          'access_key_id and secret_access_key go together. Without both, the environment has the credentials.',
        atKey: true,
      })
  }
  if (auth.type === 'google' && auth.credentials_file !== undefined && auth.credentials !== undefined)
    findings.push({
      path: ['auth'],
      message: 'has credentials_file and credentials: leave one out.',
      atKey: true,
    })
  return findings
}

function checkStorage({ protocol, provider, storage_uri: folder }: SoundChannel): Finding[] {
  if (folder === undefined || (protocol === 'veo' && provider === 'vertex')) return []
  const message = 'goes with protocol veo of provider vertex only.'
  return [{ path: ['storage_uri'], message, atKey: true }]
}

/** The end of a base URL: the form of its path, and the sentence about another one. */
interface BaseUrlRule {
  readonly path: RegExp
  readonly message: string
}

/** A vendor may keep its compatible interface below another version, such as `/api/v4` or `/v1beta/openai`. */
const VERSIONED: BaseUrlRule = {
  path: /\/v\d+[a-z0-9]*(\/[^/]+)?$/,
  message: 'must end in /v1 (or the version that the vendor has there)',
}
const V1: BaseUrlRule = { path: /\/v1$/, message: 'must end in /v1' }
const API_V1: BaseUrlRule = { path: /\/api\/v1$/, message: 'must end in /api/v1' }
const API_V3: BaseUrlRule = { path: /\/api\/v3$/, message: 'must end in /api/v3' }
const UNVERSIONED: BaseUrlRule = {
  path: /^(?!.*\/v\d+[a-z0-9]*$)/,
  message: 'must end before the version',
}

/** The rule for the base URL, and the path that the gateway appends to it: an operator must not write that too. */
const PATHS: Readonly<Record<ChannelProtocol, readonly [rule: BaseUrlRule | null, appended: string]>> = {
  'chat-completions': [VERSIONED, '/chat/completions'],
  responses: [VERSIONED, '/responses'],
  messages: [UNVERSIONED, '/v1/messages'],
  'generate-content': [UNVERSIONED, '/v1beta/models'],
  'openai-images': [V1, '/images/generations'],
  'ark-images': [API_V3, '/images/generations'],
  'ark-video': [API_V3, '/contents/generations/tasks'],
  'openai-speech': [V1, '/audio/speech'],
  elevenlabs: [UNVERSIONED, '/v1/text-to-speech'],
  suno: [UNVERSIONED, '/api/v1/generate'],
  fal: [UNVERSIONED, ''],
  replicate: [V1, '/predictions'],
  kling: [V1, ''],
  veo: [UNVERSIONED, '/v1beta/models'],
  'minimax-images': [V1, '/image_generation'],
  'minimax-video': [V1, '/video_generation'],
  'minimax-speech': [V1, '/t2a_v2'],
  'minimax-music': [V1, '/music_generation'],
  dashscope: [API_V1, '/services/aigc'],
  runway: [V1, '/tasks'],
  task: [null, ''],
}

function checkBaseUrl({ base_url, protocol, provider, api_version }: SoundChannel): Finding[] {
  if (base_url === undefined) return []
  if (isOlderAzure({ provider, base_url }))
    return api_version === undefined
      ? [{ path: ['api_version'], message: 'is required with this form of base_url, such as 2024-10-21.' }]
      : []
  if (provider === 'vertex' && !VERTEX_BASE.test(base_url))
    return [{ path: ['base_url'], message: 'must end in /v1/projects/PROJECT/locations/LOCATION.' }]
  const url = new URL(base_url)
  const messages: string[] = []
  if (url.username !== '' || url.password !== '')
    messages.push('must not hold a user name or password: use api_key or headers.')
  if (url.search !== '' || url.hash !== '') messages.push('must not hold a query or a fragment.')
  if (protocol !== undefined) messages.push(...checkEnd(url.pathname.replace(/\/+$/, ''), protocol))
  return messages.map((message) => ({ path: ['base_url'], message }))
}

function checkEnd(path: string, protocol: ChannelProtocol): string[] {
  const [rule, appended] = PATHS[protocol]
  const lastPart = appended.slice(appended.lastIndexOf('/'))
  if (appended !== '' && path.endsWith(lastPart))
    return [`must end before "${appended}": the gateway appends it.`]
  if (rule === null || rule.path.test(path)) return []
  return [`${rule.message}: for ${protocol} the gateway appends "${appended}".`]
}

/** Headers that frame the message or name its way; the gateway's HTTP client writes them. */
const RESERVED_HEADERS = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

function checkHeaders({ headers = {} }: SoundChannel): Finding[] {
  const message = 'is written by the gateway itself and cannot be set.'
  return Object.keys(headers)
    .filter((name) => RESERVED_HEADERS.has(name.toLowerCase()))
    .map((name) => ({ path: ['headers', name], message, atKey: true }))
}
