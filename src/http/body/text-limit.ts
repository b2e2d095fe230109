/** Bounds the text of one JSON body, apart from the files that it carries inline. */
import { Buffer } from 'node:buffer'
import type { Failure } from '../../../schemas/failure.ts'
import { type ArrivingBody, hasTextBeyond } from '../../core/media/inline-files.ts'
import { tooMuchText } from '../refusals.ts'

/** The server hands over pieces of 512 KiB at most: two steps of work keep up with them. */
const STEPS_PER_PIECE = 2

export class TextLimit {
  readonly #maxBytes: number
  readonly #body: ArrivingBody = { bytes: Buffer.alloc(0), isWhole: false }
  readonly #measuring: Generator<void, boolean>

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#measuring = hasTextBeyond(this.#body, maxBytes)
  }

  /** Measures what has arrived, piece by piece. Returns the refusal as soon as there is too much text, else null. */
  checkArrived(soFar: Buffer): Failure | null {
    this.#body.bytes = soFar
    for (let step = 0; step < STEPS_PER_PIECE; step++)
      if (this.#measuring.next().done === true) return tooMuchText(this.#maxBytes)
    return null
  }

  /** Measures the rest of the whole body, with pauses for others; calls `done` once, or never when it is no longer wanted. */
  checkWhole(body: Buffer, isWanted: () => boolean, done: (refusal: Failure | null) => void): void {
    this.#body.bytes = body
    this.#body.isWhole = true
    const measure = () => {
      if (!isWanted()) return
      const { done: isOver, value } = this.#measuring.next()
      if (!isOver) setImmediate(measure)
      else done(value ? tooMuchText(this.#maxBytes) : null)
    }
    measure()
  }
}
