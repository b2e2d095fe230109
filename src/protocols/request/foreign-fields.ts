/**
 * Refuses fields that the client must not set, because upstreams read them past the gateway: those that choose another
 * model, route, price or account than the gateway has checked and bills, and ids of objects that are stored at the
 * upstream, whose account all customers share. They are refused for every channel, whichever provider reads them.
 */
import type { ZodType } from 'zod'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { foldName, type NameSet } from '../../core/json/names.ts'
import { isObject, type LooseObject, toFields } from '../loose.ts'
import {
  CHAT_COMPLETIONS_NAMES,
  GENERATE_CONTENT_NAMES,
  MESSAGES_NAMES,
  RESPONSES_NAMES,
} from './known-names.ts'
import { ROUTING_FIELDS, SERVER_FEATURES } from './routing-fields.ts'

/** The value of `speed` in the messages protocol that has a price: it counts as a service tier. */
const FAST = 'fast'

/**
 * Top-level fields of each protocol that change the price, with the values by which they do not. A model can have prices
 * for service tiers, and for no other of them.
 */
export const PRICED_FIELDS: Readonly<Record<ChatProtocol, Readonly<Record<string, readonly unknown[]>>>> = {
  'chat-completions': { service_tier: ['auto', 'default'], speed: ['standard'] },
  responses: { service_tier: ['auto', 'default'], speed: ['standard'] },
  messages: {
    service_tier: ['auto', 'standard_only'],
    ...{ speed: ['standard', FAST], inference_geo: ['global'], compaction: [] },
    ...{ fallback_credit_token: [], billing_policy: [] },
  },
  'generate-content': {
    serviceTier: ['standard', 'unspecified', 'SERVICE_TIER_UNSPECIFIED'],
    service_tier: ['standard', 'unspecified', 'SERVICE_TIER_UNSPECIFIED'],
  },
}

/** It has no price and only saves time: no upstream gets it, and `X-Protocol-Warning` names it. */
export const PREDICTION = 'prediction'

/** Fields among the server features that are read as tools, and priced as those are. */
const TOOL_FIELDS: Readonly<Record<ChatProtocol, readonly string[]>> = {
  'chat-completions': ['web_search_options'],
  messages: ['mcp_servers'],
  responses: [],
  'generate-content': [],
}

/** Top-level fields that name objects stored at the upstream. */
export const STORED_STATE_FIELDS = [
  ...['previous_response_id', 'conversation', 'conversation_id', 'background', 'context_id'],
  ...['cachedContent', 'cached_content'],
] as const

const ROUTED = 'the gateway chooses model and upstream itself; leave it out'
const FEATURE = 'no price is set for what it switches on; offer a tool instead, or leave it out'
const PRICED = 'no price is set for what it asks for; leave it out'
const STORED =
  'it refers to what is stored at the upstream, where nothing is kept for you; send the content itself'

/** Returns the reason to refuse the value of a field; null where it is allowed. */
export type Rule = (value: unknown) => string | null

const unlessIn =
  (why: string, harmless: readonly unknown[] = []): Rule =>
  (value) =>
    value == null || value === false || harmless.includes(value) ? null : why

/** Fields that name a service tier, which a model can have a price for. */
const TIER_FIELDS: ReadonlySet<string> = new Set(['service_tier', 'serviceTier'])
const TIER_NAME = /^[a-z][a-z0-9_]{0,31}$/

/** A word for a tier is checked once the model is known: see `requestedTier`. */
const tierRule =
  (harmless: readonly unknown[]): Rule =>
  (value) =>
    typeof value === 'string' && TIER_NAME.test(value) ? null : unlessIn(PRICED, harmless)(value)

/** Returns the service tier that a request asks for; nothing for the usual one. */
export function readServiceTier(protocol: ChatProtocol, request: LooseObject): { serviceTier?: string } {
  if (protocol === 'messages' && request.speed === FAST) return { serviceTier: FAST }
  for (const name of TIER_FIELDS) {
    const value = request[name]
    if (typeof value === 'string' && !(PRICED_FIELDS[protocol][name] ?? []).includes(value))
      return { serviceTier: value }
  }
  return {}
}

/** Within `metadata` a proxy keeps data of its keys, and reads tags that choose a route. */
const OF_PROXIES =
  /^(user_api_key|litellm_|model_group|model_info|deployment|api_base|previous_models|headers$)/

const metadataRule: Rule = (value) => {
  if (!isObject(value)) return null
  const names = Object.keys(value).filter(
    (name) => OF_PROXIES.test(name) || (name === 'tags' && typeof value.tags !== 'string'),
  )
  return names.length === 0 ? null : `'${names[0]}' in it is a proxy's own; leave it out`
}

/** A voice with an id is one that the account has made. */
const voiceRule: Rule = (audio) =>
  toFields(toFields(audio).voice).id == null ? null : `'voice.id' in it is not yours; name a voice instead`

