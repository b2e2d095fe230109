/** Parses the arguments of a call into an object: protocols differ in whether they are JSON or its text. */
import { isRawNumber, parseRawJson } from '../../core/json/exact.ts'
import { invalidField } from '../request/client-json.ts'

/**
 * Returns the arguments; an empty object without any.
 * @throws Failure `invalid_request` that names `path`
 */
export function parseArguments(text: string, path: string): object {
  if (text.trim() === '') return {}
  let value: unknown
  try {
    value = parseRawJson(text)
  } catch (error) {
    throw invalidField(path, `it cannot be read as JSON: ${(error as Error).message}`)
  }
  if (value === null) return {}
  if (typeof value !== 'object' || Array.isArray(value) || isRawNumber(value))
    throw invalidField(path, 'it is not the JSON of an object')
  return value
}
