/** Messages and tools of the messages protocol that are plainly as the contract, `messagesRequest`, wants them. */
import { FieldFinder, type NodeTest, Words } from '../../core/json/scanner/tape.ts'
import { isFullText, typeOf } from '../request/fast-path-items.ts'
import type { FastPathItems } from '../request/fast-path-lists.ts'

const MESSAGE = new FieldFinder(['role', 'content', 'output_config'])
const ROLES = new Words(['user', 'assistant', 'system'])
const TOOL = new FieldFinder(['type', 'name', 'description', 'input_schema'])
const CUSTOM = new Words(['custom'])

/** Blocks that may hold links or tools are read. A tool result is a list when it is more than text. */
const isBlock: NodeTest = (tape, node) => {
  if (!isFullText(tape, typeOf(tape, node)) || tape.isOneOf(READ, typeOf(tape, node))) return false
  if (!tape.find(BLOCK, node) || tape.found(BLOCK.place.source) !== 0) return false
  const content = tape.found(BLOCK.place.content)
  return !tape.isList(content) || !tape.rawTextAt(content).includes(SOURCE)
}
const READ = new Words(['image', 'document', 'tool_addition', 'compaction'])
const BLOCK = new FieldFinder(['content', 'source'])
const SOURCE = '"source"'

export const fastPathMessages: FastPathItems = {
  placeholder: '{"role":"user","content":""}',
  matches(tape, node) {
    if (!tape.find(MESSAGE, node) || !tape.isOneOf(ROLES, tape.found(MESSAGE.place.role))) return false
    // One that sets the effort of the answer is read.
    if (tape.found(MESSAGE.place.output_config) !== 0) return false
    const content = tape.found(MESSAGE.place.content)
    return tape.isText(content) || tape.isListOf(content, isBlock)
  },
}

/** The client's own. One in the vendor's words is read: it may be built in. */
export const fastPathTools: FastPathItems = {
  placeholder: null,
  matches(tape, node) {
    if (!tape.find(TOOL, node)) return false
    const type = tape.found(TOOL.place.type)
    const description = tape.found(TOOL.place.description)
    return (
      (tape.isMissing(type) || tape.isOneOf(CUSTOM, type)) &&
      isFullText(tape, tape.found(TOOL.place.name)) &&
      (tape.isMissing(description) || tape.isText(description)) &&
      tape.isObject(tape.found(TOOL.place.input_schema))
    )
  },
}
