/** Limits the messages, parts of content and tools of one request in any protocol. */
import { toFields, toList } from '../loose.ts'

/** In `messages`, `contents` or `input`. */
export const MAX_MESSAGES = 10_000
/** In all messages together. */
export const MAX_PARTS = 10_000
export const MAX_TOOLS = 1024
/**
 * Nodes on the tape of a request that is within all these limits without being counted: a message and a part take three
 * nodes at least. One with more is read by its contract, which counts.
 */
export const MAX_UNCOUNTED_NODES = 3 * Math.min(MAX_MESSAGES, MAX_PARTS)

interface CountFault {
  readonly field: string
  readonly why: string
}

const tooMany = (field: string, what: string, max: number): CountFault => ({
  field,
  why: `it holds more than ${max} ${what}; send fewer`,
})

const sumCounts = (list: readonly unknown[], countIn: (item: unknown) => number): number =>
  list.reduce<number>((sum, item) => sum + countIn(item), 0)

/** Returns the number of tools in an entry: one of the generate-content protocol declares several functions. */
const countTools = (tool: unknown): number => {
  const { functionDeclarations, function_declarations } = toFields(tool)
  return Math.max(1, toList(functionDeclarations ?? function_declarations).length)
}

const countParts = (message: unknown): number => {
  const { content, parts } = toFields(message)
  return toList(content ?? parts).length
}

/** Returns the limit that a parsed request exceeds; null for one within the limits. */
export function countFault(request: unknown): CountFault | null {
  const fields = toFields(request)
  for (const field of ['messages', 'contents', 'input']) {
    const messages = toList(fields[field])
    if (messages.length > MAX_MESSAGES) return tooMany(field, 'messages', MAX_MESSAGES)
    if (sumCounts(messages, countParts) > MAX_PARTS) return tooMany(field, 'parts of content', MAX_PARTS)
  }
  for (const field of ['tools', 'functions'])
    if (sumCounts(toList(fields[field]), countTools) > MAX_TOOLS) return tooMany(field, 'tools', MAX_TOOLS)
  return null
}
