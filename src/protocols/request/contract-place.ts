/** Derives the names that a contract knows from its schema: the gateway reads fields only under these names. */
import type { ZodType } from 'zod'
import { CHOSEN, type NameSet, place } from '../../core/json/names.ts'

/** The parts of a zod schema that are read here; each kind of schema has a few of these. */
export interface Definition {
  readonly type: string
  readonly shape?: Readonly<Record<string, ZodType>>
  readonly element?: ZodType
  readonly innerType?: ZodType
  readonly in?: ZodType
  readonly out?: ZodType
  readonly options?: readonly ZodType[]
  readonly discriminator?: string
  readonly catchall?: ZodType
}

export const readDefinition = (schema: ZodType): Definition => schema.def as unknown as Definition

/** Returns the place of bodies under any of several contracts. */
export function joinPlaces(places: readonly NameSet[]): NameSet {
  const inside = new Map<string, NameSet>()
  for (const { known } of places)
    for (const [name, under] of known) {
      const other = inside.get(name)
      inside.set(name, other === undefined ? under : joinPlaces([other, under]))
    }
  return inside.size === 0 ? CHOSEN : place('', Object.fromEntries(inside))
}

function read(schema: ZodType): NameSet {
  const { shape, element, innerType, in: before, out, options } = readDefinition(schema)
  const fields = Object.entries(shape ?? {})
  if (fields.length > 0)
    return place('', Object.fromEntries(fields.map(([name, field]) => [name, readPlace(field)])))
  const parts = [element, innerType, before, out, ...(options ?? [])]
  return joinPlaces(parts.filter((part) => part !== undefined).map(readPlace))
}

const known = new WeakMap<ZodType, NameSet>()

/** Returns the names of the schema. A field of any type, such as `z.unknown()`, may have any content. */
export function readPlace(schema: ZodType): NameSet {
  let found = known.get(schema)
  if (found === undefined) {
    found = read(schema)
    known.set(schema, found)
  }
  return found
}
