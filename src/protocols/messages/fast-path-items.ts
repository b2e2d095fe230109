/** Messages and tools of the messages protocol that the contract, `messagesRequest`, accepts and of which nothing is read. */
import { messagesRequest } from '../../../schemas/chat/messages.ts'
import { FieldFinder, type NodeTest, Words } from '../../core/json/scanner/tape.ts'
import { contractTest, ObjectContract, readType } from '../request/contract-test.ts'
import type { FastPathItems } from '../request/fast-path-lists.ts'

const { shape } = messagesRequest
const isMessage = contractTest(shape.messages.element)
const MESSAGE = new FieldFinder(['content', 'output_config'])
const TOOL = new ObjectContract<'type'>(shape.tools.unwrap().unwrap().element)
const CUSTOM = new Words(['custom'])

/** Blocks that may hold links or tools are read. A tool result is a list when it is more than text. */
const isPlainBlock: NodeTest = (tape, node) => {
  if (tape.isOneOf(READ, readType(tape, node))) return false
  if (!tape.find(BLOCK, node) || tape.found(BLOCK.place.source) !== 0) return false
  const content = tape.found(BLOCK.place.content)
  return !tape.isList(content) || !tape.readRawText(content).includes(SOURCE)
}
const READ = new Words(['image', 'document', 'tool_addition', 'compaction'])
const BLOCK = new FieldFinder(['content', 'source'])
const SOURCE = '"source"'

export const fastPathMessages: FastPathItems = {
  placeholder: '{"role":"user","content":""}',
  matches(tape, node) {
    if (!isMessage(tape, node) || !tape.find(MESSAGE, node)) return false
    // One that sets the effort of the answer is read.
    if (tape.found(MESSAGE.place.output_config) !== 0) return false
    const content = tape.found(MESSAGE.place.content)
    return !tape.isList(content) || tape.isListOf(content, isPlainBlock)
  },
}

/** The client's own. One in the vendor's words is read: it may be built in. */
export const fastPathTools: FastPathItems = {
  placeholder: null,
  matches(tape, node) {
    if (!TOOL.accepts(tape, node)) return false
    const type = tape.found(TOOL.place.type)
    return tape.isMissing(type) || tape.isOneOf(CUSTOM, type)
  },
}
