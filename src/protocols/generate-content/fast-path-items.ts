/** Contents that are plainly as the contract, `generateContentRequest`, wants them. */
import { FieldFinder, foundIn } from '../../core/json/scanner/tape.ts'
import { isListOf, isMissing, isText } from '../request/fast-path-items.ts'
import type { FastPathItems } from '../request/fast-path-lists.ts'

const CONTENT = new FieldFinder(['role', 'parts'])
const PART = new FieldFinder(['text'])

const isPart = (node: number): boolean => {
  if (!PART.find(node)) return false
  const text = foundIn(PART.place.text)
  return isMissing(text) || isText(text)
}

export const fastPathContents: FastPathItems = {
  placeholder: '{"parts":[]}',
  matches(node) {
    if (!CONTENT.find(node)) return false
    const role = foundIn(CONTENT.place.role)
    const parts = foundIn(CONTENT.place.parts)
    return (isMissing(role) || isText(role)) && (isMissing(parts) || isListOf(parts, isPart))
  },
}
