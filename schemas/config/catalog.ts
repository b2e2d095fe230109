/**
 * Models, their prices, and the channels that serve them: the catalog half of `tollgate.yaml`, after
 * validation. See docs/operating.md, "The configuration file"; docs/api-rules.md, "Models".
 */
import { z } from 'zod'
import { creditsText, rateText } from '../money.ts'
import { channelAuth } from './channel-auth.ts'

export const CHAT_PROTOCOLS = ['chat-completions', 'messages', 'generate-content', 'responses'] as const
export const chatProtocol = z.enum(CHAT_PROTOCOLS)
export type ChatProtocol = z.infer<typeof chatProtocol>

/** Client protocol to upstream protocol, where the gateway translates without being told to by `serve` of the channel. */
export const TRANSLATIONS = [
  ['chat-completions', 'messages'],
  ['chat-completions', 'generate-content'],
] as const satisfies ReadonlyArray<readonly [ChatProtocol, ChatProtocol]>

/** A chat protocol, or the name of a media adapter. */
export type ChannelProtocol = string

/** Of the whole of a chat call, streaming included. */
export const DEFAULT_CHAT_SECONDS = 180
export const MAX_CHAT_SECONDS = 3600

/**
 * Types of models whose requests pass to the same path of a chat-completions channel. Inside the service each is the name
 * of a protocol.
 */
export const PASSED_ENDPOINTS = ['embeddings', 'rerank', 'audio_transcriptions'] as const
export type PassedEndpoint = (typeof PASSED_ENDPOINTS)[number]

/** The protocol of a call that is forwarded while its client waits. */
export type CallProtocol = ChatProtocol | PassedEndpoint

export const ENDPOINT_TYPES = [
  'images_generations',
  'videos_generations',
  'contents_generations_tasks',
  'music_generations',
  'audio_speech',
  'audio_voices',
  'transcripts_extract',
  'videos_avatars',
  'clip_subtitles',
  'clip_compose',
  ...PASSED_ENDPOINTS,
] as const

export const PRICE_UNITS = [
  '1M_tokens',
  'image',
  'second',
  'minute',
  'search',
  'generation',
  '1000_characters',
  'call',
  'task',
] as const

/** The name of a model, an alias, a channel: it fits a URL path or a comma list without quoting. */
const name = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[^\s,]+$/, 'must not hold spaces or commas')

/** Tools that few upstreams run. Lists name them only where a model has them. */
const RARE_TOOLS = [
  'code_interpreter',
  'computer_use',
  'file_search',
  'maps',
  'mcp',
  'tool_search',
  'url_context',
] as const

/** Tools that an upstream runs: a call may use one only if its model is capable of it and a channel offers it. */
export const SERVER_TOOLS = ['web_search', 'image_generation', ...RARE_TOOLS] as const
export type ServerTool = (typeof SERVER_TOOLS)[number]

/** Credits per 1M tokens of a kind. */
const kindPrices = {
  /** Default: the input price; a tenth of it in a family with cache writes, see `src/core/pricing/cache-hits.ts`. */
  cached_input: rateText.optional(),
  /** Default: the input price x 1.25. */
  cache_write: rateText.optional(),
  /** Of what is kept for an hour. Default: the input price x 2. */
  cache_write_1h: rateText.optional(),
  /** Default: the output price. */
  reasoning: rateText.optional(),
  /** Default: the input price. */
  input_audio: rateText.optional(),
  /** Default: the output price. */
  output_audio: rateText.optional(),
  /** Default: the input price. With unit `image`: credits for each image that goes in. */
  input_image: rateText.optional(),
  /** Default: the output price. */
  output_image: rateText.optional(),
}

const tokenTier = z.strictObject({
  /** The tier holds for prompts of this many tokens or more, cached ones included. */
  from_prompt_tokens: z.int().positive(),
  input: rateText,
  output: rateText,
  ...kindPrices,
})

const pixelTier = z.strictObject({
  /** The tier holds for images of this many pixels or more. */
  from_pixels: z.int().positive(),
  per_unit: rateText,
})

const unitPrices = {
  /** Credits per unit, for every unit but `1M_tokens`. */
  per_unit: rateText.optional(),
  variants: z.record(z.string(), rateText).optional(),
}

const instant = z.iso.datetime({ offset: true })

const pricingFields = {
  /** Credits per 1M tokens. */
  input: rateText.optional(),
  /** Embeddings have none. */
  output: rateText.optional(),
  ...kindPrices,
  ...unitPrices,
  /** Of videos with sound, in place of `per_unit` and `variants`; empty: sound is refused. Default: the same prices. */
  with_audio: z.strictObject(unitPrices).optional(),
  /** Credits for an image by its size; `per_unit` holds below the first of them. */
  pixel_tiers: z.array(pixelTier).default([]),
  tiers: z.array(tokenTier).default([]),
  /** Credits per tool call that the upstream ran itself. */
  server_tool_call: rateText.optional(),
  /** The same for tools that have a separate price. */
  server_tools: z.partialRecord(z.enum(SERVER_TOOLS), rateText).optional(),
  /** Factors on the whole call by the service tier in which the upstream served it. */
  service_tiers: z
    .record(z.string().regex(/^[a-z][a-z0-9_]{0,31}$/, 'must be a word in lower case'), rateText)
    .optional(),
  /** Credits that a call costs at least, if it used anything. */
  minimum: creditsText.refine((credits) => credits >= 0n, 'A minimum is never negative').optional(),
  /** Factor on the prices of tokens and units, such as 0.8. */
  discount: rateText.optional(),
  /** true: the discount lowers the prices of server tools as well. */
  discount_server_tools: z.boolean().optional(),
  /** RFC 3339; from this instant on the full price holds. */
  discount_until: instant.optional(),
}

