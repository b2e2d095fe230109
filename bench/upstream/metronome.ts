/**
 * Drives many streams with one timer. Streams are distributed over the slots of a period, so that their chunks are spread
 * over time, as from unrelated calls.
 */

const TICK_MS = 2

/** A stream. `beat` returns false at its end. */
export interface Beating {
  beat(): boolean
}

export class Metronome {
  readonly #slots: Set<Beating>[]
  readonly #stride: number
  #next = 0
  #ticks = 0
  readonly #startedMs = performance.now()

  constructor(perSecond: number) {
    const slots = Math.max(1, Math.round(1000 / perSecond / TICK_MS))
    this.#slots = Array.from({ length: slots }, () => new Set<Beating>())
    this.#stride = coprimeNear(slots)
    setInterval(() => this.#catchUp(), TICK_MS)
  }

  add(stream: Beating): void {
    const slot = this.#slots[this.#next]!
    this.#next = (this.#next + this.#stride) % this.#slots.length
    slot.add(stream)
  }

  /** A timer may be late: all slots that are due by the clock run. */
  #catchUp(): void {
    const due = Math.floor((performance.now() - this.#startedMs) / TICK_MS)
    for (; this.#ticks < due; this.#ticks++) {
      const slot = this.#slots[this.#ticks % this.#slots.length]!
      for (const stream of slot) if (!stream.beat()) slot.delete(stream)
    }
  }
}

/** Returns a step that visits every slot and separates neighbours: the golden section, rounded to a coprime. */
const coprimeNear = (slots: number): number => {
  const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b))
  for (let step = Math.max(1, Math.round(slots * 0.618)); ; step++)
    if (divisor(step, slots) === 1) return step
}
