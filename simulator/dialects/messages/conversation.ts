/** Checks conversations as the messages interface does: whose turn it is, and which results answer which tools. */

import { isObject } from '../../dialect.ts'
import { type Block, readBlocks } from './blocks.ts'
import { invalid, strictObject } from './fields.ts'

const MAX_CACHE_BREAKPOINTS = 4

type Message = {
  readonly role: 'user' | 'assistant' | 'system'
  /** Its index among all messages. */
  readonly at: number
  readonly blocks: readonly Block[]
}
type Turn = Message & { readonly role: 'user' | 'assistant' }

type ConversationOptions = {
  /** True if the request turns thinking on. */
  readonly thinks: boolean
  readonly hasTools: boolean
}

/** @throws {SimulatedFailure} 400 as the vendor would, in its words. */
export function checkConversation(messages: unknown, { thinks, hasTools }: ConversationOptions): void {
  if (messages === undefined) throw invalid('messages: Field required')
  if (!Array.isArray(messages)) throw invalid('messages: Input should be a valid list')
  if (messages.length === 0) throw invalid('messages: at least one message is required')
  const turns = readTurns(messages.map(readMessage))
  if (turns[0]?.role !== 'user') throw invalid('messages: first message must use the "user" role')
  for (const [index, { role, blocks, at }] of turns.entries()) {
    const isPrefill = role === 'assistant' && index === turns.length - 1
    if (blocks.length === 0 && !isPrefill) {
      const rule = 'all messages must have non-empty content except for the optional final assistant message'
      throw invalid(`messages.${at}: ${rule}`)
    }
  }
  checkTools(turns, hasTools)
  checkPrefill(turns)
  if (thinks) checkThinkingLeads(turns)
}

/** @throws {SimulatedFailure} 400 for too many cache breakpoints */
export function checkCacheBreakpoints(body: Record<string, unknown>): void {
  let found = 0
  const count = (value: unknown): void => {
    if (Array.isArray(value)) for (const part of value) count(part)
    if (!isObject(value)) return
    if (isObject(value.cache_control)) found += 1
    if ('content' in value) count(value.content)
  }
  for (const field of ['system', 'tools', 'messages']) count(body[field])
  if (found <= MAX_CACHE_BREAKPOINTS) return
  throw invalid(
    `A maximum of ${MAX_CACHE_BREAKPOINTS} blocks with cache_control may be provided. Found ${found}.`,
  )
}

function readMessage(message: unknown, at: number): Message {
  const path = `messages.${at}`
  const { role, content } = strictObject(message, path, ['role', 'content'])
  if (role === 'user' || role === 'assistant')
    return { role, at, blocks: readBlocks(content, role, `${path}.content`) }
  if (role === 'system' && at > 0) return { role, at, blocks: readSystem(content, `${path}.content`) }
  if (role === undefined) throw invalid(`${path}.role: Field required`)
  throw invalid(
    role === 'system'
      ? 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.'
      : `messages: Unexpected role "${role}". Allowed roles are "user" or "assistant"`,
  )
}

/** The text of a system message. */
function readSystem(content: unknown, path: string): Block[] {
  if (Array.isArray(content))
    for (const [index, block] of content.entries())
      if (!isObject(block) || block.type !== 'text')
        throw invalid(`${path}.${index}.type: Input should be 'text'`)
  return readBlocks(content, 'user', path)
}

/** Returns the turns. A system message is not a turn; it must stand between a user's and the assistant's. */
function readTurns(messages: readonly Message[]): readonly Turn[] {
  for (const [index, { role, blocks }] of messages.entries()) {
    if (role !== 'system') continue
    const next = messages[index + 1]?.role ?? 'assistant'
    if (messages[index - 1]?.role !== 'user' || next !== 'assistant')
      throw invalid(
        `messages.${index}: a \`system\` message must follow a \`user\` message, and be last or precede an \`assistant\` message`,
      )
    if (blocks.length === 0) throw invalid(`messages.${index}: all messages must have non-empty content`)
  }
  return messages.filter((message): message is Turn => message.role !== 'system')
}

