/** The configuration of the one service: a model of each family, and channels that do as a statement asks. */
import { parse, stringify } from 'yaml'
import { demonstration } from '../end-to-end/media/support.ts'
import {
  baseUrlAt,
  CHAT_PROTOCOLS,
  type ChannelPlan,
  type ChatProtocol,
  simulated,
} from '../end-to-end/protocols/support.ts'
import { UPSTREAM_KEY } from '../end-to-end/support.ts'

export const TIMEOUT_SECONDS = 0.4
/** Jobs of the simulated provider, unless a request says otherwise. */
const QUICK = 'delay=150,queue=50'
/** Seconds after which an image answer is kept alive; 90 without the setting. Even a slow machine makes the usual images faster. */
export const KEPT_ALIVE_AFTER_SECONDS = 8

/** Where the two channels of a pair are: the second is tried after the first. */
export const FIRST = '/first'
export const SECOND = '/second'

/** Tokens of a plain call, and their price: 1 credit a prompt token, 2 an output token. */
export const PROMPT_TOKENS = 10
export const OUTPUT_TOKENS = 4
export const PLAIN_COST = '18'
export const PRICING = { unit: '1M_tokens', input: '1000000', output: '2000000' } as const
const DIRECTIVES = `tokens=${OUTPUT_TOKENS},prompt_tokens=${PROMPT_TOKENS}`

export const SERVER_TOOL_PRICE = '2.022'
const chatModels = CHAT_PROTOCOLS.flatMap((protocol) => [
  { id: `plain-${protocol}`, default_max_tokens: 100, max_output_tokens: 1000, aliases: [`old-${protocol}`] },
  { id: `faulty-${protocol}` },
  {
    id: `script-${protocol}`,
    default_max_tokens: 100,
    max_output_tokens: 1000,
    capabilities: { web_search: true },
  },
  { id: `pair-${protocol}`, default_max_tokens: 100, max_output_tokens: 1000 },
  { id: `silent-${protocol}` },
  { id: `dead-${protocol}` },
  {
    id: `able-${protocol}`,
    capabilities: { web_search: true, image_generation: true, vision: true },
    pricing: { ...PRICING, server_tool_call: SERVER_TOOL_PRICE, discount: '0.5' },
  },
  { id: `cache-${protocol}`, pricing: { ...PRICING, cache_write: '1250000' } },
])

const MODELS = [
  ...chatModels,
  { id: 'unserved' },
  { id: 'placeholder', callable: false },
  { id: 'uncapped', max_output_tokens: 50_000, default_max_tokens: 40_000 },
  {
    id: 'tier-200k',
    pricing: {
      ...PRICING,
      cached_input: '100000',
      tiers: [{ from_prompt_tokens: 200_000, input: '2000000', cached_input: '200000', output: '4000000' }],
    },
  },
  {
    id: 'tier-272k',
    pricing: {
      ...PRICING,
      cached_input: '100000',
      tiers: [{ from_prompt_tokens: 272_000, input: '2000000', cached_input: '200000', output: '3000000' }],
    },
  },
  { id: 'promoted', pricing: { ...PRICING, discount: '0.8', discount_until: '2999-01-01T00:00:00Z' } },
  { id: 'ended-promotion', pricing: { ...PRICING, discount: '0.8', discount_until: '2020-01-01T00:00:00Z' } },
  { id: 'seeing', capabilities: { vision: true } },
  { id: 'toolless' },
  { id: 'script-video', endpoint_type: 'videos_generations', pricing: { unit: 'second', per_unit: '4.04' } },
]

function channels(scripted: string, closed: number): ChannelPlan[] {
  const media: ChannelPlan = {
    id: 'spec-script-video',
    protocol: 'task',
    base_url: `${scripted}/task`,
    api_key: UPSTREAM_KEY,
    models: { 'script-video': 'scripted' },
  }
  const chat = CHAT_PROTOCOLS.flatMap((protocol): ChannelPlan[] => [
    simulated(
      protocol,
      {
        [`plain-${protocol}`]: `sim-plain@${DIRECTIVES}`,
        [`cache-${protocol}`]: 'sim-cache@tokens=4,prompt_tokens=100',
        ...(protocol === 'chat-completions' && {
          uncapped: 'sim-uncapped@tokens=1',
          'tier-200k': 'sim-tier@tokens=1',
          'tier-272k': 'sim-tier@tokens=1',
          promoted: `sim-promoted@${DIRECTIVES}`,
          'ended-promotion': `sim-promoted@${DIRECTIVES}`,
          seeing: `sim-seeing@${DIRECTIVES}`,
          toolless: `sim-toolless@${DIRECTIVES}`,
        }),
      },
      { id: `spec-${protocol}` },
    ),
    simulated(protocol, { [`faulty-${protocol}`]: 'sim-faulty' }, { id: `spec-faulty-${protocol}` }),
    simulated(
      protocol,
      { [`able-${protocol}`]: `sim-able@${DIRECTIVES},searches=3` },
      { id: `spec-able-${protocol}`, tools: ['web_search', 'image_generation'] },
    ),
    simulated(
      protocol,
      { [`silent-${protocol}`]: 'sim-silent@fault=hang' },
      { id: `spec-silent-${protocol}`, timeout_seconds: TIMEOUT_SECONDS },
    ),
    simulated(
      protocol,
      { [`dead-${protocol}`]: 'sim-dead' },
      { id: `spec-dead-${protocol}`, base_url: baseUrlAt(`http://127.0.0.1:${closed}`, protocol) },
    ),
    simulated(
      protocol,
      { [`script-${protocol}`]: 'scripted' },
      { id: `spec-script-${protocol}`, base_url: baseUrlAt(scripted, protocol), tools: ['web_search'] },
    ),
    ...[FIRST, SECOND].map((path, priority) =>
      simulated(
        protocol,
        { [`pair-${protocol}`]: 'scripted' },
        {
          // Where there is a choice, a service is lent to nobody who asks for the same names.
          id: `spec-pair-${priority}-${protocol}-${process.pid}`,
          base_url: baseUrlAt(scripted + path, protocol),
          priority,
        },
      ),
    ),
  ])
  return [media, ...chat]
}

interface Demonstration {
  models: object[]
  channels: { protocol: string; models: Record<string, string> }[]
  [setting: string]: unknown
}

/** The demonstration, whose prices are those of the interface, with jobs that end soon; and models for chat. */
export function configuration(scripted: string, closed: number): string {
  const demo: Demonstration = parse(demonstration())
  const media = demo.channels.map((channel) => ({
    ...channel,
    models: CHAT_PROTOCOLS.includes(channel.protocol as ChatProtocol)
      ? channel.models
      : Object.fromEntries(Object.entries(channel.models).map(([id, name]) => [id, `${name}@${QUICK}`])),
  }))
  const models = MODELS.map((model) => ({ pricing: PRICING, ...model }))
  return stringify({
    ...demo,
    images: { keep_alive_after_seconds: KEPT_ALIVE_AFTER_SECONDS },
    models: [...models, ...demo.models],
    channels: [...channels(scripted, closed), ...media],
  })
}
