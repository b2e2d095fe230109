/** One whole, unstreamed answer of the chat-completions protocol: its usage, and whether it is an answer at all. */
import {
  ARRAY,
  endOf,
  FieldFinder,
  foundIn,
  kindOf,
  nodeAfter,
  OBJECT,
  STRING,
  scanJson,
  startOf,
  valueAt,
} from '../../core/json/scanner/tape.ts'
import type { TokenUsage } from '../../core/pricing/pricing.ts'
import { hasChoiceContent, isFailedOutcome, isWholeAnswer } from '../answer/content.ts'
import { countsOf, isOutputReported, type UsageReport } from '../answer/reported-usage.ts'
import type { Metered } from '../dialect.ts'
import { textOf } from '../loose.ts'
import { readUsage } from './dialect.ts'
import { type ChunkFacts, newChunkFacts, scanChunk, scanTopLevel } from './scan.ts'

/** The answer, its usage, the details in that: whose fields are read. */
const DEEPEST = 3

const ANSWER = new FieldFinder(['usage', 'error', 'base_resp', 'model'])
const USAGE = new FieldFinder([
  'prompt_tokens',
  'completion_tokens',
  'prompt_tokens_details',
  'completion_tokens_details',
  'server_tool_use',
])
const DETAILS = new FieldFinder(['cached_tokens', 'cache_write_tokens', 'reasoning_tokens'])

function detailsAt(node: number): unknown {
  if (node === 0 || !DETAILS.find(node)) return valueAt(node)
  const { place } = DETAILS
  return {
    cached_tokens: valueAt(foundIn(place.cached_tokens)),
    cache_write_tokens: valueAt(foundIn(place.cache_write_tokens)),
    reasoning_tokens: valueAt(foundIn(place.reasoning_tokens)),
  }
}

function reportAt(node: number): UsageReport | null {
  if (node === 0) return null
  if (!USAGE.find(node)) return readUsage(valueAt(node))
  const { place } = USAGE
  return readUsage({
    prompt_tokens: valueAt(foundIn(place.prompt_tokens)),
    completion_tokens: valueAt(foundIn(place.completion_tokens)),
    prompt_tokens_details: detailsAt(foundIn(place.prompt_tokens_details)),
    completion_tokens_details: detailsAt(foundIn(place.completion_tokens_details)),
    server_tool_use: valueAt(foundIn(place.server_tool_use)),
  })
}

/** A value other than null, false, 0 and what is empty. */
function saysSomething(node: number): boolean {
  if (node === 0) return false
  const kind = kindOf(node)
  if (kind === STRING) return endOf(node) > startOf(node)
  // Of an array its first value, of an object its first name would come next.
  return kind === OBJECT || kind === ARRAY ? nodeAfter(node) > node + 1 : Boolean(valueAt(node))
}

/** The report that a scan has found. What is read of it is ASCII: other characters need not be decoded. */
export function usageAt(bytes: Buffer, facts: ChunkFacts): UsageReport | null {
  try {
    return readUsage(JSON.parse(bytes.toString('latin1', facts.usageStart, facts.usageEnd)))
  } catch {
    return null
  }
}

/** Counts its characters on demand: an answer with usage never needs them. */
export class WholeResponse implements Metered {
  readonly #report: UsageReport | null
  /** It is JSON that holds content or usage, and no error in spite of its status. */
  readonly isAnswer: boolean
  readonly model: string
  readonly #body: Buffer

  constructor(body: Buffer) {
    this.#body = body
    if (scanJson(body, DEEPEST) && ANSWER.find(0)) {
      const { place } = ANSWER
      const isError =
        saysSomething(foundIn(place.error)) || isFailedOutcome(valueAt(foundIn(place.base_resp)))
      this.#report = reportAt(foundIn(place.usage))
      this.model = textOf(valueAt(foundIn(place.model)))
      this.isAnswer =
        !isError && (isOutputReported(this.#report) || isWholeAnswer(body, false, hasChoiceContent))
      return
    }
    const facts = newChunkFacts()
    scanTopLevel(body, facts)
    this.#report = facts.usageStart < 0 ? null : usageAt(body, facts)
    this.model = facts.modelStart < 0 ? '' : body.toString('utf8', facts.modelStart, facts.modelEnd)
    this.isAnswer = !facts.isError && isWholeAnswer(body, isOutputReported(this.#report), hasChoiceContent)
  }

  get usage(): TokenUsage | null {
    return this.#report && countsOf(this.#report)
  }

  get isUsageWhole(): boolean {
    return this.#report !== null && this.#report.prompt !== null && this.#report.output !== null
  }

  get characters(): number {
    const facts = newChunkFacts()
    scanChunk(this.#body, facts)
    return facts.characters
  }

  get charactersSinceUsage(): number {
    return this.#report?.output == null ? this.characters : 0
  }
}
