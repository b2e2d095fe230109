/** Values of answers in the words of people. */
import { isObject, type Json, type JsonObject } from '../output.ts'
import { NULL_WORDS } from './fields.ts'

const NO_LIMIT: Readonly<Record<string, string>> = { requests_per_minute: 'none', concurrency: 'none' }

/** Says what a reader has to know of the former secret of a rotated key. */
function describeFormerSecret({ key_prefix, successor_used_at, ends_at }: JsonObject): string {
  if (Date.parse(String(ends_at)) <= Date.now()) return `${key_prefix}… ended at ${ends_at}`
  const until = `${key_prefix}… works until ${ends_at}`
  return successor_used_at === null ? `${until} at most: the new secret has not been used yet` : until
}

const idOf = (value: Json): Json => (isObject(value) ? (value.id ?? null) : value)

/** By the name of the field. */
const WORDS: Readonly<Record<string, (value: Json) => Json>> = {
  // The interface's word is points.
  currency: (value) => (value === 'points' ? 'credits' : value),
  former_secret: (value) => (isObject(value) ? describeFormerSecret(value) : value),
  receipts: (value) => (value as JsonObject[]).map(({ kind, number }) => `${kind} ${number}`).join(', '),
  persona: (value) => (String(value).length > 100 ? `${String(value).slice(0, 100)}…` : value),
  draft: (value) => (isObject(value) ? 'yes' : value),
  entry: idOf,
  request: idOf,
  dry_run: (value) =>
    value ? 'yes: nothing was booked; name --book to book them' : 'no: now run logs rebuild',
  repeated: (value) => (value === true ? 'the reference was booked before; nothing was changed' : value),
}

/** Returns the value of a field in words; `nulls` come before the usual words for null. */
export const inWords = (field: string, value: Json, nulls: Readonly<Record<string, string>> = {}): Json =>
  value === null
    ? (nulls[field] ?? NULL_WORDS[field] ?? NO_LIMIT[field] ?? null)
    : (WORDS[field]?.(value) ?? value)
