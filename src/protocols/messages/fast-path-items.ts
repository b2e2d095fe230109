/** Messages and tools of the messages protocol that are plainly as the contract, `messagesRequest`, wants them. */
import { ARRAY, FieldFinder, foundIn, kindOf, rawTextAt, Words } from '../../core/json/scanner/tape.ts'
import { isFullText, isListOf, isMissing, isObjectAt, isText, typeOf } from '../request/fast-path-items.ts'
import type { FastPathItems } from '../request/fast-path-lists.ts'

const MESSAGE = new FieldFinder(['role', 'content'])
const ROLES = new Words(['user', 'assistant'])
const TOOL = new FieldFinder(['type', 'name', 'description', 'input_schema'])
const CUSTOM = new Words(['custom'])

/** Blocks that may hold links are read. A tool result is a list when it is more than text. */
const isBlock = (node: number): boolean => {
  if (!isFullText(typeOf(node)) || LINKING.has(typeOf(node))) return false
  if (!BLOCK.find(node) || foundIn(BLOCK.place.source) !== 0) return false
  const content = foundIn(BLOCK.place.content)
  return content === 0 || kindOf(content) !== ARRAY || !rawTextAt(content).includes(SOURCE)
}
const LINKING = new Words(['image', 'document'])
const BLOCK = new FieldFinder(['content', 'source'])
const SOURCE = '"source"'

export const fastPathMessages: FastPathItems = {
  placeholder: '{"role":"user","content":""}',
  matches(node) {
    if (!MESSAGE.find(node) || !ROLES.has(foundIn(MESSAGE.place.role))) return false
    const content = foundIn(MESSAGE.place.content)
    return isText(content) || isListOf(content, isBlock)
  },
}

/** The client's own. One in the vendor's words is read: it may be built in. */
export const fastPathTools: FastPathItems = {
  placeholder: null,
  matches(node) {
    if (!TOOL.find(node)) return false
    const type = foundIn(TOOL.place.type)
    const description = foundIn(TOOL.place.description)
    return (
      (isMissing(type) || CUSTOM.has(type)) &&
      isFullText(foundIn(TOOL.place.name)) &&
      (isMissing(description) || isText(description)) &&
      isObjectAt(foundIn(TOOL.place.input_schema))
    )
  },
}
