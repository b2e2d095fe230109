/** One whole answer of the responses protocol. Source: specification, "POST /v1/responses", "Response (non-stream)". */
import type { WholeAnswer } from './dialect.ts'
import { fieldsOf, type Loose, parsedFields, textOf } from './loose.ts'
import { meteredWhole } from './reported-usage.ts'
import { readResponsesUsage } from './responses-usage.ts'
import { isServerToolItem } from './tools.ts'
import { charactersOf } from './translated-stream.ts'

const listOf = (value: unknown): readonly Loose[] => (Array.isArray(value) ? value.map(fieldsOf) : [])

const saidInParts = (parts: unknown): number =>
  listOf(parts).reduce(
    (sum, { text, refusal }) => sum + charactersOf(textOf(text)) + charactersOf(textOf(refusal)),
    0,
  )

/** Unicode characters that the model said in one item: its text, its reasoning, the arguments of its calls. */
const saidIn = (item: Loose): number =>
  saidInParts(item.content) +
  saidInParts(item.summary) +
  charactersOf(textOf(item.arguments)) +
  (item.type === 'custom_tool_call' ? charactersOf(textOf(item.input)) : 0)

export function readWholeResponse(body: Buffer): WholeAnswer {
  const response = parsedFields(body.toString('utf8'))
  const items = listOf(response?.output)
  const report = readResponsesUsage(response?.usage)
  const serverToolCalls = items.filter(({ type }) => isServerToolItem(type)).length
  const characters = items.reduce((sum, item) => sum + saidIn(item), 0)
  return {
    body,
    metered: meteredWhole(report && { ...report, serverToolCalls }, characters),
    isError: response === null || response.status === 'failed' || saysSomething(response.error),
  }
}

/** null, an empty text and an object without fields say nothing. */
const saysSomething = (error: unknown): boolean =>
  typeof error === 'object' && error !== null ? Object.keys(error).length > 0 : Boolean(error)
