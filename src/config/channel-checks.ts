/** Checks a channel beyond the form of its fields. See docs/operating.md, "The configuration file". */
import {
  type ChannelEntry,
  type ChannelProtocol,
  type ChatProtocol,
  chatProtocol,
} from '../../schemas/config/catalog.ts'
import { findMediaAdapter } from '../channels/media/registry.ts'
import { findProvider, PRESETS } from '../channels/providers/presets.ts'
import { PASSING_PROTOCOL } from '../core/routing/catalog.ts'
import { suggest } from '../core/suggest.ts'
import type { CatalogNames, Finding } from './model-checks.ts'
import type { Salvaged } from './salvage.ts'

export type SoundChannel = Salvaged<ChannelEntry>

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

function checkModelNames({ models = {}, protocol }: SoundChannel, names: CatalogNames): Finding[] {
  const { ids, aliases, passed } = names
  return Object.keys(models).flatMap((name): Finding[] => {
    const endpoint = passed.get(name)
    if (endpoint !== undefined && protocol !== undefined && protocol !== PASSING_PROTOCOL) {
      const message = `"${name}" is of endpoint_type ${endpoint}: only channels of protocol ${PASSING_PROTOCOL} serve it.`
      return [{ path: ['models', name], message, atKey: true }]
    }
    if (ids.has(name)) return []
    const id = aliases.get(name)
    const message =
      id === undefined
        ? `There is no model "${name}" in the catalog.${suggest(name, ids)}`
        : `"${name}" is an alias: name the model by its id, "${id}".`
    return [{ path: ['models', name], message, atKey: true }]
  })
}

const isChat = (protocol: ChannelProtocol): protocol is ChatProtocol =>
  chatProtocol.safeParse(protocol).success

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
  if (folder === undefined) return []
  const taking = Object.entries(PRESETS).filter(([, { storageProtocol }]) => storageProtocol !== undefined)
  if (taking.some(([name, { storageProtocol }]) => name === provider && storageProtocol === protocol))
    return []
  const places = taking.map(
    ([name, { storageProtocol }]) => `protocol ${storageProtocol} of provider ${name}`,
  )
  return [{ path: ['storage_uri'], message: `goes with ${places.join(' or ')} only.`, atKey: true }]
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
const UNVERSIONED: BaseUrlRule = {
  path: /^(?!.*\/v\d+[a-z0-9]*$)/,
  message: 'must end before the version',
}

/** The rule for the base URL, and the path that the gateway appends to it: an operator must not write that too. */
type BaseUrlForm = readonly [rule: BaseUrlRule, appended: string]

const CHAT_FORMS: Readonly<Record<ChatProtocol, BaseUrlForm>> = {
  'chat-completions': [VERSIONED, '/chat/completions'],
  responses: [VERSIONED, '/responses'],
  messages: [UNVERSIONED, '/v1/messages'],
  'generate-content': [UNVERSIONED, '/v1beta/models'],
}

/** Returns the form of a protocol; null where any base URL will do. */
function findForm(protocol: ChannelProtocol): BaseUrlForm | null {
  if (isChat(protocol)) return CHAT_FORMS[protocol]
  const { baseUrl = 'any' } = findMediaAdapter(protocol) ?? {}
  if (baseUrl === 'any') return null
  const { end, appended } = baseUrl
  const rule = end === null ? UNVERSIONED : { path: new RegExp(`${end}$`), message: `must end in ${end}` }
  return [rule, appended]
}

function checkBaseUrl(channel: SoundChannel): Finding[] {
  const { base_url, protocol, provider } = channel
  if (base_url === undefined) return []
  const own = findProvider(provider)?.checkBaseUrl?.({ base_url, api_version: channel.api_version })
  if (own != null) return own.map(({ field, message }) => ({ path: [field], message }))
  const url = new URL(base_url)
  const messages: string[] = []
  if (url.username !== '' || url.password !== '')
    messages.push('must not hold a user name or password: use api_key or headers.')
  if (url.search !== '' || url.hash !== '') messages.push('must not hold a query or a fragment.')
  if (protocol !== undefined) messages.push(...checkEnd(url.pathname.replace(/\/+$/, ''), protocol))
  return messages.map((message) => ({ path: ['base_url'], message }))
}

function checkEnd(path: string, protocol: ChannelProtocol): string[] {
  const form = findForm(protocol)
  if (form === null) return []
  const [rule, appended] = form
  const lastPart = appended.slice(appended.lastIndexOf('/'))
  if (appended !== '' && path.endsWith(lastPart))
    return [`must end before "${appended}": the gateway appends it.`]
  if (rule.path.test(path)) return []
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
