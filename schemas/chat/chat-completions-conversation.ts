/**
 * The form of a chat-completions request that can be translated: stricter than for a native upstream, because here the
 * gateway itself has to understand every message. Unknown fields are allowed and ignored. See docs/api-rules.md, "Chat
 * protocols"; docs/translation.md, "The request".
 */
import { z } from 'zod'

const name = z.string().min(1)
/** A vendor's cache marker; kept as it is. */
const cacheControl = z.unknown().optional()

const textPart = z.looseObject({ type: z.literal('text'), text: z.string(), cache_control: cacheControl })
const imagePart = z.looseObject({
  type: z.literal('image_url'),
  image_url: z.union([z.string(), z.looseObject({ url: z.string() })]),
  cache_control: cacheControl,
})
const filePart = z.looseObject({
  type: z.literal('file'),
  file: z.looseObject({ file_data: z.string(), filename: z.string().nullish() }),
  cache_control: cacheControl,
})
const audioPart = z.looseObject({
  type: z.literal('input_audio'),
  input_audio: z.looseObject({ data: z.string(), format: z.string() }),
  cache_control: cacheControl,
})
const videoPart = z.looseObject({
  type: z.literal('video_url'),
  video_url: z.union([z.string(), z.looseObject({ url: z.string() })]),
  cache_control: cacheControl,
})
const refusalPart = z.looseObject({ type: z.literal('refusal'), refusal: z.string() })
const thinkingPart = z.looseObject({
  type: z.literal('thinking'),
  thinking: z.string().nullish(),
  signature: z.string().nullish(),
})
const sealedPart = z.looseObject({ type: z.literal('redacted_thinking'), data: z.string().nullish() })

/** Returns a message with the allowed values, without the client's own value. */
const noSuch = (what: string) => () => `such ${what} cannot be translated for this model`

const readablePart = z.discriminatedUnion('type', [textPart, imagePart, filePart, audioPart, videoPart], {
  error: noSuch('a content part'),
})
const spokenPart = z.discriminatedUnion('type', [textPart, refusalPart, thinkingPart, sealedPart], {
  error: noSuch('a content part'),
})

export type TextPart = z.infer<typeof textPart>
export type ReadablePart = z.infer<typeof readablePart>
export type SpokenPart = z.infer<typeof spokenPart>

const toolCall = z.looseObject({
  id: name,
  type: z.literal('function').nullish(),
  function: z.looseObject({ name, arguments: z.string().nullish() }),
})
export type CalledTool = z.infer<typeof toolCall>
/** A call as it was before there were tools. */
const functionCall = z.looseObject({ name, arguments: z.string().nullish() })

/** A picture of an earlier answer, as `message.images` of an answer has it. */
const answeredImage = z.looseObject({ image_url: z.looseObject({ url: z.string() }) })
export type AnsweredImage = z.infer<typeof answeredImage>

const instruction = { content: z.union([z.string(), z.array(textPart)]), cache_control: cacheControl }

const requestMessage = z.discriminatedUnion(
  'role',
  [
    z.looseObject({ role: z.literal('system'), ...instruction }),
    z.looseObject({ role: z.literal('developer'), ...instruction }),
    z.looseObject({
      role: z.literal('user'),
      content: z.union([z.string(), z.array(readablePart)]),
      cache_control: cacheControl,
    }),
    z.looseObject({
      role: z.literal('assistant'),
      content: z.union([z.string(), z.array(spokenPart)]).nullish(),
      refusal: z.string().nullish(),
      tool_calls: z.array(toolCall).nullish(),
      function_call: functionCall.nullish(),
      images: z.array(answeredImage).nullish(),
      thinking_blocks: z
        .array(z.discriminatedUnion('type', [thinkingPart, sealedPart], { error: noSuch('a block') }))
        .nullish(),
      cache_control: cacheControl,
    }),
    z.looseObject({
      role: z.literal('tool'),
      tool_call_id: name,
      content: z.union([z.string(), z.array(readablePart)]).nullish(),
      cache_control: cacheControl,
    }),
    z.looseObject({ role: z.literal('function'), name, content: z.string().nullish() }),
  ],
  { error: noSuch('a role') },
)
export type RequestMessage = z.infer<typeof requestMessage>
/** A message after legacy functions have become tools. */
export type ConversationMessage = Exclude<RequestMessage, { role: 'function' }>

/** Not even copied: a tool's schema goes to the upstream unchanged. */
export const untouchedObject = z.custom<Readonly<Record<string, unknown>>>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'it must be an object',
)

const offeredFunction = z.looseObject({
  name,
  description: z.string().nullish(),
  parameters: untouchedObject.nullish(),
  cache_control: cacheControl,
})
const offeredTool = z.looseObject({
  type: z.string(),
  function: offeredFunction.optional(),
  cache_control: cacheControl,
})
export type OfferedTool = z.infer<typeof offeredTool>

const namedFunction = z.looseObject({ function: z.looseObject({ name }) })
const toolChoice = z.union([
  z.enum(['auto', 'none', 'required']),
  z.discriminatedUnion('type', [
    z.looseObject({ type: z.literal('function'), ...namedFunction.shape }),
    z.looseObject({
      type: z.literal('allowed_tools'),
      allowed_tools: z.looseObject({ mode: z.enum(['auto', 'required']), tools: z.array(namedFunction) }),
    }),
  ]),
])
export type ToolChoice = z.infer<typeof toolChoice>

const legacyChoice = z.union([z.enum(['auto', 'none']), z.looseObject({ name })])

export const translatableChatRequest = z.looseObject({
  messages: z.array(requestMessage).min(1),
  tools: z.array(offeredTool).nullish(),
  tool_choice: toolChoice.nullish(),
  functions: z.array(offeredFunction).nullish(),
  function_call: legacyChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  top_k: z.int().nullish(),
  user: z.string().nullish(),
  safety_identifier: z.string().nullish(),
  reasoning_effort: z.string().nullish(),
  n: z.int().nullish(),
  // Its digits beyond those of a float change nothing.
  seed: z.number().refine(Number.isInteger, 'it must be an integer').nullish(),
  presence_penalty: z.number().nullish(),
  frequency_penalty: z.number().nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().nullish(),
  modalities: z.array(z.string()).nullish(),
  audio: z.looseObject({ voice: z.unknown(), format: z.string().nullish() }).nullish(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
  verbosity: z.string().nullish(),
  prompt_cache_key: z.string().nullish(),
  service_tier: z.string().nullish(),
})
export type TranslatableChatRequest = z.infer<typeof translatableChatRequest>
