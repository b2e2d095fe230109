/** Contents that are plainly as the contract, `generateContentRequest`, wants them. */
import { FieldFinder, type NodeTest } from '../../core/json/scanner/tape.ts'
import type { FastPathItems } from '../request/fast-path-lists.ts'

const CONTENT = new FieldFinder(['role', 'parts'])
const PART = new FieldFinder(['text', 'inlineData', 'inline_data'])

/** Files are counted by the contract. */
const isPart: NodeTest = (tape, node) => {
  if (!tape.find(PART, node)) return false
  const { text: said, inlineData, inline_data } = PART.place
  if (tape.found(inlineData) !== 0 || tape.found(inline_data) !== 0) return false
  const text = tape.found(said)
  return tape.isMissing(text) || tape.isText(text)
}

export const fastPathContents: FastPathItems = {
  placeholder: '{"parts":[]}',
  matches(tape, node) {
    if (!tape.find(CONTENT, node)) return false
    const role = tape.found(CONTENT.place.role)
    const parts = tape.found(CONTENT.place.parts)
    return (
      (tape.isMissing(role) || tape.isText(role)) && (tape.isMissing(parts) || tape.isListOf(parts, isPart))
    )
  },
}