export const pricing = z.strictObject({
  unit: z.enum(PRICE_UNITS),
  ...pricingFields,
  /** Planned prices: each replaces all of the one before it for calls that are submitted from its instant on. */
  changes: z.array(z.strictObject({ from: instant, ...pricingFields })).default([]),
})
export type Pricing = z.infer<typeof pricing>
/** The prices that hold at one time. */
export type PricingFields = Omit<Pricing, 'unit' | 'changes'>

const offered = z.boolean().optional()

export const rareTools = Object.fromEntries(RARE_TOOLS.map((tool) => [tool, offered])) as Record<
  (typeof RARE_TOOLS)[number],
  typeof offered
>

export const capabilities = z.strictObject({
  vision: z.boolean().default(false),
  function_tools: z.boolean().default(false),
  web_search: z.boolean().default(false),
  image_generation: z.boolean().default(false),
  reasoning: z.boolean().default(false),
  ...rareTools,
})

/** Peculiarities of an image model. See docs/api-rules.md, "Images". */
export const imageTraits = z.strictObject({
  /** Makes four images whatever number is requested; a size only selects the ratio of their sides. */
  grid: z.boolean().default(false),
  /** Takes no size: the ratio is written into the prompt. */
  ratio_in_prompt: z.boolean().default(false),
  /** The size of its images where the request has none. */
  default_size: z
    .string()
    .regex(/^[1-9]\d{0,4}x[1-9]\d{0,4}$/, 'must be a width and a height in pixels, such as 2048x2048')
    .optional(),
})
export type ImageTraits = z.infer<typeof imageTraits>

/** Defaults of a video model. */
export const videoTraits = z.strictObject({
  /** Seconds. */
  default_duration: z.number().min(1).max(3600).optional(),
  /** Seconds. What a channel reports beyond it is not charged. */
  max_duration: z.number().min(1).max(86_400).optional(),
  default_resolution: z.string().min(1).max(64).optional(),
  /** Whether the upstream makes sound where a request says neither; nothing is sent then. Default: it makes none. */
  default_audio: z.boolean().optional(),
})

/** The largest estimate for an absent output limit. See docs/api-rules.md, "Pre-charge". */
export const ESTIMATE_OUTPUT_CAP_TOKENS = 32768

/** Sizes that the pre-charge assumes for parts of a request that only the upstream can measure. */
const estimateFloors = z.strictObject({
  /** Calls that each server tool of a request makes. */
  server_tool_calls: z.int().min(0).max(100).default(3),
  /** Tokens of an image, a file and a piece of audio that is given by URL. */
  image_tokens: z.int().min(0).max(1_000_000).default(1600),
  file_tokens: z.int().min(0).max(1_000_000).default(16_000),
  audio_tokens: z.int().min(0).max(1_000_000).default(2000),
})

/** In which order channels of one priority are tried: by weight, the fastest first, or the cheapest first. */
export const STRATEGIES = ['priority', 'least_latency', 'least_cost'] as const
export type Strategy = (typeof STRATEGIES)[number]

/** What clients get of an upstream's error: the interface's names, or the upstream's own error object. */
export const UPSTREAM_ERRORS = ['mapped', 'native'] as const

export const ESTIMATES = ['specified', 'worst_case'] as const
export type Estimate = (typeof ESTIMATES)[number]

/** `abort` ends the upstream call at once; `read_on` reads it, within limits, to learn what it costs. */
export const AFTER_CLIENT_LEAVES = ['abort', 'read_on'] as const

export const modelEntry = z.strictObject({
  id: name,
  family: z.string().optional(),
  owned_by: z.string().default('tollgate'),
  display_name: z.string().optional(),
  /** false: listed, and calling it is `model_not_found`. */
  callable: z.boolean().default(true),
  endpoint_type: z.enum(ENDPOINT_TYPES).nullable().default(null),
  aliases: z.array(name).default([]),
  context_window: z.int().positive().optional(),
  max_output_tokens: z.int().positive().optional(),
  default_max_tokens: z.int().positive().optional(),
  capabilities: capabilities.prefault({}),
  estimate: estimateFloors.prefault({}),
  images: imageTraits.optional(),
  videos: videoTraits.optional(),
  /** Default: that of the installation. */
  after_client_leaves: z.enum(AFTER_CLIENT_LEAVES).optional(),
  /** Default: that of the whole catalog. */
  strategy: z.enum(STRATEGIES).optional(),
  /** Models that serve a call when every channel of this one has failed, in order. */
  fallbacks: z.array(name).max(8).default([]),
  pricing: pricing.optional(),
})
export type ModelEntry = z.infer<typeof modelEntry>

