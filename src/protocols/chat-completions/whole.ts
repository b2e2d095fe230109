/** One whole, unstreamed answer of the chat-completions protocol: its usage, and whether it is an answer at all. */
import { FieldFinder, scanJson, type Tape } from '../../core/json/scanner/tape.ts'
import type { TokenUsage } from '../../core/pricing/pricing.ts'
import { hasChoiceContent, isFailedOutcome, isWholeAnswer } from '../answer/content.ts'
import { countsOf, isOutputReported, type UsageReport } from '../answer/reported-usage.ts'
import type { Metered } from '../dialect.ts'
import { textOf } from '../loose.ts'
import { readUsage } from './dialect.ts'
import { type ChunkFacts, newChunkFacts, scanChunk, scanTopLevel } from './scan.ts'

/** Levels whose fields are read: the answer, its usage, the details in that. */
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

function detailsAt(tape: Tape, node: number): unknown {
  if (node === 0 || !tape.find(DETAILS, node)) return tape.valueAt(node)
  const { place } = DETAILS
  return {
    cached_tokens: tape.foundValue(place.cached_tokens),
    cache_write_tokens: tape.foundValue(place.cache_write_tokens),
    reasoning_tokens: tape.foundValue(place.reasoning_tokens),
  }
}

function reportAt(tape: Tape, node: number): UsageReport | null {
  if (node === 0) return null
  if (!tape.find(USAGE, node)) return readUsage(tape.valueAt(node))
  const { place } = USAGE
  return readUsage({
    prompt_tokens: tape.foundValue(place.prompt_tokens),
    completion_tokens: tape.foundValue(place.completion_tokens),
    prompt_tokens_details: detailsAt(tape, tape.found(place.prompt_tokens_details)),
    completion_tokens_details: detailsAt(tape, tape.found(place.completion_tokens_details)),
    server_tool_use: tape.foundValue(place.server_tool_use),
  })
}

/** Returns true for a value other than null, false, 0 and any empty value. */
function saysSomething(tape: Tape, node: number): boolean {
  const holdsValues = tape.isText(node) || tape.isList(node) || tape.isObject(node)
  return holdsValues ? tape.isFull(node) : Boolean(tape.valueAt(node))
}

interface ReadAnswer {
  readonly report: UsageReport | null
  readonly model: string
  readonly isError: boolean
}

/** Returns null for an answer that is no object, or that readers could take differently. */
function answerOn(tape: Tape): ReadAnswer | null {
  if (!tape.find(ANSWER, 0)) return null
  const { place } = ANSWER
  return {
    report: reportAt(tape, tape.found(place.usage)),
    model: textOf(tape.foundValue(place.model)),
    isError:
      saysSomething(tape, tape.found(place.error)) || isFailedOutcome(tape.foundValue(place.base_resp)),
  }
}

/** Returns the report that a scan has found. Its parts are ASCII: other characters need not be decoded. */
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
    const read = scanJson(body, DEEPEST, null, answerOn)
    if (read !== null) {
      this.#report = read.report
      this.model = read.model
      this.isAnswer =
        !read.isError && (isOutputReported(this.#report) || isWholeAnswer(body, false, hasChoiceContent))
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
