/** Reads bodies in the payment provider's form: `a[b][0][c]=value`, URL-encoded. */

type FormValue = string | { [name: string]: FormValue }
export type FormFields = { [name: string]: FormValue }

/** Reads a body or a query; lists become objects with numbers as names. */
export function readFields(text: string): FormFields {
  const fields: FormFields = Object.create(null)
  for (const [name, value] of new URLSearchParams(text)) {
    const path = [
      name.replace(/\[.*$/s, ''),
      ...[...name.matchAll(/\[([^\]]*)\]/g)].map(([, part = '']) => part),
    ]
    let at = fields
    for (const part of path.slice(0, -1)) {
      const inner = at[part]
      at = at[part] = typeof inner === 'object' ? inner : Object.create(null)
    }
    const last = path.at(-1) as string
    at[last === '' ? String(Object.keys(at).length) : last] = value
  }
  return fields
}

export const readText = (fields: FormFields, name: string): string | null => {
  const value = fields[name]
  return typeof value === 'string' ? value : null
}

export const inner = (fields: FormFields, name: string): FormFields => {
  const value = fields[name]
  return typeof value === 'object' ? value : {}
}

/** Reads texts by name, as in metadata. */
export const readTexts = (fields: FormFields): Record<string, string> =>
  Object.fromEntries(
    Object.entries(fields).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
