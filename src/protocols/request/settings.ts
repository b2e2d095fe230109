/** Settings that protocols name alike, as pieces of a call's detail. */
import { countPiece, printNumber, printText } from '../../core/call-log/detail-text.ts'
import { type LooseObject, toFields } from '../loose.ts'

export const samplingSettings = (request: LooseObject): string =>
  printNumber('temperature', request.temperature) +
  printNumber('top_p', request.top_p) +
  printNumber('frequency_penalty', request.frequency_penalty) +
  printNumber('presence_penalty', request.presence_penalty)

/** Returns the stop sequences; a single one may come without a list. */
export const stopPiece = (stop: unknown): string =>
  typeof stop === 'string' ? printNumber('stop_sequences', 1) : countPiece('stop_sequences', stop)

/** Returns `auto`, or `function get_weather` where one tool is forced. */
export function choicePiece(choice: unknown): string {
  if (choice == null) return ''
  if (typeof choice === 'string') return printText('tool_choice', choice)
  const { type, name, function: named } = toFields(choice)
  const forced = name ?? toFields(named).name
  return printText('tool_choice', typeof forced === 'string' ? `${type} ${forced}` : type)
}