function makeRules(protocol: ChatProtocol, { known }: NameSet): ReadonlyMap<string, Rule> {
  const priced = Object.entries(PRICED_FIELDS[protocol])
  const rules: readonly (readonly [string, Rule])[] = [
    ...ROUTING_FIELDS.map((name) => [name, unlessIn(ROUTED)] as const),
    ...SERVER_FEATURES.filter((name) => !TOOL_FIELDS[protocol].includes(name)).map(
      (name) => [name, unlessIn(FEATURE)] as const,
    ),
    ...STORED_STATE_FIELDS.map((name) => [name, unlessIn(STORED)] as const),
    ...priced.map(
      ([name, harmless]) =>
        [name, TIER_FIELDS.has(name) ? tierRule(harmless) : unlessIn(PRICED, harmless)] as const,
    ),
    ['metadata', metadataRule],
    ...OWN_RULES[protocol],
  ]
  return new Map([
    // Most names are known and may have any value: other spellings of these are not checked.
    ...[...known.keys()].map((name) => [name, ANY_VALUE] as const),
    ...rules.flatMap(([name, rule]) => [[name, rule] as const, [foldName(name), rule] as const]),
  ])
}

const ANY_VALUE: Rule = () => null

const OWN_RULES: Readonly<Record<ChatProtocol, ReadonlyArray<readonly [string, Rule]>>> = {
  'chat-completions': [['audio', voiceRule]],
  responses: [
    ['prompt', unlessIn(STORED)],
    // The gateway finds the channel that keeps it.
    ['previous_response_id', ANY_VALUE],
    ['conversation', ANY_VALUE],
    ['background', ANY_VALUE],
  ],
  // Models that answer in place of the requested one: they are left out, see the dialect.
  messages: [
    ['container', unlessIn(STORED)],
    ['fallbacks', ANY_VALUE],
  ],
  'generate-content': [
    ['modelArmorConfig', unlessIn(STORED)],
    ['model_armor_config', unlessIn(STORED)],
    // Where the answer's files are to be written.
    ['outputConfig', unlessIn(STORED)],
    ['output_config', unlessIn(STORED)],
  ],
}

const RULES: Readonly<Record<ChatProtocol, ReadonlyMap<string, Rule>>> = {
  'chat-completions': makeRules('chat-completions', CHAT_COMPLETIONS_NAMES),
  responses: makeRules('responses', RESPONSES_NAMES),
  messages: makeRules('messages', MESSAGES_NAMES),
  'generate-content': makeRules('generate-content', GENERATE_CONTENT_NAMES),
}

const FOLDED = /^[a-z_]*$/

function findRule(protocol: ChatProtocol, name: string): Rule {
  const rule = FOLDED.test(name) ? undefined : RULES[protocol].get(foldName(name))
  return rule ?? ANY_VALUE
}

/** Returns the rule for a top-level field, in any case; undefined for one that may have any value. */
export function lookUpRule(protocol: ChatProtocol, name: string): Rule | undefined {
  const rule = RULES[protocol].get(name) ?? findRule(protocol, name)
  return rule === ANY_VALUE ? undefined : rule
}

const CONFIG_ROUTING: Readonly<Record<string, string>> = {
  ...{ routingConfig: ROUTED, routing_config: ROUTED, modelConfig: ROUTED, model_config: ROUTED },
  ...{ modelSelectionConfig: ROUTED, model_selection_config: ROUTED },
}

/** Fields within top-level objects that must not have a value, with the reason. */
const INNER_FIELDS: Readonly<
  Record<ChatProtocol, Readonly<Record<string, Readonly<Record<string, string>>>>>
> = {
  'chat-completions': {},
  responses: {},
  messages: {},
  'generate-content': { generationConfig: CONFIG_ROUTING, generation_config: CONFIG_ROUTING },
}

/** Names of fields that hold ids of stored objects, wherever an upstream reads them. */
export const STORED_OBJECT_FIELDS: readonly string[] = [
  ...['file_id', 'file_ids', 'vector_store_ids', 'fileUri', 'file_uri'],
]
/** The same, only inside settings and tools. */
const STORED_SETTINGS = [
  ...['fileSearchStoreNames', 'container_id', 'skills', 'cachedContent', 'tunnel_id'],
  ...['vertexAiSearch', 'vertexRagStore', 'apiKeySecret', 'apiKeySecretVersion'],
] as const
const plainName = (name: string): string => foldName(name).replaceAll('_', '')
const STORED_FIELDS: ReadonlySet<string> = new Set(
  [...STORED_OBJECT_FIELDS, ...STORED_SETTINGS].map(plainName),
)
const STORED_TYPES: ReadonlySet<unknown> = new Set([
  ...['item_reference', 'container_reference', 'container_upload', 'skill_reference'],
])

/** Fields in which names are the client's own, or part of an earlier answer: upstreams read no id in them. */
const OPAQUE: Readonly<Record<ChatProtocol, ReadonlySet<string>>> = {
  'chat-completions': new Set(['parameters', 'schema', 'metadata', 'arguments', 'annotations']),
  responses: new Set([
    ...['parameters', 'input_schema', 'schema', 'metadata', 'annotations', 'results', 'logprobs'],
  ]),
  messages: new Set(['input', 'input_schema', 'schema', 'metadata', 'citations']),
  'generate-content': new Set([
    ...['args', 'response', 'parameters', 'parametersJsonSchema', 'parameters_json_schema', 'labels'],
    ...['responseSchema', 'response_schema', 'responseJsonSchema', 'response_json_schema'],
  ]),
}

