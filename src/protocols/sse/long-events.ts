/** Reads events that are too long to be buffered, as their bytes pass, in pieces of any size. */
import type { Buffer } from 'node:buffer'
import { PlaceScanner } from '../answer/place-scan.ts'
import type { AnswerFacts, Place } from '../answer/places.ts'
import type { LongEventReader } from './framer.ts'
import { SsePayload } from './payload.ts'

export class LongEvents implements LongEventReader {
  readonly #root: Place
  readonly #onFacts: (facts: AnswerFacts) => void
  /** Made for the first long event. */
  #payload: SsePayload | null = null

  /** @param onFacts called when the payload of an event has ended */
  constructor(root: Place, onFacts: (facts: AnswerFacts) => void) {
    this.#root = root
    this.#onFacts = onFacts
  }

  push(bytes: Buffer, start: number, end: number): void {
    this.#payload ??= new SsePayload(new PlaceScanner(this.#root, this.#onFacts))
    this.#payload.push(bytes, start, end)
  }
}
