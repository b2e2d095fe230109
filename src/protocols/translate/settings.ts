/** Settings that several protocols have in the same form. */
import type { AnswerFormat, FileSource, Setting } from '../../../schemas/chat/conversation.ts'
import { type LooseObject, toText } from '../loose.ts'

/** Returns the setting of a field; undefined for a value that is no number. */
export const readNumber = (field: string, value: unknown): Setting<number> | undefined =>
  typeof value === 'number' ? { field, value } : undefined

/** Returns the setting of a field; undefined for a value that is no text, or an empty one. */
export const readText = (field: string, value: unknown): Setting<string> | undefined =>
  typeof value === 'string' && value !== '' ? { field, value } : undefined

/** Returns the format of answers that follow a JSON schema. `path` is the schema's place in the request, for errors. */
export const readSchemaFormat = (given: LooseObject, schema: LooseObject, path: string): AnswerFormat => ({
  type: 'schema',
  name: toText(given.name) || null,
  description: toText(given.description) || null,
  schema,
  isStrict: given.strict === true,
  path,
})

const LOW_BUDGET_TOKENS = 2048
const MEDIUM_BUDGET_TOKENS = 16_384

/** Returns the effort that is nearest to a budget, for models that take none. */
export function nearestEffort(budgetTokens: number): 'low' | 'medium' | 'high' {
  if (budgetTokens <= LOW_BUDGET_TOKENS) return 'low'
  return budgetTokens <= MEDIUM_BUDGET_TOKENS ? 'medium' : 'high'
}

/** Returns the link of a file, or a data URI with all of it. */
export const printFileUrl = (source: FileSource): string =>
  source.type === 'link' ? source.url : `data:${source.mediaType};base64,${source.base64}`
