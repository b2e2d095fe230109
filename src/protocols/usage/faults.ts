/** Finds counts that no call can have, in a report of any form. */
import { MAX_REPORTED_TOKENS } from '../../core/pricing/usage.ts'

/** Reports nest details in usage, and tools in details. */
const MAX_LEVELS = 3
/** Other numbers of a report, such as amounts of money and times, may be larger. */
const IS_COUNT = /tokens?(_?count)?$|_requests$|_calls$/i

/** Returns the first count that is negative or too large, with its name, such as `prompt_tokens -5`; empty for none. */
export function findFault(usage: unknown, levels = MAX_LEVELS): string {
  if (typeof usage !== 'object' || usage === null || levels === 0) return ''
  for (const name in usage) {
    const value = (usage as Record<string, unknown>)[name]
    if (typeof value === 'number') {
      if (!(value >= 0 && value <= MAX_REPORTED_TOKENS) && IS_COUNT.test(name)) return `${name} ${value}`
    } else if (typeof value === 'object' && value !== null) {
      const inner = findFault(value, levels - 1)
      if (inner !== '') return inner
    }
  }
  return ''
}

/** Returns the contradiction of a part that is larger than its whole; undefined for none. */
export const partAbove = (part: string, count: number, whole: string, most: number): string | undefined =>
  count > most ? `${part} ${count} > ${whole} ${most}` : undefined
