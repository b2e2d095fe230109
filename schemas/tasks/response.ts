/**
 * An answer of the responses protocol that its upstream makes in the background: its order and the facts of its result,
 * as they are kept with its task. The text of neither is in them.
 */
import { z } from 'zod'
import { SERVER_TOOLS } from '../config/catalog.ts'

const number = z.number()
const tools = z.partialRecord(z.enum(SERVER_TOOLS), number)

/** Counts of tokens, as `src/core/pricing/usage.ts` has them. */
const tokenUsage = z.object({
  prompt: number,
  cached: number,
  cacheWrite: number,
  output: number,
  reasoning: number,
  serverToolCalls: number,
  extra: z
    .object({
      cacheWrite1h: number,
      inputAudio: number,
      inputImage: number,
      outputAudio: number,
      outputImage: number,
      tools,
    })
    .optional(),
})

const partCounts = z.object({ image: number, file: number, audio: number })

/** The parts of a request that decide its estimate, bound its usage, and go into the detail of its call. */
export const responseCall = z.object({
  /** As the client named it. */
  model: z.string(),
  outputLimit: number.nullable(),
  choices: number,
  promptBytes: number,
  /** Bytes of UTF-8 characters behind the first of each. */
  laterBytes: number,
  links: partCounts.extend({ inline: partCounts.extend({ bytes: number }).optional() }),
  builtInTools: z.array(z.enum(SERVER_TOOLS)),
  toolCallLimit: number.nullable(),
  serviceTier: z.string().optional(),
  settings: z.string(),
})
export type ResponseCall = z.infer<typeof responseCall>

export const responseFacts = z.object({
  /** The upstream's. */
  id: z.string(),
  /** The upstream's own word. */
  status: z.string(),
  /** Null where none was reported. */
  usage: tokenUsage.nullable(),
  isUsageWhole: z.boolean(),
  /** Characters of output, weighed by script, and those that the usage does not account for. */
  characters: number,
  charactersSinceUsage: number,
  /** Contradictions in the usage; empty without any. */
  suspect: z.string(),
  /** The usage as it came; null where none came. */
  reported: z.unknown(),
  /** In the upstream's own word; empty where it names none. */
  serviceTier: z.string(),
  /** The upstream's ids of the items of its output; absent without any. */
  itemIds: z.array(z.string()).optional(),
  /** Why it failed; null where it did not. */
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
})
export type ResponseFacts = z.infer<typeof responseFacts>

/** A price by tokens, with what bounds a call of its model, as they held when the request came. */
const keptTokenPrice = z.object({
  unit: z.literal('1M_tokens'),
  /** The model's `pricing`, as the configuration file has it. */
  pricing: z.record(z.string(), z.unknown()),
  model: z.object({
    context_window: number.optional(),
    max_output_tokens: number.optional(),
    estimate: z.object({
      server_tool_calls: number,
      image_tokens: number,
      file_tokens: number,
      audio_tokens: number,
    }),
  }),
})
export type KeptTokenPrice = z.infer<typeof keptTokenPrice>
