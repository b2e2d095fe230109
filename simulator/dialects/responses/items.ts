/** Output items of the responses dialect, whole and as events of a stream. */

import type { Picture, Search } from '../../answers/built-in-tools.ts'
import { type TokenLogprob, wireLogprobs } from '../../answers/logprobs.ts'
import type { Choice, ToolCall } from '../../answers/script.ts'
import { makeHexadecimalId, type Random } from '../../answers/words.ts'
import { seal } from '../messages/blocks.ts'

export type OutputItem = {
  /** The finished item. */
  readonly whole: Record<string, unknown>
  /** The item at its start. */
  readonly opening: Record<string, unknown>
  /** The events in between; can be iterated once. */
  readonly events: Iterable<ItemEvent>
}

/** An event of an item, without the fields that all events have. */
type ItemEvent = {
  readonly type: string
  readonly fields: Record<string, unknown>
  readonly tokens: number
}

type ItemOptions = {
  readonly random: Random
  readonly sealsReasoning: boolean
  /** True if the last item was cut short. */
  readonly isCut: boolean
}

export function outputItems(choice: Choice, { random, sealsReasoning, isCut }: ItemOptions): OutputItem[] {
  const id = (prefix: string) => `${prefix}_${makeHexadecimalId(random)}`
  const speaks = choice.toolCalls.length === 0 && (choice.text.length > 0 || !isCut)
  const status = isCut ? 'incomplete' : 'completed'
  const lastCall = choice.toolCalls.length - 1
  return [
    ...(choice.reasoningTokens > 0 ? [reasoningItem(id('rs'), choice.reasoning, sealsReasoning)] : []),
    ...choice.searches.map(searchItem),
    ...choice.pictures.map(pictureItem),
    ...(speaks ? [messageItem(id('msg'), choice, status)] : []),
    ...choice.toolCalls.map((call, index) =>
      callItem(
        id(call.tool.isCustom === true ? 'ctc' : 'fc'),
        call,
        index === lastCall ? status : 'completed',
      ),
    ),
  ]
}

const event = (type: string, fields: Record<string, unknown> = {}, tokens = 0): ItemEvent => ({
  type: `response.${type}`,
  fields,
  tokens,
})

function reasoningItem(id: string, reasoning: readonly string[], isSealed: boolean): OutputItem {
  const text = reasoning.join('')
  const encrypted = isSealed ? { encrypted_content: seal(id) } : {}
  const summary = reasoning.length > 0 ? [{ type: 'summary_text', text }] : []
  return {
    whole: { id, type: 'reasoning', ...encrypted, summary },
    opening: { id, type: 'reasoning', ...encrypted, summary: [] },
    events: reasoning.length > 0 ? summaryEvents(reasoning, text) : [],
  }
}

function* summaryEvents(reasoning: readonly string[], text: string): Iterable<ItemEvent> {
  const at = { summary_index: 0 }
  yield event('reasoning_summary_part.added', { ...at, part: { type: 'summary_text', text: '' } })
  for (const delta of reasoning) yield event('reasoning_summary_text.delta', { ...at, delta }, 1)
  yield event('reasoning_summary_text.done', { ...at, text })
  yield event('reasoning_summary_part.done', { ...at, part: { type: 'summary_text', text } })
}

function searchItem({ id, query, sources }: Search): OutputItem {
  const item = { id: `ws_${id}`, type: 'web_search_call' }
  const action = { type: 'search', query, sources: sources.map(({ url }) => ({ type: 'url', url })) }
  return {
    whole: { ...item, status: 'completed', action },
    opening: { ...item, status: 'in_progress' },
    events: ['in_progress', 'searching', 'completed'].map((state) => event(`web_search_call.${state}`)),
  }
}

function pictureItem({ id, prompt, base64 }: Picture): OutputItem {
  const item = { id: `ig_${id}`, type: 'image_generation_call' }
  const drawn = { background: 'opaque', output_format: 'png', quality: 'low', size: '1024x1024' }
  return {
    whole: { ...item, status: 'completed', ...drawn, revised_prompt: prompt, result: base64 },
    opening: { ...item, status: 'in_progress', result: null },
    events: [
      event('image_generation_call.in_progress'),
      event('image_generation_call.generating'),
      event('image_generation_call.partial_image', {
        partial_image_index: 0,
        partial_image_b64: base64,
        ...drawn,
      }),
      event('image_generation_call.completed'),
    ],
  }
}

function messageItem(id: string, choice: Choice, status: string): OutputItem {
  const text = choice.text.join('')
  const annotations = makeAnnotations(choice, text)
  const part = { type: 'output_text', annotations, logprobs: wireLogprobs(choice.logprobs ?? []), text }
  const item = { id, type: 'message', role: 'assistant' }
  return {
    whole: { ...item, status, content: [part] },
    opening: { ...item, status: 'in_progress', content: [] },
    events: textEvents(choice, part),
  }
}

type TextPart = { readonly annotations: readonly unknown[]; readonly text: string }

function* textEvents(choice: Choice, part: TextPart): Iterable<ItemEvent> {
  const at = { content_index: 0 }
  const logprobs = (choice.logprobs ?? []).map(eventLogprob)
  yield event('content_part.added', { ...at, part: { ...part, annotations: [], logprobs: [], text: '' } })
  for (const [index, delta] of choice.text.entries())
    yield event('output_text.delta', { ...at, delta, logprobs: logprobs.slice(index, index + 1) }, 1)
  for (const [index, annotation] of part.annotations.entries())
    yield event('output_text.annotation.added', { ...at, annotation_index: index, annotation })
  yield event('output_text.done', { ...at, text: part.text, logprobs })
  yield event('content_part.done', { ...at, part })
}

/** Without the bytes that whole parts have. */
const eventLogprob = ({ token, logprob, top }: TokenLogprob) => ({ token, logprob, top_logprobs: top })

/** Every source is cited for the whole text; positions are characters. */
function makeAnnotations({ searches }: Choice, text: string): unknown[] {
  const end = [...text].length
  return searches.flatMap(({ sources }) =>
    sources.map(({ url, title }) => ({ type: 'url_citation', start_index: 0, end_index: end, title, url })),
  )
}

function callItem(id: string, call: ToolCall, status: string): OutputItem {
  const { isCustom, namespace } = call.tool
  const type = isCustom === true ? 'custom_tool_call' : 'function_call'
  const field = isCustom === true ? 'input' : 'arguments'
  const item = { id, type, call_id: `call_${call.id}`, name: call.name, ...(namespace && { namespace }) }
  const text = call.pieces.join('')
  return {
    whole: { ...item, status, [field]: text },
    opening: { ...item, status: 'in_progress', [field]: '' },
    events: inputEvents(
      call,
      `${type}_${field}`,
      isCustom === true ? { input: text } : { name: call.name, arguments: text },
    ),
  }
}

/** The first piece of the input counts the call's name too. */
function* inputEvents(
  { pieces }: ToolCall,
  type: string,
  done: Record<string, unknown>,
): Iterable<ItemEvent> {
  for (const [index, delta] of pieces.entries()) yield event(`${type}.delta`, { delta }, index === 0 ? 2 : 1)
  yield event(`${type}.done`, done, pieces.length === 0 ? 1 : 0)
}
