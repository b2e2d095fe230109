/** Keeps the valid parts of an entry with mistakes, so that one mistake does not hide the others. */
import { z } from 'zod'
import { unwrap } from './issues.ts'

/** An entry of which any part may be missing because it was not well formed. */
export type Salvaged<T> = { readonly [Key in keyof T]?: Inner<T[Key]> }
type Inner<T> = T extends readonly unknown[] | string | bigint ? T : T extends object ? Salvaged<T> : T

/** Keeps every field, and every entry of a record, that its own schema takes; fills in defaults. */
export function salvage<T>(schema: z.ZodType<T>, value: unknown): Salvaged<T> {
  return (salvageAny(schema, value) ?? {}) as Salvaged<T>
}

function salvageAny(schema: z.ZodType, value: unknown): unknown {
  const inner = unwrap(schema)
  const isGroup = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (isGroup && inner instanceof z.ZodObject) {
    const fields = Object.entries(inner.shape as Record<string, z.ZodType>)
    return selectSound(fields.map(([key, field]) => [key, salvageAny(field, (value as Entry)[key])]))
  }
  if (isGroup && inner instanceof z.ZodRecord) {
    const { keyType, valueType } = inner as z.ZodRecord<z.ZodString, z.ZodType>
    const named = Object.entries(value).filter(([key]) => keyType.safeParse(key).success)
    return selectSound(named.map(([key, item]) => [key, salvageAny(valueType, item)]))
  }
  const parsed = schema.safeParse(value)
  return parsed.success ? parsed.data : undefined
}

type Entry = Readonly<Record<string, unknown>>

const selectSound = (entries: [string, unknown][]) =>
  Object.fromEntries(entries.filter(([, value]) => value !== undefined))
