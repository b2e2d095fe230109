/**
 * Checks fields of the generate-content interface: either spelling of a name, no name that it does not know, and the
 * subset of JSON Schema that it takes in `parameters` and `responseSchema`.
 */

import { isObject, SimulatedFailure } from '../../dialect.ts'

const KEYWORDS = [
  ...['type', 'format', 'title', 'description', 'nullable', 'enum', 'items', 'minItems', 'maxItems'],
  ...['properties', 'required', 'propertyOrdering', 'minProperties', 'maxProperties', 'minimum', 'maximum'],
  ...['minLength', 'maxLength', 'pattern', 'example', 'anyOf', 'default'],
]
const TYPES = ['string', 'number', 'integer', 'boolean', 'array', 'object', 'null']
const STRING_FORMATS = ['enum', 'date-time']

/** @throws {SimulatedFailure} 400 that names the place. */
export function checkSchema(value: unknown, path: string): void {
  const schema = knownFields(value, path, KEYWORDS)
  const type = readType(schema, path)
  checkEnum(schema, type, path)
  if (type === 'string' && schema.format !== undefined && !STRING_FORMATS.includes(String(schema.format)))
    throw invalid(`* ${path}.format: only 'enum' and 'date-time' are supported for STRING type`)
  if (type === 'array' && schema.items === undefined) throw invalid(`* ${path}.items: missing field.`)
  if (schema.items !== undefined) checkSchema(schema.items, `${path}.items`)
  checkProperties(schema, path)
  if (schema.anyOf === undefined) return
  if (!Array.isArray(schema.anyOf)) throw invalid(`Invalid value at '${path}.any_of': expected a list.`)
  for (const [index, choice] of schema.anyOf.entries()) checkSchema(choice, `${path}.any_of[${index}]`)
}

/** As `checkSchema`, but refuses an object without properties, which must be left out. */
export function checkParameters(value: unknown, path: string): void {
  checkSchema(value, path)
  const { type, properties } = value as Record<string, unknown>
  const isEmpty = !isObject(properties) || Object.keys(properties).length === 0
  if (String(type).toLowerCase() === 'object' && isEmpty)
    throw invalid(`* ${path}.properties: should be non-empty for OBJECT type`)
}

function readType({ type, anyOf }: Record<string, unknown>, path: string): string | null {
  if (type === undefined) {
    if (anyOf === undefined) throw invalid(`* ${path}.type: must be specified`)
    return null
  }
  if (Array.isArray(type))
    throw invalid(
      `Invalid JSON payload received. Unknown name "type" at '${path}': Proto field is not repeating, cannot start list.`,
    )
  const name = String(type).toLowerCase()
  if (typeof type !== 'string' || !TYPES.includes(name))
    throw invalid(
      `Invalid value at '${path}.type' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), "${type}"`,
    )
  return name
}

function checkEnum({ enum: choices }: Record<string, unknown>, type: string | null, path: string): void {
  if (choices === undefined) return
  if (!Array.isArray(choices)) throw invalid(`Invalid value at '${path}.enum': expected a list.`)
  for (const [index, choice] of choices.entries()) {
    if (typeof choice !== 'string')
      throw invalid(`Invalid value at '${path}.enum[${index}]' (TYPE_STRING), ${JSON.stringify(choice)}`)
    if (choice === '') throw invalid(`* ${path}.enum[${index}]: cannot be empty`)
  }
  if (type !== 'string') throw invalid(`* ${path}.enum: only allowed for STRING type`)
}

function checkProperties({ properties, required }: Record<string, unknown>, path: string): void {
  if (properties !== undefined && !isObject(properties))
    throw invalid(`Invalid value at '${path}.properties': expected an object.`)
  for (const [name, schema] of Object.entries(properties ?? {}))
    checkSchema(schema, `${path}.properties['${name}']`)
  if (required === undefined) return
  if (!Array.isArray(required)) throw invalid(`Invalid value at '${path}.required': expected a list.`)
  for (const [index, name] of required.entries()) {
    if (typeof name !== 'string' || !Object.hasOwn(properties ?? {}, name))
      throw invalid(`* ${path}.required[${index}]: property is not defined`)
  }
}

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

/** Reads a list; empty if it is absent. @throws {SimulatedFailure} 400 if it is not a list */
export function readList(value: unknown, path: string): readonly unknown[] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value)) return value
  throw invalid(`Invalid value at '${path}': expected a list.`)
}
