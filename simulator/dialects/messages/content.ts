/** Content blocks of answers of the messages dialect, whole and in the pieces of a stream. */

import type { Search } from '../../answers/built-in-tools.ts'
import type { Choice, ToolCall } from '../../answers/script.ts'
import { tokensOfJson } from '../../answers/words.ts'
import { isObject } from '../../dialect.ts'
import { seal, sign } from './blocks.ts'

export type ContentBlock = {
  readonly whole: Record<string, unknown>
  /** The block at its start. */
  readonly opening: Record<string, unknown>
  readonly openingTokens: number
  /** Can be iterated once. */
  readonly deltas: Iterable<Delta>
}

type Delta = { readonly json: string; readonly tokens: number }

type ContentOptions = {
  /** True for a `thinking` block even if its text is not shown. */
  readonly thinks: boolean
  readonly sealsReasoning: boolean
  /** The field that distinguishes a sealed block from an empty thought. */
  readonly id: string
}

export function readContent(choice: Choice, { thinks, sealsReasoning, id }: ContentOptions): ContentBlock[] {
  const reasons = choice.reasoningTokens > 0
  return [
    ...(choice.reasoning.length > 0 || (reasons && thinks) ? [thinkingBlock(choice.reasoning)] : []),
    ...(sealsReasoning && reasons ? [makeSealedBlock(id)] : []),
    ...choice.searches.flatMap((search) => [searchBlock(search), resultBlock(search)]),
    ...(choice.text.length > 0 ? [textBlock(choice)] : []),
    ...choice.toolCalls.map(toolBlock),
  ]
}

const text = (type: string, field: string, value: string, tokens: number): Delta => ({
  json: `{"type":"${type}","${field}":${JSON.stringify(value)}}`,
  tokens,
})

function thinkingBlock(reasoning: readonly string[]): ContentBlock {
  const thinking = reasoning.join('')
  const signature = sign(thinking)
  return {
    whole: { type: 'thinking', thinking, signature },
    opening: { type: 'thinking', thinking: '', signature: '' },
    openingTokens: 0,
    deltas: thinkingDeltas(reasoning, signature),
  }
}

function* thinkingDeltas(reasoning: readonly string[], signature: string): Iterable<Delta> {
  for (const token of reasoning) yield text('thinking_delta', 'thinking', token, 1)
  yield text('signature_delta', 'signature', signature, 0)
}

function makeSealedBlock(id: string): ContentBlock {
  const whole = { type: 'redacted_thinking', data: seal(id) }
  return { whole, opening: whole, openingTokens: 0, deltas: [] }
}

function searchBlock({ id, query }: Search): ContentBlock {
  const called = { type: 'server_tool_use', id: `srvtoolu_${id}`, name: 'web_search' }
  const pieces = ['', ...tokensOfJson(JSON.stringify({ query }))]
  return {
    whole: { ...called, input: { query } },
    opening: { ...called, input: {} },
    openingTokens: 0,
    deltas: pieces.map((piece) => text('input_json_delta', 'partial_json', piece, 0)),
  }
}

function resultBlock({ id, sources }: Search): ContentBlock {
  const content = sources.map(({ url, title }) => ({
    ...{ type: 'web_search_result', url, title, encrypted_content: seal(url), page_age: null },
  }))
  const whole = { type: 'web_search_tool_result', tool_use_id: `srvtoolu_${id}`, content }
  return { whole, opening: whole, openingTokens: 0, deltas: [] }
}

function textBlock(choice: Choice): ContentBlock {
  const citations = choice.searches.flatMap(({ sources }) =>
    sources.map(({ url, title }) => ({
      type: 'web_search_result_location',
      cited_text: title,
      encrypted_index: seal(title),
      title,
      url,
    })),
  )
  const cited = citations.length > 0
  return {
    whole: { type: 'text', text: choice.text.join(''), ...(cited ? { citations } : {}) },
    opening: { type: 'text', text: '', ...(cited ? { citations: [] } : {}) },
    openingTokens: 0,
    deltas: textDeltas(citations, choice.text),
  }
}

function* textDeltas(citations: readonly unknown[], tokens: readonly string[]): Iterable<Delta> {
  for (const citation of citations)
    yield { json: JSON.stringify({ type: 'citations_delta', citation }), tokens: 0 }
  for (const token of tokens) yield text('text_delta', 'text', token, 1)
}

/** Sends a tool without arguments as one empty piece, as the vendor does. */
function toolBlock({ id, name, pieces }: ToolCall): ContentBlock {
  const called = { type: 'tool_use', id: `toolu_${id}`, name }
  const json = pieces.join('')
  const sent = json === '{}' ? [] : pieces
  return {
    whole: { ...called, input: toObject(json) },
    opening: { ...called, input: {} },
    openingTokens: 1,
    deltas: [
      text('input_json_delta', 'partial_json', '', pieces.length - sent.length),
      ...sent.map((piece) => text('input_json_delta', 'partial_json', piece, 1)),
    ],
  }
}

/** Returns an empty object for arguments that were cut short or are not an object. */
function toObject(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}
