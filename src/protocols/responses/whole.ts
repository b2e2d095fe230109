/** One whole answer of the responses protocol. See docs/api-rules.md, "Responses". */
import { NO_USAGE } from '../../core/pricing/usage.ts'
import { answerFields, charactersOf, hasItemContent, saysError } from '../answer/content.ts'
import { isOutputReported, meteredWhole, modelIn } from '../answer/reported-usage.ts'
import type { WholeAnswer } from '../dialect.ts'
import { fieldsOf, type LooseObject, listOf, textOf } from '../loose.ts'
import { MAX_ITEMS } from './meter.ts'
import { itemFacts, ServerToolItems } from './tool-items.ts'
import { readResponsesUsage } from './usage.ts'

const saidInParts = (parts: unknown): number =>
  listOf(parts)
    .map(fieldsOf)
    .reduce((sum, { text, refusal }) => sum + charactersOf(textOf(text)) + charactersOf(textOf(refusal)), 0)

/**
 * Returns the characters of output in one item, weighed by script: its text, its reasoning, the arguments of its
 * calls.
 */
const saidIn = (item: LooseObject): number =>
  saidInParts(item.content) +
  saidInParts(item.summary) +
  charactersOf(textOf(item.arguments)) +
  (item.type === 'custom_tool_call' ? charactersOf(textOf(item.input)) : 0)

export function readWholeResponse(body: Buffer, provider?: string): WholeAnswer {
  const response = answerFields(body)
  const items = listOf(response?.output).map(fieldsOf)
  const report = readResponsesUsage(response?.usage)
  const tools = new ServerToolItems(provider)
  for (const item of items) tools.add(itemFacts(item))
  tools.report(response?.usage)
  const characters = items.reduce((sum, item) => sum + saidIn(item), 0)
  const metered = meteredWhole(report, characters, {
    usage: response?.usage,
    serviceTier: textOf(response?.service_tier),
  })
  const isUsed = metered.usage !== null || tools.calls > 0
  return {
    body,
    metered: {
      ...metered,
      // As in a stream: without a report, the tools have run all the same.
      usage: isUsed ? tools.addTo(metered.usage ?? NO_USAGE) : null,
      ...modelIn(response?.model),
      responseId: textOf(response?.id),
      itemIds: items
        .map(({ id }) => textOf(id))
        .filter((id) => id !== '')
        .slice(0, MAX_ITEMS),
    },
    isAnswer:
      response !== null && !hasFailed(response) && (isOutputReported(report) || hasItemContent(response)),
  }
}

const hasFailed = (response: LooseObject): boolean => response.status === 'failed' || saysError(response)
