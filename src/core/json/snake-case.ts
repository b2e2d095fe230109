/** Converts names: `createdAt` in the code is `created_at` in columns of tables and in fields of the API. */

/** The name in snake case. */
type SnakeName<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeName<Rest>}`
  : Name

/** A record with its names in snake case. */
export type SnakeCase<T> = { [Name in keyof T & string as SnakeName<Name>]: T[Name] }

type Shown<Value> = Value extends Date ? string : Value

/** Converts a name from camel case to snake case. */
export const toSnakeName = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/**
 * Converts a record to the form of the API: names in snake case, instants as RFC 3339. It keeps every field of the record; the
 * schema of an operation's answer leaves out those that are not shown.
 */
export const toApiShape = <T extends object>(record: T) =>
  Object.fromEntries(
    Object.entries(record).map(([name, value]) => [
      toSnakeName(name),
      value instanceof Date ? value.toISOString() : value,
    ]),
  ) as { [Name in keyof SnakeCase<T>]: Shown<SnakeCase<T>[Name]> }

const SNAKE = /_([a-z])/g

/** Converts the names of the fields of an object from snake case to camel case. */
export const toCamelFields = (fields: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name.replace(SNAKE, (_, letter: string) => letter.toUpperCase()),
      value,
    ]),
  )

/** Converts a row to the record that it holds. The row has no columns besides those of the record. */
export const fromRow = <T extends object>(row: SnakeCase<T>): T => toCamelFields(row) as T