type Path = readonly (string | number)[]
interface FieldFault {
  readonly path: Path
  readonly why: string
}

const isFull = (value: unknown): boolean => value != null && !(Array.isArray(value) && value.length === 0)

/** Types of containers that the upstream makes. */
const NEW_CONTAINERS: ReadonlySet<unknown> = new Set(['auto', 'container_auto'])
/** A container with more memory costs more. */
const UNPRICED_MEMORY: Rule = unlessIn(PRICED, ['1g'])

/** Returns the field by which the client must not send an object, and the reason; null without any. */
function findOwnFault({
  type,
  result,
  container,
  model,
  memory_limit: memory,
}: LooseObject): readonly [field: string, why: string] | null {
  if (STORED_TYPES.has(type)) return ['type', STORED]
  // An item of an earlier answer without its picture: the upstream would read it from its store.
  if (type === 'image_generation_call' && result == null) return ['result', STORED]
  if (typeof container === 'string') return ['container', STORED]
  if (NEW_CONTAINERS.has(type) && UNPRICED_MEMORY(memory) !== null) return ['memory_limit', PRICED]
  return type === 'image_generation' && model != null ? ['model', ROUTED] : null
}

/** Where the vendor of the generate-content protocol keeps files of the operator's account. */
const FILE_STORE_HOST = /(^|\.)(googleapis|cloud\.google)\.com\.?$/
const FILE_STORE_PATH = /^\/+(upload\/+)?v\d+\w*\/+files\b/

/** Returns whether a URI leads to a file that anyone can read, such as a video of YouTube: it is no id of a stored one. */
function isPublicFile(uri: unknown): boolean {
  const url = typeof uri === 'string' && /^https?:\/\//.test(uri) ? URL.parse(uri) : null
  if (url === null || FILE_STORE_HOST.test(url.hostname)) return false
  try {
    return !FILE_STORE_PATH.test(decodeURIComponent(url.pathname).toLowerCase())
  } catch {
    return false
  }
}

function isStoredId(name: string, value: unknown, { type }: LooseObject): boolean {
  if (plainName(name) === 'fileuri' && isPublicFile(value)) return false
  if (name === 'container_id' && type === 'code_interpreter_call') return false
  return STORED_FIELDS.has(plainName(name)) && isFull(value)
}

const within = (step: string | number, fault: FieldFault | null): FieldFault | null =>
  fault === null ? null : { ...fault, path: [step, ...fault.path] }

/** Returns the first fault. Its path is made once it is found: one for each value would cost its depth. */
function findInside(value: unknown, opaque: ReadonlySet<string>): FieldFault | null {
  if (typeof value !== 'object' || value === null) return null
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const fault = within(index, findInside(item, opaque))
      if (fault !== null) return fault
    }
    return null
  }
  const object = value as LooseObject
  const own = findOwnFault(object)
  if (own !== null) return { path: [own[0]], why: own[1] }
  for (const name of Object.keys(object)) {
    if (opaque.has(name)) continue
    const inner = object[name]
    if (isStoredId(name, inner, object)) return { path: [name], why: STORED }
    // Of sound that the model made before: it is sent by its id.
    if (name === 'audio' && isObject(inner) && inner.id != null) return { path: [name, 'id'], why: STORED }
    const fault = within(name, findInside(inner, opaque))
    if (fault !== null) return fault
  }
  return null
}

/** Returns the first field that the client must not set; null without any. */
function foreignField(protocol: ChatProtocol, request: LooseObject): FieldFault | null {
  for (const name of Object.keys(request)) {
    const why = lookUpRule(protocol, name)?.(request[name])
    if (why != null) return { path: [name], why }
  }
  for (const [field, inner] of Object.entries(INNER_FIELDS[protocol]))
    for (const [name, why] of Object.entries(inner))
      if (toFields(request[field])[name] != null) return { path: [field, name], why }
  return findInside(protocol === 'responses' ? withoutReferences(request) : request, OPAQUE[protocol])
}

/** Returns whether an item of the input stands for one of an earlier response. */
export const isItemReference = (item: unknown): item is { readonly id: string } => {
  const { type, id } = toFields(item)
  return type === 'item_reference' && typeof id === 'string' && id !== ''
}

/** The gateway finds the channel that keeps what they refer to. */
const withoutReferences = (request: LooseObject): LooseObject =>
  Array.isArray(request.input) && request.input.some(isItemReference)
    ? {
        ...request,
        input: request.input.map((item) => (isItemReference(item) ? { ...item, type: undefined } : item)),
      }
    : request

/** Returns the contract with a refusal of fields that the client must not set. */
export const withoutForeignFields = <Schema extends ZodType>(
  protocol: ChatProtocol,
  schema: Schema,
): Schema =>
  schema.superRefine((request, context) => {
    const fault = isObject(request) ? foreignField(protocol, request) : null
    if (fault !== null) context.addIssue({ code: 'custom', path: [...fault.path], message: fault.why })
  })
