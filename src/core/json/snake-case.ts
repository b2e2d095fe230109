/** Names in two spellings: `createdAt` in the code is `created_at` in columns of tables and in fields of the API. */

/** The name in snake case. */
type SnakeName<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeName<Rest>}`
  : Name

/** A record with its names in snake case. */
export type SnakeCase<T> = { [Name in keyof T & string as SnakeName<Name>]: T[Name] }

type Shown<Value> = Value extends Date ? string : Value

/** Returns a name of camel case in snake case. */
export const snakeName = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/**
 * Returns a record as the API has it: names in snake case, instants as RFC 3339. It has every field of the record; the schema
 * of an operation's answer leaves out those that are not shown.
 */
export const shapeOf = <T extends object>(record: T) =>
  Object.fromEntries(
    Object.entries(record).map(([name, value]) => [
      snakeName(name),
      value instanceof Date ? value.toISOString() : value,
    ]),
  ) as { [Name in keyof SnakeCase<T>]: Shown<SnakeCase<T>[Name]> }
