/**
 * Requests answers in JSON by a schema from the messages protocol: by `output_config.format` where the model takes it,
 * else by one tool that the model has to call, whose arguments are the answer.
 */

import { fieldsOf, isObject, type LooseObject } from '../loose.ts'
import { invalidField } from '../request/client-json.ts'
import type { DroppedFields } from '../translate/dropped-fields.ts'
import type { ModelFamily } from './family.ts'

/** The tool by which a model answers that takes no `output_config.format`. No client may offer one of this name. */
export const ANSWER_TOOL = 'tollgate_json_answer'
const ANSWER_TOOL_DESCRIPTION = 'Gives the answer to the user. Call it once, with the whole answer.'

const FIELD = 'response_format'
const SCHEMA_PATH = `${FIELD}.json_schema.schema`
const MAX_SCHEMA_DEPTH = 128

/** Limits that the vendor refuses in a schema. */
const REFUSED_LIMITS: ReadonlySet<string> = new Set([
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength'],
  ...['maxItems', 'uniqueItems', 'contains', 'minContains', 'maxContains', 'minProperties', 'maxProperties'],
  ...['patternProperties', 'propertyNames', 'unevaluatedProperties', 'unevaluatedItems', 'prefixItems'],
  ...['dependentRequired', 'dependentSchemas', 'if', 'then', 'else', 'not'],
])
const FORMATS: ReadonlySet<unknown> = new Set([
  ...['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'],
])
/** Keywords whose value is one schema or a list of them, and those whose value is schemas by name. */
const HOLDS_SCHEMAS: ReadonlySet<string> = new Set(['items', 'anyOf', 'allOf', 'oneOf'])
const HOLDS_NAMED_SCHEMAS: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions'])

export type OutputFormat =
  | { readonly type: 'output_config'; readonly value: LooseObject }
  | { readonly type: 'tool'; readonly tool: LooseObject }

export interface OutputTarget {
  readonly family: ModelFamily
  /** The client offers tools, or the history has calls: the model must be free to call them. */
  readonly hasTools: boolean
  readonly thinks: boolean
}

/**
 * Returns the fields that enforce `response_format`; null where nothing does, which is added to `dropped`.
 * @throws Failure `invalid_request` for a schema that is nested too deeply
 */
export function outputFormat(
  format: unknown,
  target: OutputTarget,
  dropped: DroppedFields,
): OutputFormat | null {
  const { type, json_schema: given } = fieldsOf(format)
  if (format == null || type === 'text') return null
  const { schema, description } = fieldsOf(given)
  if (type !== 'json_schema' || !isObject(schema)) return leftOut(dropped)
  if (target.family.takesSchemas) {
    const reduced = new ReducedSchema(schema)
    if (reduced.isLooser) dropped.add(FIELD, 'limits of its schema that this model cannot be held to')
    return {
      type: 'output_config',
      value: { format: { type: 'json_schema', schema: reduced.schema } },
    }
  }
  if (target.hasTools) return leftOut(dropped, 'not together with tools for this model')
  if (target.thinks) return leftOut(dropped, 'not together with thinking for this model')
  if (schema.type !== 'object') return leftOut(dropped, 'this model answers with an object alone')
  const extra = typeof description === 'string' ? ` ${description}` : ''
  return {
    type: 'tool',
    tool: { name: ANSWER_TOOL, description: ANSWER_TOOL_DESCRIPTION + extra, input_schema: schema },
  }
}

function leftOut(dropped: DroppedFields, note?: string): null {
  dropped.add(FIELD, note)
  return null
}

/**
 * A schema without the keywords that the vendor refuses. The result allows what the schema allows, except for unnamed
 * properties.
 */
class ReducedSchema {
  /** Restrictions were left out. */
  isLooser = false
  readonly schema: unknown

  constructor(schema: LooseObject) {
    this.schema = this.#reduced(schema, 0)
  }

  #reduced(schema: unknown, depth: number): unknown {
    if (depth > MAX_SCHEMA_DEPTH) throw invalidField(SCHEMA_PATH, 'it is nested too deeply')
    if (Array.isArray(schema)) return schema.map((one) => this.#reduced(one, depth + 1))
    if (!isObject(schema)) return schema
    const kept = Object.entries(schema).flatMap(([keyword, value]) =>
      this.#keyword(keyword, value, depth + 1),
    )
    const isOfProperties = schema.type === 'object' || schema.properties !== undefined
    return Object.fromEntries(isOfProperties ? [...kept, ['additionalProperties', false]] : kept)
  }

  #keyword(keyword: string, value: unknown, depth: number): (readonly [string, unknown])[] {
    if (keyword === 'additionalProperties') return this.#without(isObject(value))
    const isRefused =
      REFUSED_LIMITS.has(keyword) ||
      (keyword === 'minItems' && value !== 0 && value !== 1) ||
      (keyword === 'format' && !FORMATS.has(value))
    if (isRefused) return this.#without(true)
    // The vendor knows no `oneOf`.
    if (HOLDS_SCHEMAS.has(keyword))
      return [[keyword === 'oneOf' ? 'anyOf' : keyword, this.#reduced(value, depth)]]
    if (!HOLDS_NAMED_SCHEMAS.has(keyword) || !isObject(value)) return [[keyword, value]]
    const named = Object.entries(value).map(([name, one]) => [name, this.#reduced(one, depth)] as const)
    return [[keyword, Object.fromEntries(named)]]
  }

  #without(isLooser: boolean): [] {
    this.isLooser ||= isLooser
    return []
  }
}
