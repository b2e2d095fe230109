/** Checks fields as the messages interface does: none may be missing or unknown. */

import { isObject, SimulatedFailure } from '../../dialect.ts'

/** Makes the one error for an invalid request, whose message names the place. */
export function invalid(message: string): SimulatedFailure {
  return new SimulatedFailure(400, 'invalid_request', message)
}

/** @throws {SimulatedFailure} 400 if the value is not an object, or has a field that is not in `known` */
export function strictObject(
  value: unknown,
  path: string,
  known: readonly string[],
): Record<string, unknown> {
  if (!isObject(value)) throw invalid(`${path}: Input should be a valid dictionary`)
  for (const field of Object.keys(value)) {
    if (!known.includes(field)) throw invalid(`${path}.${field}: Extra inputs are not permitted`)
  }
  return value
}

/** @throws {SimulatedFailure} 400 unless it is there and a string. */
export function requireString(object: Record<string, unknown>, field: string, path: string): string {
  const value = object[field]
  if (value === undefined) throw invalid(`${path}.${field}: Field required`)
  if (typeof value !== 'string') throw invalid(`${path}.${field}: Input should be a valid string`)
  return value
}

/** Returns the number, or null if it is absent. @throws {SimulatedFailure} 400 outside its range */
export function numberWithin(
  object: Record<string, unknown>,
  field: string,
  [min, max]: readonly [number, number],
): number | null {
  const value = object[field]
  if (value === undefined || value === null) return null
  if (typeof value !== 'number') throw invalid(`${field}: Input should be a valid number`)
  if (value < min || value > max) throw invalid(`${field}: range: ${min}..${max}`)
  return value
}