function checkTools(turns: readonly Turn[], hasTools: boolean): void {
  const known = new Set<string>()
  for (const [index, { blocks, at }] of turns.entries()) {
    const uses = listIds(blocks, 'tool_use', 'id')
    for (const id of uses) {
      if (known.has(id)) throw invalid('messages: `tool_use` ids must be unique')
      known.add(id)
    }
    if (uses.length > 0) checkAnswered(turns, index, uses)
    checkResults(turns, index)
    checkServerResults(blocks, at)
    if (!hasTools && (uses.length > 0 || listIds(blocks, 'tool_result', 'tool_use_id').length > 0)) {
      throw invalid('Requests which include `tool_use` or `tool_result` blocks must define tools')
    }
  }
}

/** Checks that the results stand at the beginning of the next message. */
function checkAnswered(turns: readonly Turn[], index: number, uses: readonly string[]): void {
  const next = turns[index + 1]?.blocks ?? []
  const end = next.findIndex(({ type }) => type !== 'tool_result')
  const answered = listIds(end < 0 ? next : next.slice(0, end), 'tool_result', 'tool_use_id')
  const missing = uses.filter((id) => !answered.includes(id))
  if (missing.length === 0) return
  throw invalid(
    `messages.${turns[index]?.at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}. ` +
      'Each `tool_use` block must have a corresponding `tool_result` block in the next message.',
  )
}

function checkResults(turns: readonly Turn[], index: number): void {
  const uses = listIds(turns[index - 1]?.blocks ?? [], 'tool_use', 'id')
  const answered = new Set<string>()
  const turn = turns[index]
  for (const [at, block] of (turn?.blocks ?? []).entries()) {
    if (block.type !== 'tool_result') continue
    const id = String(block.tool_use_id)
    const path = `messages.${turn?.at}.content.${at}`
    if (!uses.includes(id)) {
      throw invalid(
        `${path}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. ` +
          'Each `tool_result` block must have a corresponding `tool_use` block in the previous message.',
      )
    }
    if (answered.has(id)) {
      throw invalid(
        `${path}: each \`tool_use\` must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`,
      )
    }
    answered.add(id)
  }
}

function checkServerResults(blocks: readonly Block[], at: number): void {
  const uses = listIds(blocks, 'server_tool_use', 'id')
  const orphan = listIds(blocks, 'web_search_tool_result', 'tool_use_id').find((id) => !uses.includes(id))
  if (orphan === undefined) return
  throw invalid(
    `messages.${at}: \`web_search_tool_result\` block with id ${orphan} must have a corresponding \`server_tool_use\` block before it`,
  )
}

function checkPrefill(turns: readonly Turn[]): void {
  const last = turns.at(-1)
  const text = last?.role === 'assistant' ? last.blocks.at(-1)?.text : null
  if (typeof text === 'string' && text !== text.trimEnd())
    throw invalid('messages: final assistant content cannot end with trailing whitespace')
}

/** While tools are being answered, the turn that called them must begin with its thinking. */
function checkThinkingLeads(turns: readonly Turn[]): void {
  const last = turns.at(-1)
  if (last === undefined) return
  const answersTools = last.blocks.some(({ type }) => type === 'tool_result')
  const index = last.role === 'assistant' ? turns.length - 1 : answersTools ? turns.length - 2 : -1
  const first = turns[index]?.blocks[0]?.type
  if (index < 0 || first === 'thinking' || first === 'redacted_thinking') return
  throw invalid(
    `messages.${turns[index]?.at}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first}\`. ` +
      'When `thinking` is enabled, a final `assistant` message must start with a thinking block ' +
      '(preceeding the lastmost set of `tool_use` and `tool_result` blocks).',
  )
}

function listIds(blocks: readonly Block[], type: string, field: string): string[] {
  return blocks.filter((block) => block.type === type).map((block) => String(block[field]))
}
