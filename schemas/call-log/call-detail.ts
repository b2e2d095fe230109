/**
 * The settings and the outcome of a call, beyond the other columns of its row, as JSON. One is kept for every call
 * ever made: fields that the client did not send, and usual values, are left out. Never any text of a prompt or an
 * answer. Only what is for operators names a channel.
 */
import { z } from 'zod'
import { CHAT_PROTOCOLS, SERVER_TOOLS } from '../config/catalog.ts'

const count = z.int().min(0)
/** Names and values, as they are shown. */
const lines = z.array(z.tuple([z.string(), z.string()]))

/** Prices of 1M tokens; of one call of a tool; a factor on everything; and the prompt tokens from which this tier holds. */
const prices = z.object({
  input: z.string(),
  cached_input: z.string(),
  cache_write: z.string(),
  output: z.string(),
  // Kinds of tokens with another price than the usual one for them.
  cache_write_1h: z.string().optional(),
  reasoning: z.string().optional(),
  input_audio: z.string().optional(),
  output_audio: z.string().optional(),
  input_image: z.string().optional(),
  output_image: z.string().optional(),
  server_tool_call: z.string().optional(),
  server_tools: z.partialRecord(z.enum(SERVER_TOOLS), z.string()).optional(),
  discount: z.string().optional(),
  /** Absent where the tools have the discount of the tokens. */
  tool_discount: z.string().optional(),
  /** The upstream's word for it, with its factor on everything. */
  service_tier: z.string().optional(),
  service_tier_factor: z.string().optional(),
  minimum: z.string().optional(),
  from_prompt_tokens: count.optional(),
})
export type StoredPrices = z.infer<typeof prices>

/** Counts that the row has no columns for: parts of its other counts. */
const counts = z.object({
  cache_write_1h: count.optional(),
  input_audio: count.optional(),
  input_image: count.optional(),
  output_audio: count.optional(),
  output_image: count.optional(),
  server_tools: z.partialRecord(z.enum(SERVER_TOOLS), count).optional(),
})
export type StoredCounts = z.infer<typeof counts>

/** What one of several models is charged for. */
const modelCharge = z.object({
  model: z.string(),
  /** The model whose price holds, where the catalog has none of that name: the dearest of the channel. */
  priced_as: z.string().optional(),
  input_tokens: count,
  cached_tokens: count,
  cache_write_tokens: count,
  output_tokens: count,
  reasoning_tokens: count,
  server_tool_calls: count,
  counts: counts.optional(),
  prices,
  /** Units of 1e-8 credit. */
  cost: z.string().regex(/^\d+$/),
})
export type StoredModelCharge = z.infer<typeof modelCharge>

export const CALL_DETAIL_FIELDS = {
  // The client's request.
  /** The path, where the protocol does not imply it. */
  endpoint: z.string(),
  /** The requested model, where it was an alias. */
  model_as_asked: z.string(),
  /** Bytes of the JSON that the pre-charge counts as input. */
  prompt_bytes: count,
  /** Messages, contents or input items. */
  messages: count,
  /** The output limit, tokens. */
  max_output_tokens: count,
  /** Choices, or candidates. */
  choices: count,
  temperature: z.number(),
  top_p: z.number(),
  top_k: z.number(),
  frequency_penalty: z.number(),
  presence_penalty: z.number(),
  seed: z.number(),
  stop_sequences: count,
  /** Reasoning effort, or level of thinking. */
  reasoning_effort: z.string(),
  /** Budget of thinking, tokens; negative where the upstream is to decide. */
  thinking_budget_tokens: z.number(),
  /** Tools declared, those of the upstream's own among them. */
  tools: count,
  /** The requested service tier, where it can change the price. */
  service_tier: z.string(),
  /** Tools that run at the upstream, separated by commas. */
  built_in_tools: z.string(),
  /** Tool choice, with the name of a tool where one is forced. */
  tool_choice: z.string(),
  response_format: z.string(),
  /** The agent that answered. */
  agent: z.string(),
  /** Pages of its knowledge bases that it was given. */
  knowledge_pages: count,
  /** The request, where it is no chat call. */
  request: lines,

  // The outcome at the upstream; of several attempts, the last.
  /** The upstream's protocol, where the gateway translated. */
  upstream_protocol: z.enum(CHAT_PROTOCOLS),
  /** Fields that the translation left out, with reasons, separated by semicolons. */
  left_out: z.string(),
  /** The HTTP status of the upstream's answer, where it was not 200. */
  upstream_status: count,
  /** Microseconds from the arrival of the request until the attempt was sent. */
  before_upstream_us: count,
  /** And from there until the upstream's status came. */
  waiting_for_upstream_us: count,
  /** Reported counts that no call can have, with the bounds at which they were charged, separated by commas. */
  usage_suspect: z.string(),
  /** The numbers of such a report, as it came: JSON, cut where it is long. For operators: it may have costs. */
  usage_reported: z.string(),
  /** The attempts that failed by the fault of their channel, `1:primary 2:spare`. For operators: customers see no channel. */
  failed_channels: z.string(),
  /** 1 where the upstream names another model in its answer than was requested. */
  answered_by_other_model: count,
  /** The result of a job that outlives its request. */
  result: lines,

  // The cost.
  counts,
  /** The prices that held. */
  prices,
  /** Counts and prices of each model, where several made the answer. */
  models: z.array(modelCharge),
  /** The calculation of a cost that is not by tokens. */
  charge: z.string(),
  /** The ids of the refused calls that the row stands for, without what is the same of all; separated by spaces. */
  shared_ids: z.string(),
  /** The estimate that was refused, in units of 1e-8 credit. */
  refused_estimate: z.string().regex(/^\d+$/),
}

type Fields = typeof CALL_DETAIL_FIELDS
export type CallDetail = { readonly [Key in keyof Fields]?: z.infer<Fields[Key]> }

type KeysFor<T> = {
  [Key in keyof Fields]: z.infer<Fields[Key]> extends T ? Key : never
}[keyof Fields]
export type NumberKey = KeysFor<number>
export type TextKey = KeysFor<string>
export type LinesKey = KeysFor<[string, string][]>
