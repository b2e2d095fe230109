/** Settings that protocols name alike, as pieces of a call's detail: what the client sent of them. */
import { countPiece, numberPiece, textPiece } from '../../core/call-log/detail-text.ts'
import { fieldsOf, type LooseObject } from '../loose.ts'

export const samplingSettings = (request: LooseObject): string =>
  numberPiece('t', request.temperature) +
  numberPiece('p', request.top_p) +
  numberPiece('fp', request.frequency_penalty) +
  numberPiece('pp', request.presence_penalty)

/** One sequence may stand without its list. */
export const stopPiece = (stop: unknown): string =>
  typeof stop === 'string' ? numberPiece('st', 1) : countPiece('st', stop)

/** `auto`, or `function get_weather` where one tool is forced. */
export function choicePiece(choice: unknown): string {
  if (choice == null) return ''
  if (typeof choice === 'string') return textPiece('tc', choice)
  const { type, name, function: named } = fieldsOf(choice)
  const forced = name ?? fieldsOf(named).name
  return textPiece('tc', typeof forced === 'string' ? `${type} ${forced}` : type)
}
