/** How the generate-content interface checks fields: either spelling of a name, and no name that it does not know. */

import { isObject, SimulatedFailure } from '../../dialect.ts'

export function invalid(message: string): SimulatedFailure {
  return new SimulatedFailure(400, 'invalid_request', message)
}

/**
 * The fields of a message of the interface, named in camel case; snake case is taken as well.
 *
 * @throws {SimulatedFailure} 400 for a value that is no object, or a field that is not in `known`.
 */
export function knownFields(value: unknown, path: string, known: readonly string[]): Record<string, unknown> {
  if (!isObject(value)) throw invalid(`Invalid value at '${path}': expected an object.`)
  const fields: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(value)) {
    const camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    if (!known.includes(camel)) {
      const place = path === '' ? '' : ` at '${path}'`
      throw invalid(`Invalid JSON payload received. Unknown name "${name}"${place}: Cannot find field.`)
    }
    fields[camel] = field
  }
  return fields
}

/** Empty where there is none. @throws {SimulatedFailure} 400 for what is no list. */
export function listOf(value: unknown, path: string): readonly unknown[] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value)) return value
  throw invalid(`Invalid value at '${path}': expected a list.`)
}
