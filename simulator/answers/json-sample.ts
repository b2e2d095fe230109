/** JSON values that fit a JSON Schema: tool arguments and structured output. */

import { isObject } from '../dialect.ts'
import { drawWord, type Random } from './words.ts'

const MAX_DEPTH = 8
const MAX_SAMPLED_INTEGER = 100

/**
 * A value of the schema. It follows `const`, `enum`, `type`, `properties`, `items`, the first of `anyOf` and
 * `oneOf`, and `$ref` into the schema itself; beyond eight levels it is null.
 */
export function sampleJson(schema: unknown, random: Random): unknown {
  return sample(schema, { root: schema, random, depth: 0 })
}

type Sampling = { readonly root: unknown; readonly random: Random; readonly depth: number }

function sample(schema: unknown, sampling: Sampling): unknown {
  if (!isObject(schema) || sampling.depth > MAX_DEPTH) return null
  const deeper = { ...sampling, depth: sampling.depth + 1 }
  if ('const' in schema) return schema.const
  if (Array.isArray(schema.enum)) return schema.enum[0]
  if (typeof schema.$ref === 'string') return sample(resolve(sampling.root, schema.$ref), deeper)
  for (const choice of [schema.anyOf, schema.oneOf]) {
    if (Array.isArray(choice)) return sample(choice[0], deeper)
  }
  // Some interfaces write the names of types in capitals.
  switch (String(Array.isArray(schema.type) ? schema.type[0] : schema.type).toLowerCase()) {
    case 'string':
      return drawWord(sampling.random)
    case 'integer':
      return Math.floor(sampling.random() * MAX_SAMPLED_INTEGER)
    case 'number':
      return Math.floor(sampling.random() * MAX_SAMPLED_INTEGER) + 0.5
    case 'boolean':
      return sampling.random() < 0.5
    case 'array':
      return [sample(schema.items, deeper)]
    case 'null':
      return null
    default:
      return sampleObject(schema.properties, deeper)
  }
}

function sampleObject(properties: unknown, sampling: Sampling): Record<string, unknown> {
  if (!isObject(properties)) return {}
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, sample(schema, sampling)]),
  )
}

function resolve(root: unknown, reference: string): unknown {
  let found = root
  for (const step of reference.replace(/^#\/?/, '').split('/').filter(Boolean)) {
    found = isObject(found) ? found[step] : undefined
  }
  return found
}
