/** Ends the text of an answer before the first stop sequence. */

type StoppedText = {
  /** The last token may be cut. */
  readonly text: readonly string[]
  /** The sequence that ended it; null where the text has none. */
  readonly stopSequence: string | null
}

/** Ends a text before the sequence that is complete first; of two that end together, the longer. */
export function untilStop(tokens: readonly string[], stop: readonly string[]): StoppedText {
  const whole = stop.length === 0 ? '' : tokens.join('')
  const [first] = stop
    .filter((sequence) => sequence !== '' && whole.includes(sequence))
    .map((sequence) => ({ sequence, start: whole.indexOf(sequence) }))
    .toSorted((a, b) => a.start + a.sequence.length - b.start - b.sequence.length || a.start - b.start)
  if (first === undefined) return { text: tokens, stopSequence: null }
  return { text: firstCharacters(tokens, first.start), stopSequence: first.sequence }
}

function firstCharacters(tokens: readonly string[], count: number): string[] {
  const kept: string[] = []
  let left = count
  for (const token of tokens) {
    if (left <= 0) break
    kept.push(token.slice(0, left))
    left -= token.length
  }
  return kept
}
