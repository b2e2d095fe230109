/** Counts the calls of a short interval: how many, how many failed, what they cost, how long they took. */
import type { Credits } from '../../../schemas/money.ts'
import { printCredits } from '../../../schemas/money.ts'

interface EndedCall {
  readonly status: string
  /** In 1e-8 credit. */
  readonly cost: string
  readonly latency_ms: number
  /** More than 1 where refused calls share a settlement. */
  readonly call_count: number
}

/** Latencies that are kept of an interval; of more calls a random sample. */
const MAX_SAMPLES = 5_000

const findQuantile = (sorted: readonly number[], share: number): number | null =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null

export class CallWindow {
  #calls = 0
  #failed = 0
  #cost: Credits = 0n
  #timed = 0
  readonly #samples: number[] = []

  add({ status, cost, latency_ms, call_count }: EndedCall): void {
    this.#calls += call_count
    if (status !== 'success') this.#failed += call_count
    this.#cost += BigInt(cost)
    this.#timed += 1
    if (this.#samples.length < MAX_SAMPLES) this.#samples.push(latency_ms)
    else {
      const index = Math.floor(Math.random() * this.#timed)
      if (index < MAX_SAMPLES) this.#samples[index] = latency_ms
    }
  }

  read() {
    const sorted = this.#samples.toSorted((a, b) => a - b)
    return {
      calls: this.#calls,
      failed: this.#failed,
      cost: printCredits(this.#cost),
      latency_p50_ms: findQuantile(sorted, 0.5),
      latency_p99_ms: findQuantile(sorted, 0.99),
    }
  }
}
