/** One whole answer of the responses protocol. See docs/api-rules.md, "Responses". */
import { NO_USAGE } from '../../core/pricing/usage.ts'
import { answerFields, countTextCharacters, hasItemContent, saysError } from '../answer/content.ts'
import { isOutputReported, meterWhole, readAnswerModel } from '../answer/reported-usage.ts'
import type { WholeAnswer } from '../dialect.ts'
import { type LooseObject, toFields, toList, toText } from '../loose.ts'
import { MAX_ITEMS } from './meter.ts'
import { itemFacts, ServerToolItems } from './tool-items.ts'
import { readResponsesUsage } from './usage.ts'

const countSaidInParts = (parts: unknown): number =>
  toList(parts)
    .map(toFields)
    .reduce(
      (sum, { text, refusal }) =>
        sum + countTextCharacters(toText(text)) + countTextCharacters(toText(refusal)),
      0,
    )

/**
 * Returns the characters of output in one item, weighed by script: its text, its reasoning, the arguments of its
 * calls.
 */
const countSaid = (item: LooseObject): number =>
  countSaidInParts(item.content) +
  countSaidInParts(item.summary) +
  countTextCharacters(toText(item.arguments)) +
  (item.type === 'custom_tool_call' ? countTextCharacters(toText(item.input)) : 0)

export function readWholeResponse(body: Buffer, provider?: string): WholeAnswer {
  const response = answerFields(body)
  const items = toList(response?.output).map(toFields)
  const report = readResponsesUsage(response?.usage)
  const tools = new ServerToolItems(provider)
  for (const item of items) tools.add(itemFacts(item))
  tools.report(response?.usage)
  const characters = items.reduce((sum, item) => sum + countSaid(item), 0)
  const metered = meterWhole(report, characters, {
    usage: response?.usage,
    serviceTier: toText(response?.service_tier),
  })
  const isUsed = metered.usage !== null || tools.calls > 0
  return {
    body,
    metered: {
      ...metered,
      // As in a stream: without a report, the tools have run all the same.
      usage: isUsed ? tools.addTo(metered.usage ?? NO_USAGE) : null,
      ...readAnswerModel(response?.model),
      responseId: toText(response?.id),
      itemIds: items
        .map(({ id }) => toText(id))
        .filter((id) => id !== '')
        .slice(0, MAX_ITEMS),
    },
    isAnswer:
      response !== null && !hasFailed(response) && (isOutputReported(report) || hasItemContent(response)),
  }
}

const hasFailed = (response: LooseObject): boolean => response.status === 'failed' || saysError(response)