export const OUTPUT_LIMIT_FIELDS = ['max_tokens', 'max_completion_tokens'] as const

/** Headers in which upstreams take a key. */
export const KEY_HEADERS = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'] as const
export type KeyHeader = (typeof KEY_HEADERS)[number]

/** Values of a media job whose fields the models of some upstreams name each in their own way. */
const INPUT_NAMES = [
  'image',
  'images',
  'last_frame',
  'mask',
  'video',
  'n',
  'size',
  'ratio',
  'duration',
  'resolution',
  'fps',
  'generate_audio',
  'camera_fixed',
  'watermark',
] as const
export type InputName = (typeof INPUT_NAMES)[number]

const inputField = z
  .string()
  .regex(/^([A-Za-z_]\w{0,63}(\[\])?)?$/, 'must be the name of a field, with [] behind it for a list')

const apiKey = z
  .string()
  .trim()
  .regex(/^[\x21-\x7e]*$/, 'must be printable ASCII without spaces')

/** `src/config/load.ts` has the values of `provider`, `protocol` and `quirks`, which the providers bring. */
export const channelEntry = z.strictObject({
  id: name,
  /** Selects the preset and quirks of a provider. Default: only what the protocol says. */
  provider: z.string().optional(),
  protocol: z.string(),
  /** Without a slash at its end. */
  base_url: z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, '')),
  /** After `${NAME}` was replaced; empty means the channel is off. */
  api_key: apiKey.default(''),
  /** Several keys, used in turn; `api_key` is the first of them. Empty where there is one. */
  api_keys: z.array(apiKey).max(100).default([]),
  /** Access by another means than a key. */
  auth: channelAuth.optional(),
  /** Of Azure OpenAI, where the base URL is the older form. */
  api_version: z
    .string()
    .regex(/^[\w.-]+$/, 'must be letters, digits, dots and hyphens')
    .optional(),
  /** The header of the key. Default: the one of the protocol. */
  key_header: z.enum(KEY_HEADERS).optional(),
  /** Catalog id to the upstream's own name. */
  models: z.record(name, z.string().min(1)),
  /** Prices that the operator pays, by catalog id: in the same form as the price of a model. */
  cost: z.record(name, pricing).optional(),
  tools: z.array(z.enum(SERVER_TOOLS)).default([]),
  /**
   * Of the responses protocol: days for which the upstream keeps responses that are not `store: false`; 0: it keeps
   * none. Its keys, if there are several, must be of one account there.
   */
  keeps_responses_days: z.int().min(0).max(3650).default(0),
  /** Of the responses protocol: whether the upstream keeps conversations. Its keys must be of one account there. */
  keeps_conversations: z.boolean().default(false),
  /** Client protocols that this channel's upstream converts itself. */
  converts: z.array(chatProtocol).default([]),
  /**
   * Client protocols that the gateway translates to that of this channel, besides chat-completions to messages and
   * generate-content, which it always does.
   */
  serve: z.array(chatProtocol).default([]),
  /** Lower is tried first. */
  priority: z.int().default(0),
  /** Share among channels of one priority. */
  weight: z.number().positive().default(1),
  headers: z
    .record(
      z.string().regex(/^[A-Za-z0-9-]+$/, 'must be letters, digits and hyphens'),
      z.string().regex(/^[\t\x20-\x7e]*$/, 'must be printable ASCII'),
    )
    .default({}),
  /** Of one call. Default: `limits.chat_seconds`. */
  timeout_seconds: z.number().positive().max(MAX_CHAT_SECONDS).optional(),
  /** Default: that of the installation. */
  hide_auth_errors: z.boolean().optional(),
  /** Default: that of the installation. */
  upstream_errors: z.enum(UPSTREAM_ERRORS).optional(),
  /** Links of clients that lead to addresses which are not public are handed on: the upstream is the operator's own. */
  private_links: z.boolean().default(false),
  /**
   * The field of the output limit that the upstream obeys: a limit of the client moves there, whichever field it has, and
   * the one for an omitted limit goes there. Null: the client's limit stays where it is, the other goes to `max_tokens`.
   */
  output_limit_field: z.enum(OUTPUT_LIMIT_FIELDS).nullable().default(null),
  /** Requests that the upstream refuses, and that are rewritten for it. Of the chat-completions protocol. */
  quirks: z.array(z.string()).default([]),
  /** Of Veo at Vertex AI: the folder of a bucket into which its videos go. Default: they come in the answer. */
  storage_uri: z
    .string()
    .regex(
      /^gs:\/\/[a-z0-9][a-z0-9._-]+(\/[^\s]*)?$/,
      'must be the folder of a bucket, such as gs://my-bucket/films',
    )
    .optional(),
  /** Names of the fields of a model's input, for hosts of many models; an empty one leaves the value out. */
  input_names: z.partialRecord(z.enum(INPUT_NAMES), inputField).default({}),
})
export type ChannelEntry = z.infer<typeof channelEntry>
