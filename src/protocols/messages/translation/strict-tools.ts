/** Decides which tools of one request are strict: their calls are held to their schemas, within the vendor's limits. */
import { isDeepStrictEqual } from 'node:util'
import { type LooseObject, toFields, toList } from '../../loose.ts'
import { listSchemas, ReducedSchema, refersOnlyToDefinitions } from './reduced-schema.ts'

/** The vendor's limits, of all strict tools of one request together. */
const MAX_TOOLS = 20
const MAX_OPTIONAL_PARAMETERS = 24
const MAX_PARAMETERS_OF_SEVERAL_TYPES = 16

export class StrictTools {
  #tools = 0
  #optional = 0
  #ofSeveralTypes = 0

  /** Returns whether a tool with this schema can be strict. One that can is counted. */
  take(schema: LooseObject): boolean {
    if (this.#tools === MAX_TOOLS) return false
    const { schema: reduced, isTooDeep } = new ReducedSchema(schema)
    if (isTooDeep || !isDeepStrictEqual(reduced, schema)) return false
    if (!refersOnlyToDefinitions(schema)) return false
    const schemas = listSchemas(schema)
    const parameters = schemas.flatMap(({ properties }) => Object.values(toFields(properties)))
    const optional = this.#optional + sum(schemas.map(countOptional))
    const ofSeveralTypes = this.#ofSeveralTypes + parameters.filter(isOfSeveralTypes).length
    if (optional > MAX_OPTIONAL_PARAMETERS || ofSeveralTypes > MAX_PARAMETERS_OF_SEVERAL_TYPES) return false
    this.#tools++
    this.#optional = optional
    this.#ofSeveralTypes = ofSeveralTypes
    return true
  }
}

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)

function countOptional({ properties, required }: LooseObject): number {
  const names = new Set(toList(required))
  return Object.keys(toFields(properties)).filter((name) => !names.has(name)).length
}

function isOfSeveralTypes(parameter: unknown): boolean {
  const { anyOf, type } = toFields(parameter)
  return Array.isArray(anyOf) || Array.isArray(type)
}
