/** Names the fields that a schema does not have, and those that were probably meant. */
import type { z } from 'zod'
import { findNearest, printSuggestion } from './suggest.ts'

/** A shorter word is part of too many names. */
const MIN_PART_CHARS = 4

interface Definition {
  readonly shape?: Readonly<Record<string, z.ZodType>>
  readonly innerType?: z.ZodType
}

/** Returns the fields of the object at a path of a schema; none where it is not an object. */
function listFields(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  const { shape, innerType } = schema.def as Definition
  if (shape === undefined) return innerType === undefined ? [] : listFields(innerType, path)
  const [name, ...rest] = path
  if (name === undefined) return Object.keys(shape)
  const field = shape[String(name)]
  return field === undefined ? [] : listFields(field, rest)
}

/** Returns the name that is meant by another: the nearest, or the only one that the word is a part of. */
function guessMeant(name: string, known: readonly string[]): string | null {
  const found = findNearest(name, known)
  if (found !== null || name.length < MIN_PART_CHARS) return found
  const longer = known.filter((one) => one.includes(name.toLowerCase()))
  return longer.length === 1 ? longer[0]! : null
}

/** Returns the refusal of fields that the schema does not have at a path. */
export function listUnknownFields(
  schema: z.ZodType,
  { keys, path }: { readonly keys: readonly string[]; readonly path: readonly PropertyKey[] },
): string {
  const known = listFields(schema, path)
  const refusals = keys.map(
    (key) =>
      `${[...path, key].join('.')}: is no field of this request.${printSuggestion(guessMeant(key, known))}`,
  )
  return refusals.join(' ')
}
