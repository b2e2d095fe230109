/**
 * Fields by which each provider changes its price, by its documentation: where the gateway has no price for what they ask
 * for, they are refused before any upstream, and a service tier is asked of the model's prices.
 */

import t from 'tap'
import { CHAT_PROTOCOLS, type ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { PRESETS } from '../../../../src/channels/providers/presets.ts'
import { CHAT_PROVIDERS } from '../../../support/chat-providers.ts'
import { chatWith } from '../../protocols/request/plain-requests.ts'

interface PriceFields {
  /** Refused for every model, with a value that costs. */
  readonly refused: Readonly<Record<string, unknown>>
  /** Words of a tier, for which a model can have a factor: refused where it has none. */
  readonly tiers?: Readonly<Record<string, readonly string[]>>
}

const OPENAI: PriceFields = {
  refused: { prediction: { type: 'content', content: 'x' } },
  tiers: { service_tier: ['flex', 'priority', 'scale'] },
}
const ANTHROPIC: PriceFields = {
  refused: { speed: 'fast', inference_geo: 'us', compaction: {}, container: 'container_1' },
  tiers: { service_tier: ['priority'] },
}
const GOOGLE: PriceFields = {
  refused: { cachedContent: 'cachedContents/1' },
  tiers: { serviceTier: ['flex', 'priority'] },
}
const searches = { enable_search: true, search_options: { forced_search: true } }

/** By protocol where a provider speaks several. */
const FIELDS: Readonly<Record<string, Readonly<Partial<Record<ChatProtocol, PriceFields>>>>> = {
  openai: { 'chat-completions': OPENAI, responses: OPENAI },
  azure: {
    'chat-completions': { ...OPENAI, refused: { ...OPENAI.refused, data_sources: [{}] } },
    responses: OPENAI,
  },
  anthropic: { messages: ANTHROPIC, 'chat-completions': OPENAI },
  bedrock: { messages: ANTHROPIC },
  vertex: { messages: ANTHROPIC, 'generate-content': GOOGLE },
  gemini: { 'generate-content': GOOGLE, 'chat-completions': OPENAI },
  deepseek: { 'chat-completions': OPENAI, messages: ANTHROPIC },
  mistral: { 'chat-completions': { refused: { prediction: { type: 'content', content: 'x' } } } },
  groq: {
    'chat-completions': {
      refused: { compound_custom: { tools: {} }, search_settings: { country: 'x' } },
      tiers: { service_tier: ['flex', 'performance'] },
    },
    responses: OPENAI,
  },
  xai: {
    'chat-completions': {
      refused: { search_parameters: { mode: 'on' }, deferred: true },
      tiers: { service_tier: ['priority'] },
    },
    responses: OPENAI,
    messages: ANTHROPIC,
  },
  openrouter: {
    'chat-completions': {
      refused: {
        ...{ provider: { order: ['dear'] }, models: ['dear'], route: 'fallback', transforms: ['x'] },
        ...{ plugins: [{ id: 'web' }], preset: 'dear' },
      },
      tiers: { service_tier: ['flex'] },
    },
    responses: { refused: { plugins: [{ id: 'web' }], provider: { order: ['dear'] } } },
    messages: ANTHROPIC,
  },
  moonshot: { 'chat-completions': { refused: { use_search: true } }, messages: ANTHROPIC },
  qwen: {
    'chat-completions': { refused: { ...searches, enable_code_interpreter: true } },
    messages: ANTHROPIC,
  },
  zhipu: { 'chat-completions': { refused: { web_search: { enable: true } } }, messages: ANTHROPIC },
  minimax: {
    'chat-completions': { refused: { plugins: ['web'] }, tiers: { service_tier: ['priority'] } },
    messages: ANTHROPIC,
  },
  ark: {
    'chat-completions': { refused: { context_id: 'ctx-1' }, tiers: { service_tier: ['fast'] } },
    responses: { refused: { caching: { type: 'enabled' }, context_id: 'ctx-1' } },
  },
}

for (const family of CHAT_PROVIDERS)
  t.test(family, async (t) => {
    const spoken = CHAT_PROTOCOLS.filter((protocol) => PRESETS[family]!.baseUrls[protocol] !== undefined)
    t.same(
      Object.keys(FIELDS[family] ?? {}).sort(),
      [...spoken].sort(),
      'each protocol of the preset has a list',
    )
    for (const protocol of spoken) {
      const { refused, tiers = {} } = FIELDS[family]![protocol]!
      for (const [name, value] of Object.entries(refused))
        t.throws(
          () => chatWith(protocol, { [name]: value }),
          { code: 'invalid_request', message: new RegExp(`'${name}' is not valid`) },
          `${protocol} ${name}`,
        )
      for (const [name, words] of Object.entries(tiers))
        for (const word of words)
          t.equal(chatWith(protocol, { [name]: word }).serviceTier, word, `${protocol} ${name} ${word}`)
    }
  })
