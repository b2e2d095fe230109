/** The other live gateway processes, and the leader that each of them follows. */

/** A process without a message for this long counts as dead: its slots are free. */
const SILENCE_MS = 3_000

interface Member {
  heardAt: number
  leader: string | null
}

export class Members {
  readonly #members = new Map<string, Member>()

  update(id: string, leader: string | null, now: number): void {
    this.#members.set(id, { heardAt: now, leader })
  }

  has(id: string): boolean {
    return this.#members.has(id)
  }

  get ids(): string[] {
    return [...this.#members.keys()]
  }

  /** Returns the processes that report that they lead. */
  get leaders(): string[] {
    return this.ids.filter((id) => this.#members.get(id)!.leader === id)
  }

  listSilent(now: number): string[] {
    return this.ids.filter((id) => now - this.#members.get(id)!.heardAt > SILENCE_MS)
  }

  /** Marks all members as alive: this process was stopped for a while, so their silence means nothing. */
  touchAll(now: number): void {
    for (const member of this.#members.values()) member.heardAt = now
  }

  delete(id: string): boolean {
    return this.#members.delete(id)
  }

  clear(): void {
    this.#members.clear()
  }
}

/** Identifiers rise with time: the oldest process comes first. */
export const findFirst = (ids: readonly string[]): string => [...ids].sort()[0]!
