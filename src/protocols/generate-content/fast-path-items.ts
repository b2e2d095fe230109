/** Contents that the contract, `generateContentRequest`, accepts and of which nothing is read. */
import { generateContentRequest } from '../../../schemas/chat/generate-content.ts'
import { FieldFinder, type NodeTest } from '../../core/json/scanner/tape.ts'
import { ObjectContract } from '../request/contract-test.ts'
import type { FastPathItems } from '../request/fast-path-lists.ts'

const CONTENT = new ObjectContract<'parts'>(generateContentRequest.shape.contents.out.element)
const FILES = new FieldFinder(['inlineData', 'inline_data'])

/** Files are counted by the contract. */
const isPlainPart: NodeTest = (tape, node) =>
  tape.find(FILES, node) &&
  tape.found(FILES.place.inlineData) === 0 &&
  tape.found(FILES.place.inline_data) === 0

export const fastPathContents: FastPathItems = {
  placeholder: '{"parts":[]}',
  matches(tape, node) {
    if (!CONTENT.accepts(tape, node)) return false
    const parts = tape.found(CONTENT.place.parts)
    return tape.isMissing(parts) || tape.isListOf(parts, isPlainPart)
  },
}
