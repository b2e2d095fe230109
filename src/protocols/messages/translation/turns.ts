/**
 * The turns of a conversation as the messages protocol wants them: neighbours of one role merged, the first one a
 * user's, none empty. See docs/translation.md, "The request".
 */

/** A content block, as it is sent. */
export interface Block {
  readonly type: string
  readonly [field: string]: unknown
}

export interface Turn {
  readonly role: 'user' | 'assistant'
  readonly content: readonly Block[]
}

/** Places of blocks in their turn, whichever message they came with. */
const PLACES: Readonly<Record<string, 'first' | 'last'>> = {
  tool_result: 'first',
  thinking: 'first',
  redacted_thinking: 'first',
  tool_use: 'last',
}

interface OpenTurn {
  readonly role: Turn['role']
  readonly first: Block[]
  readonly middle: Block[]
  readonly last: Block[]
}

/** A user turn for a conversation that begins with the assistant, or has only instructions. */
const UNSAID: Block = { type: 'text', text: '.' }

const isBlank = (block: Block): boolean =>
  block.type === 'text' && typeof block.text === 'string' && block.text.trim() === ''

export class Turns {
  readonly #turns: OpenTurn[] = []

  /** Adds blocks without blank texts: the protocol refuses them. */
  add(role: Turn['role'], blocks: readonly Block[]): void {
    for (const block of blocks) {
      if (isBlank(block)) continue
      const place = PLACES[block.type] ?? 'middle'
      this.#open(role)[place].push(block)
    }
  }

  #open(role: Turn['role']): OpenTurn {
    const current = this.#turns.at(-1)
    if (current?.role === role) return current
    const opened: OpenTurn = { role, first: [], middle: [], last: [] }
    this.#turns.push(opened)
    return opened
  }

  all(): Turn[] {
    const turns: Turn[] = this.#turns.map(({ role, first, middle, last }) => ({
      role,
      content: [...first, ...middle, ...last],
    }))
    if (turns[0]?.role !== 'user') turns.unshift({ role: 'user', content: [UNSAID] })
    const last = turns.at(-1)!
    return last.role === 'user' ? turns : [...turns.slice(0, -1), trimAnswer(last)]
  }
}

/** Trims the end of an answer that the model is to continue: it must not end in white space. */
function trimAnswer(turn: Turn): Turn {
  const last = turn.content.at(-1)
  if (last?.type !== 'text' || typeof last.text !== 'string') return turn
  return { role: turn.role, content: [...turn.content.slice(0, -1), { ...last, text: last.text.trimEnd() }] }
}

/** Returns the blocks without blank texts. */
export const withoutBlank = (blocks: readonly Block[]): Block[] => blocks.filter((block) => !isBlank(block))

const isThinking = (block: Block | undefined): boolean =>
  block?.type === 'thinking' || block?.type === 'redacted_thinking'

const isAnswerToTools = (turn: Turn): boolean => turn.content.every(({ type }) => type === 'tool_result')

/**
 * Returns whether the model may reason in the last turn. An assistant's turn reasons from its beginning, tool results
 * included, or not at all: one that began without signed reasoning cannot continue with it.
 */
export function mayThink(turns: readonly Turn[]): boolean {
  const asked = turns.findLastIndex((turn) => turn.role === 'user' && !isAnswerToTools(turn))
  const begun = turns[asked + 1]
  return begun === undefined || isThinking(begun.content[0])
}

/** Returns the names of the tools that were called. */
export function toolsUsed(turns: readonly Turn[]): string[] {
  const names = turns.flatMap(({ content }) =>
    content.flatMap(({ type, name }) => (type === 'tool_use' && typeof name === 'string' ? [name] : [])),
  )
  return [...new Set(names)]
}
