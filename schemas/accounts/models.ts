/** Answers of model discovery and the balance. See docs/api-rules.md, "Models". */
import { z } from 'zod'
import { currency } from '../call-log/row.ts'
import { chatProtocol, ENDPOINT_TYPES, PRICE_UNITS, rareTools } from '../config/catalog.ts'
import { budgetPeriod, budgetScope } from './budget.ts'

const MAX_PAGE_SIZE = 1000
export const modelsQuery = z.object({
  limit: z.coerce
    .number<string>()
    .int()
    .min(1)
    .max(MAX_PAGE_SIZE)
    .optional()
    .describe('Models a page; without it all of them.'),
  after_id: z.string().optional().describe('last_id of the page before.'),
  before_id: z.string().optional().describe('first_id of the page behind.'),
})

/** As the SDKs of chat-completions and messages read it; the catalogs of agents have limits and prices so. */
const listedModel = z.object({
  id: z.string(),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string(),
  type: z.literal('model'),
  display_name: z.string(),
  created_at: z.string(),
  endpoint_type: z.enum(ENDPOINT_TYPES).nullable().describe('null: an ordinary chat model.'),
  max_input_tokens: z.int().nullable(),
  max_tokens: z.int().nullable(),
  limit: z
    .object({ context: z.int(), output: z.int() })
    .partial()
    .describe('In tokens, where they are known.'),
  cost: z
    .object({ input: z.number(), output: z.number(), cache_read: z.number(), cache_write: z.number() })
    .partial()
    .describe(
      'Of 1M tokens, as billed now; one credit reads as 1. Empty for a model that tokens do not price.',
    ),
})

export const contentModel = z.object({
  name: z.string().describe('The id behind `models/`.'),
  displayName: z.string(),
  inputTokenLimit: z.int().optional(),
  outputTokenLimit: z.int().optional(),
  supportedGenerationMethods: z
    .array(z.string())
    .describe('Empty where no channel serves it on this protocol.'),
})
export type ContentModel = z.infer<typeof contentModel>

export const contentModelList = z.object({
  models: z.array(contentModel),
  nextPageToken: z.string().optional().describe('Where there are more.'),
})
export type ContentModelList = z.infer<typeof contentModelList>

const DEFAULT_PAGE_SIZE = 50
/** As with the vendor, a larger page than the largest is the largest. */
export const contentModelsQuery = z.object({
  pageSize: z.coerce
    .number<string>()
    .int()
    .min(0)
    .default(DEFAULT_PAGE_SIZE)
    .transform((size) => (size === 0 ? DEFAULT_PAGE_SIZE : Math.min(size, MAX_PAGE_SIZE)))
    .describe(`Models a page, ${MAX_PAGE_SIZE} at most.`),
  pageToken: z.string().optional().describe('nextPageToken of the page before.'),
})

export const shownModel = listedModel
  .extend(contentModel.partial().shape)
  .describe('With `x-goog-api-key` it has the fields of generate-content as well.')

export const modelList = z.object({
  object: z.literal('list'),
  data: z.array(listedModel),
  has_more: z.boolean(),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  models: z
    .array(contentModel)
    .describe(
      'With `x-goog-api-key`, the list of generate-content; for others empty, so that agents keep their own.',
    ),
  nextPageToken: contentModelList.shape.nextPageToken,
})

/** Credits, a decimal string. */
const price = z.string().nullable()

/** Of 1M tokens, by kind. */
const kinds = {
  cached_input: price,
  cache_write: price,
  cache_write_1h: price.describe('Of what a cache keeps for an hour.'),
  reasoning: price,
  input_audio: price,
  output_audio: price,
  input_image: price.describe('With unit image: for each image that goes in.'),
  output_image: price,
}

const unitPrices = { per_unit: price, variants: z.record(z.string(), z.string()).nullable() }

const prices = {
  input: price,
  output: price,
  ...kinds,
  ...unitPrices,
  with_audio: z
    .object(unitPrices)
    .optional()
    .describe('Of videos with sound, where it has other prices; a request for sound without one is refused.'),
  pixel_tiers: z
    .array(z.object({ from_pixels: z.int(), per_unit: z.string() }))
    .describe('Prices of larger images; per_unit holds below the first.'),
  tiers: z.array(z.object({ from_prompt_tokens: z.int(), input: z.string(), output: z.string(), ...kinds })),
  server_tool_call: price,
  server_tools: z.record(z.string(), z.string()).nullable().describe('Tools with a separate price.'),
  service_tiers: z
    .record(z.string(), z.string())
    .nullable()
    .describe('Factors on the whole call, by the service tier in which it is served.'),
  minimum: price.describe('What a call costs at least.'),
  discount: price.describe('A factor on tokens and units; null when none is in force.'),
  discount_server_tools: z.boolean().optional().describe('true: the discount holds for server tools too.'),
  discount_until: z.string().nullable(),
}

const pricing = z.object({
  unit: z.enum(PRICE_UNITS),
  ...prices,
  changes: z
    .array(z.object({ from: z.string(), ...prices }))
    .describe('Planned prices, in their order: calls that are submitted from the instant on cost so much.'),
})

export const publicCatalog = z.object({
  models: z.array(
    z.object({
      id: z.string(),
      display_name: z.string(),
      family: z.string().nullable(),
      owned_by: z.string(),
      callable: z.boolean().describe('false: a placeholder; calling it is model_not_found.'),
      endpoint_type: z.enum(ENDPOINT_TYPES).nullable().describe('null: an ordinary chat model.'),
      supported_protocols: z.array(chatProtocol).describe('Client protocols that are served natively.'),
      translated_protocols: z
        .array(chatProtocol)
        .describe('Client protocols that are served by translation.'),
      aliases: z.array(z.string()),
      context_window: z.int().nullable(),
      max_output_tokens: z.int().nullable(),
      default_max_tokens: z.int().nullable(),
      capabilities: z.object({
        vision: z.boolean(),
        function_tools: z.boolean(),
        web_search: z.boolean(),
        image_generation: z.boolean(),
        reasoning: z.boolean(),
        ...rareTools,
      }),
      images: z
        .object({
          grid: z.boolean().describe('Makes four images whatever n is.'),
          ratio_in_prompt: z.boolean().describe('A size only selects the ratio of the sides.'),
          default_size: z.string().nullable().describe('What is made, and priced, where no size is given.'),
        })
        .nullable()
        .describe('Of image models that do something in their own way.'),
      videos: z
        .object({
          default_audio: z.boolean().describe('Sound is made where generate_audio is left out.'),
        })
        .optional()
        .describe('Of video models that do something in their own way.'),
      pricing: pricing.nullable().describe('In credits, decimal strings.'),
    }),
  ),
})
export type PublicModel = z.infer<typeof publicCatalog>['models'][number]

export const keyBalance = z.object({
  object: z.literal('key.balance'),
  currency,
  remaining: z.string(),
  used: z.string(),
  total: z.string().describe('What remains, what is held and what was used.'),
  held: z.string(),
  spend_cap: z.string().optional().describe('What the key may spend in all, where it has a cap.'),
  spent: z.string().optional().describe('What a capped key has spent of it.'),
  budgets: z
    .array(
      z.object({
        id: z.string(),
        scope: budgetScope,
        amount: z.string(),
        spent: z.string().describe('In the current period.'),
        period: budgetPeriod,
        timezone: z.string(),
        resets_at: z.string().nullable().describe('RFC 3339, UTC.'),
      }),
    )
    .optional()
    .describe('Those that cover the key, where there are any.'),
})
