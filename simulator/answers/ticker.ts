/** One coarse clock for every paced stream: thousands of them share a single timer. */

const TICK_MS = 5

/** Where a task waits, for `cancel`. */
export type Slot = number

/** Runs tasks at or just after their time (up to one tick late). Costs nothing while no task waits. */
export class Ticker {
  readonly #slots = new Map<Slot, Set<() => void>>()
  #timer: NodeJS.Timeout | null = null
  #lastSlot: Slot = 0

  /** Milliseconds on this clock, which only goes forward. */
  now(): number {
    return performance.now()
  }

  /** Runs `task` once at `atMs` on this clock. The same function waits at most once in one slot. */
  schedule(atMs: number, task: () => void): Slot {
    if (this.#timer === null) {
      this.#lastSlot = Math.floor(this.now() / TICK_MS)
      this.#timer = setInterval(() => this.#tick(), TICK_MS)
    }
    const slot = Math.max(Math.ceil(atMs / TICK_MS), this.#lastSlot + 1)
    const tasks = this.#slots.get(slot)
    if (tasks === undefined) this.#slots.set(slot, new Set([task]))
    else tasks.add(task)
    return slot
  }

  cancel(slot: Slot, task: () => void): void {
    const tasks = this.#slots.get(slot)
    if (tasks === undefined) return
    tasks.delete(task)
    if (tasks.size === 0) this.#slots.delete(slot)
    this.#rest()
  }

  /** Forgets every task. */
  stop(): void {
    this.#slots.clear()
    this.#rest()
  }

  #tick(): void {
    const current = Math.floor(this.now() / TICK_MS)
    while (this.#lastSlot < current) {
      this.#lastSlot += 1
      const slot = this.#lastSlot
      const tasks = this.#slots.get(slot)
      if (tasks === undefined) continue
      for (const task of tasks) {
        tasks.delete(task)
        task()
      }
      this.#slots.delete(slot)
    }
    this.#rest()
  }

  #rest(): void {
    if (this.#slots.size > 0 || this.#timer === null) return
    clearInterval(this.#timer)
    this.#timer = null
  }
}
