/** Contents that are plainly as the contract, `generateContentRequest`, wants them. */
import { FieldFinder, type NodeTest } from '../../core/json/scanner/tape.ts'
import type { FastPathItems } from '../request/fast-path-lists.ts'

const CONTENT = new FieldFinder(['role', 'parts'])
const PART = new FieldFinder(['text'])

const isPart: NodeTest = (tape, node) => {
  if (!tape.find(PART, node)) return false
  const text = tape.found(PART.place.text)
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
