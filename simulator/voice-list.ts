/** The voices of the simulated provider: some that everybody has, and those that were cloned. */

const MAX_VOICES = 10_000

export type Voice = { readonly id: string; readonly name: string }

export const PRESET_VOICES: readonly Voice[] = [
  { id: 'sim-voice-ada', name: 'Ada' },
  { id: 'sim-voice-bram', name: 'Bram' },
  { id: 'sim-voice-mei', name: 'Mei' },
]

/** Voices that callers cloned, and took away again. */
export class VoiceList {
  readonly #cloned = new Map<string, Voice>()
  readonly #removed = new Set<string>()

  /** Beyond 10,000 the oldest is forgotten. */
  add(voice: Voice): void {
    if (this.#cloned.size >= MAX_VOICES) this.#cloned.delete(this.#cloned.keys().next().value ?? '')
    this.#cloned.set(voice.id, voice)
  }

  /** Whether there was such a voice. */
  remove(id: string): boolean {
    const isThere = this.#cloned.delete(id)
    if (isThere) this.#removed.add(id)
    return isThere
  }

  wasRemoved(id: string): boolean {
    return this.#removed.has(id)
  }

  /** Oldest first. */
  cloned(): Voice[] {
    return [...this.#cloned.values()]
  }
}
