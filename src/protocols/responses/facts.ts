/** The facts of a response that its upstream keeps, read from the whole of it. */
import type { ResponseFacts } from '../../../schemas/tasks/response.ts'
import { answerFields } from '../answer/content.ts'
import { toFields, toText } from '../loose.ts'
import { readWholeResponse } from './whole.ts'

/** Returns null for what is no response. */
export function readResponseFacts(body: Buffer, provider?: string): ResponseFacts | null {
  const response = answerFields(body)
  const id = toText(response?.id)
  const status = toText(response?.status)
  if (response === null || id === '' || status === '') return null
  const { usage, isUsageWhole, characters, charactersSinceUsage, suspect, serviceTier, reported, itemIds } =
    readWholeResponse(body, provider).metered
  const error = toFields(response.error)
  return {
    id,
    status,
    usage,
    isUsageWhole,
    characters,
    charactersSinceUsage,
    suspect: suspect ?? '',
    reported: reported ?? null,
    serviceTier: serviceTier ?? '',
    ...(itemIds !== undefined && itemIds.length > 0 && { itemIds: [...itemIds] }),
    error: response.error == null ? null : { code: toText(error.code), message: toText(error.message) },
  }
}
