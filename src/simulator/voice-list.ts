/** The voices of the simulated provider: some that everybody has, and those that were cloned. */

const MAX_VOICES = 10_000

export type Voice = { readonly id: string; readonly name: string; readonly isCloned: boolean }

export const PRESET_VOICES: readonly Voice[] = [
  { id: 'sim-voice-ada', name: 'Ada', isCloned: false },
  { id: 'sim-voice-bram', name: 'Bram', isCloned: false },
  { id: 'sim-voice-mei', name: 'Mei', isCloned: false },
]

export class VoiceList {
  readonly #cloned = new Map<string, Voice>()

  /** Beyond 10,000 the oldest is forgotten. */
  add(id: string, name: string): void {
    if (this.#cloned.size >= MAX_VOICES) this.#cloned.delete(this.#cloned.keys().next().value ?? '')
    this.#cloned.set(id, { id, name, isCloned: true })
  }

  find(id: string): Voice | null {
    return this.#cloned.get(id) ?? PRESET_VOICES.find((voice) => voice.id === id) ?? null
  }

  /** Whether there was such a voice, and it was cloned. */
  remove(id: string): boolean {
    return this.#cloned.delete(id)
  }

  all(): Voice[] {
    return [...PRESET_VOICES, ...this.#cloned.values()]
  }
}
