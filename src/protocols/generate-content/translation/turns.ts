/**
 * The turns of a conversation as the generate-content protocol wants them: neighbours of one role merged, answers to
 * calls first and in the order of the calls, none empty. See docs/translation.md, "The request".
 */

/** A part of a content, as it is sent. */
export type WirePart = Readonly<Record<string, unknown>>

export interface WireContent {
  readonly role: 'user' | 'model'
  readonly parts: readonly WirePart[]
}

interface OpenTurn {
  readonly role: WireContent['role']
  /** With the place of the call that each belongs to. */
  readonly answers: { readonly place: number; readonly part: WirePart }[]
  readonly parts: WirePart[]
}

/** A user turn for a conversation that begins with a call, or has only instructions: the protocol refuses both. */
const UNSAID: WireContent = { role: 'user', parts: [{ text: '.' }] }

const isCall = (part: WirePart): boolean => part.functionCall !== undefined

export class ContentTurns {
  readonly #turns: OpenTurn[] = []

  add(role: WireContent['role'], parts: readonly WirePart[]): void {
    if (parts.length > 0) this.#open(role).parts.push(...parts)
  }

  /** Adds a tool's answer. `place` is that of the call in the conversation; `more` are other parts of the answer. */
  answer(place: number, part: WirePart, more: readonly WirePart[]): void {
    const turn = this.#open('user')
    turn.answers.push({ place, part })
    turn.parts.push(...more)
  }

  #open(role: WireContent['role']): OpenTurn {
    const current = this.#turns.at(-1)
    if (current?.role === role) return current
    const opened: OpenTurn = { role, answers: [], parts: [] }
    this.#turns.push(opened)
    return opened
  }

  all(): WireContent[] {
    const contents: WireContent[] = this.#turns.map(({ role, answers, parts }) => ({
      role,
      parts: [...answers.sort((a, b) => a.place - b.place).map(({ part }) => part), ...parts],
    }))
    const [first] = contents
    if (first === undefined || (first.role === 'model' && first.parts.some(isCall))) contents.unshift(UNSAID)
    return contents
  }
}
