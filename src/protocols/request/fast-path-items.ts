/** Tests values on the tape: the items of the lists of requests. */
import { FieldFinder, type Tape } from '../../core/json/scanner/tape.ts'

export const isFullText = (tape: Tape, node: number): boolean => tape.isText(node) && tape.isFull(node)

const TYPED = new FieldFinder(['type'])

/** Returns the node of the type of an object, or 0. */
export function typeOf(tape: Tape, node: number): number {
  if (!tape.find(TYPED, node)) return 0
  const type = tape.found(TYPED.place.type)
  return tape.isText(type) ? type : 0
}
