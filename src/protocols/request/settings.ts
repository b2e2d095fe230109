/** Settings that protocols name alike, as pieces of a call's detail. */
import { countPiece, numberPiece, textPiece } from '../../core/call-log/detail-text.ts'
import { fieldsOf, type LooseObject } from '../loose.ts'

export const samplingSettings = (request: LooseObject): string =>
  numberPiece('temperature', request.temperature) +
  numberPiece('top_p', request.top_p) +
  numberPiece('frequency_penalty', request.frequency_penalty) +
  numberPiece('presence_penalty', request.presence_penalty)

/** Returns the stop sequences; a single one may come without a list. */
export const stopPiece = (stop: unknown): string =>
  typeof stop === 'string' ? numberPiece('stop_sequences', 1) : countPiece('stop_sequences', stop)

/** Returns `auto`, or `function get_weather` where one tool is forced. */
export function choicePiece(choice: unknown): string {
  if (choice == null) return ''
  if (typeof choice === 'string') return textPiece('tool_choice', choice)
  const { type, name, function: named } = fieldsOf(choice)
  const forced = name ?? fieldsOf(named).name
  return textPiece('tool_choice', typeof forced === 'string' ? `${type} ${forced}` : type)
}
