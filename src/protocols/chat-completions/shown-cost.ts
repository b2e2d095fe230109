/**
 * Adds what a call costs to the usage of its chat-completions answer, for a client that asks for it by
 * `usage: {"include": true}`. All other bytes stay as they are.
 */
import { Buffer } from 'node:buffer'
import { type Credits, printCredits } from '../../../schemas/money.ts'
import { scanFields } from '../../core/json/scanner/tape.ts'
import { applySplices, assignment, type FieldSpan } from '../../core/json/splice.ts'
import type { AnswerStream } from '../dialect.ts'
import { isObject, parseFields, toList } from '../loose.ts'
import { eventData, payloadStart, SseFramer } from '../sse/framer.ts'

const USAGE = Buffer.from('"usage"')

/** Returns the answer, or a chunk of one, with its cost; as it is where it has no usage. */
export function withCost(body: Buffer, cost: Credits): Buffer {
  const answer = parseFields(body.toString('utf8'))
  if (answer === null || !isObject(answer.usage)) return body
  const { start, end } = scanFields(body).fields.get('usage') as FieldSpan
  const usage = body.subarray(start, end)
  const json = printCredits(cost)
  const { fields, open } = scanFields(usage)
  const changed =
    fields.size === 0
      ? `{"cost":${json}}`
      : applySplices(usage, [assignment('cost', json, fields.get('cost'), open)])
  return applySplices(body, [{ start, end, text: changed.toString('utf8') }])
}

/** Returns an event with the cost in its payload. */
function eventWithCost(event: Buffer, cost: Credits): Buffer {
  const data = eventData(event, 0, event.length)!
  const at = payloadStart(data, event, 0, event.length)
  const changed = withCost(data, cost)
  if (at < 0) return Buffer.from(`data: ${changed.toString('utf8').replaceAll('\n', ' ')}\n\n`)
  return Buffer.concat([event.subarray(0, at), changed, event.subarray(at + data.length)])
}

/** Returns whether an event has usage, more of the answer, or neither. */
function readKind(data: Buffer | null): 'usage' | 'content' | 'other' {
  const chunk = data === null ? null : parseFields(data.toString('utf8'))
  if (chunk === null) return 'other'
  if (isObject(chunk.usage)) return 'usage'
  return toList(chunk.choices).length > 0 ? 'content' : 'other'
}

/** Keeps the last event with usage of a stream until its cost is known. */
class CostInStream {
  readonly #stream: AnswerStream
  readonly #quote: () => Credits | null
  readonly #framer: SseFramer
  /** The last event with usage and what followed it; empty without one. */
  #kept: Buffer[] = []
  #out: Buffer[] = []
  #isShown = false

  /** @param quote returns the cost of the answer as it is by now; null where that is not known */
  constructor(stream: AnswerStream, quote: () => Credits | null) {
    this.#stream = stream
    this.#quote = quote
    this.#framer = new SseFramer(
      (bytes, start, end, isReadable) => isReadable && this.#event(copy(bytes, start, end)),
      {
        push: (bytes, start, end) => {
          this.#flush()
          this.#out.push(copy(bytes, start, end))
        },
      },
    )
  }

  push(piece: Buffer): Buffer | null {
    this.#framer.push(piece)
    if (this.#stream.isFinished) this.#release()
    return this.#take()
  }

  end(tail: Buffer | null): Buffer | null {
    if (tail !== null) this.#framer.push(tail)
    this.#release()
    if (!this.#framer.isSkipping) this.#out.push(Buffer.from(this.#framer.takeTail()))
    return this.#take()
  }

  #event(event: Buffer): void {
    const isCandidate = !this.#isShown && event.includes(USAGE)
    const kind = isCandidate || this.#kept.length > 0 ? readKind(eventData(event, 0, event.length)) : 'other'
    // More of the answer came: the usage was not the last.
    if (kind !== 'other') this.#flush()
    if (kind === 'usage' || this.#kept.length > 0) this.#kept.push(event)
    else this.#out.push(event)
  }

  /** Adds the cost to the event that is kept, where the answer has ended well. */
  #release(): void {
    const [usage] = this.#kept
    const { laterError, firstError, isComplete } = this.#stream
    const isWell = laterError === null && firstError === null && isComplete
    const cost = usage !== undefined && isWell ? this.#quote() : null
    if (cost !== null) {
      this.#isShown = true
      this.#kept[0] = eventWithCost(usage!, cost)
    }
    this.#flush()
  }

  #flush(): void {
    this.#out.push(...this.#kept)
    this.#kept = []
  }

  #take(): Buffer | null {
    const out = this.#out
    this.#out = []
    return out.length === 0 ? null : Buffer.concat(out)
  }
}

const copy = (bytes: Buffer, start: number, end: number): Buffer => Buffer.from(bytes.subarray(start, end))

/** Adds the cost to the last usage of a stream. `quote` returns it from the facts of the stream. */
export function showCostInStream(stream: AnswerStream, quote: () => Credits | null): AnswerStream {
  const shown = new CostInStream(stream, quote)
  const push = stream.push.bind(stream)
  const end = stream.end.bind(stream)
  stream.push = (piece) => {
    const out = push(piece)
    return out === null ? null : shown.push(out)
  }
  stream.end = () => shown.end(end())
  return stream
}
