/** Usage that Amazon Bedrock reports in headers, for an answer whose body has none. */
import { NO_USAGE } from '../../core/pricing/usage.ts'
import type { Metered } from '../dialect.ts'

const PREFIX = 'x-amzn-bedrock-'

/** Returns the facts of a whole answer, with the counts of the headers where the body has none. */
export function withHeaderUsage(metered: Metered, header: (name: string) => string | undefined): Metered {
  if (metered.usage !== null) return metered
  const count = (name: string): number => {
    const text = header(`${PREFIX}${name}-token-count`) ?? ''
    return /^\d{1,12}$/.test(text) ? Number(text) : -1
  }
  const [input, output] = [count('input'), count('output')]
  if (input < 0 || output < 0) return metered
  const cached = Math.max(0, count('cache-read-input'))
  const cacheWrite = Math.max(0, count('cache-write-input'))
  // The protocol counts cached tokens apart from its input.
  const usage = { ...NO_USAGE, prompt: input + cached + cacheWrite, output, cached, cacheWrite }
  // A copy leaves out what a class counts when it is read.
  const { characters, model, suspect, reported, serviceTier, responseId } = metered
  const facts = { characters, model, suspect, reported, serviceTier, responseId }
  return { ...facts, usage, charactersSinceUsage: 0, isUsageWhole: true }
}
