/** The recorded streams of the responses protocol, and what each says, found out the slow way: with JSON.parse. */
import { readdirSync, readFileSync } from 'node:fs'
import type { z } from 'zod'
import type { responsesUsage } from '../../../../schemas/chat/responses.ts'
import type { ServerTool } from '../../../../schemas/config/catalog.ts'
import { keepExtra, NO_USAGE, type TokenUsage } from '../../../../src/core/pricing/usage.ts'
import { ResponsesMeter } from '../../../../src/protocols/responses/meter.ts'
import { payloads, weighed } from '../chat-completions/reference.ts'
import { outputInPieces } from '../every-split.ts'

const FIXTURES = new URL('../../../fixtures/responses/', import.meta.url)

export const RESPONSES_STREAMS: ReadonlyMap<string, Buffer> = new Map(
  readdirSync(FIXTURES)
    .filter((file) => file.endsWith('.sse'))
    .map((file) => [file.replace('.sse', ''), readFileSync(new URL(file, FIXTURES))]),
)

export interface Said {
  usage: TokenUsage | null
  characters: number
  charactersSinceUsage: number
  isComplete: boolean
  serverToolCalls: number
}

const isFree = ({ type, action }: { type: string; action?: { type: string } | null }) =>
  type === 'web_search_call' && (action?.type ?? 'search') !== 'search'
const TOOL_ITEMS = ['web_search_call', 'image_generation_call', 'file_search_call', 'code_interpreter_call']

/** Reports are cumulative: what one takes back of another is not believed. */
function takeReport(said: Said, usage: z.infer<typeof responsesUsage>): void {
  const { input_tokens, input_tokens_details, output_tokens, output_tokens_details } = usage
  const before = said.usage ?? NO_USAGE
  const [prompt, output] = [input_tokens!, output_tokens!]
  const isMorePrompt = prompt >= before.prompt
  said.usage = {
    prompt: Math.max(before.prompt, prompt),
    cached: isMorePrompt ? input_tokens_details!.cached_tokens! : before.cached,
    cacheWrite: 0,
    output: Math.max(before.output, output),
    reasoning: Math.max(before.reasoning, output_tokens_details!.reasoning_tokens!),
    serverToolCalls: 0,
  }
  if (output > before.output) said.charactersSinceUsage = 0
}

/** A stream that lacks its last empty line is to be given with it. */
export function referenceOf(stream: string): Said {
  const said: Said = {
    usage: null,
    characters: 0,
    charactersSinceUsage: 0,
    isComplete: false,
    serverToolCalls: 0,
  }
  const tools: Partial<Record<ServerTool, number>> = {}
  for (const payload of payloads(stream)) {
    if (payload === '[DONE]') continue
    const { type, delta, item, response } = JSON.parse(payload)
    if (type.endsWith('.delta') && type !== 'response.audio.delta') {
      said.characters += weighed(delta)
      said.charactersSinceUsage += weighed(delta)
    }
    if (type === 'response.output_item.done' && TOOL_ITEMS.includes(item.type) && !isFree(item)) {
      said.serverToolCalls++
      const tool = item.type.replace('_call', '') as ServerTool
      tools[tool] = (tools[tool] ?? 0) + 1
    }
    if (['response.completed', 'response.incomplete'].includes(type)) said.isComplete = true
    if (response?.usage != null) takeReport(said, response.usage)
  }
  const { usage, serverToolCalls } = said
  // Tools that have run cost, reported or not.
  if (usage !== null || serverToolCalls > 0)
    said.usage = { ...(usage ?? NO_USAGE), serverToolCalls, ...keepExtra({ tools }) }
  return said
}

export function saidBy(meter: ResponsesMeter): Said {
  const { usage, characters, charactersSinceUsage, isComplete } = meter
  const serverToolCalls = usage?.serverToolCalls ?? 0
  return { usage, characters, charactersSinceUsage, isComplete, serverToolCalls }
}

/** What comes out when `stream` arrives in the pieces that end at `cuts`. The buffer is one, as the client's is. */
export function runInPieces(stream: Buffer, cuts: readonly number[]) {
  const meter = new ResponsesMeter()
  const output = outputInPieces(meter, stream, cuts)
  return { output, said: saidBy(meter), firstError: meter.firstError?.toString() ?? null }
}
