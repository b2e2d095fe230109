/**
 * Reads and writes PostgreSQL's arrays of one dimension. The client (3.4.9) can ask the server for these types, on
 * each new connection; a connection that is lost meanwhile leaves it with an error that cannot be caught.
 */
import type postgres from 'postgres'

type Element = string | number | bigint | null

/** Of `pg_type`: `typarray` of each element's type. */
const TEXT_ARRAY = 1009
const SMALLINT_ARRAY = 1005
const INTEGER_ARRAY = 1007
const BIGINT_ARRAY = 1016
const FLOAT8_ARRAY = 1022

const NEEDS_ESCAPE = /["\\]/g
/** A quoted text with its escapes, or a bare text that needs none. */
const ELEMENT = /"([^"\\]*(?:\\.[^"\\]*)*)"|([^{},"]+)/gs
const ESCAPED = /\\(.)/gs

const quoteElement = (text: string): string => `"${text.replace(NEEDS_ESCAPE, '\\$&')}"`

const serialize = (values: readonly Element[]): string =>
  `{${values.map((value) => (value === null ? 'NULL' : quoteElement(String(value)))).join()}}`

const makeParser =
  <T>(parseElement: (text: string) => T) =>
  (text: string): (T | null)[] =>
    Array.from(text.matchAll(ELEMENT), ([, quoted, bare]) => {
      if (quoted !== undefined) return parseElement(quoted.replace(ESCAPED, '$1'))
      return bare === 'NULL' ? null : parseElement(bare ?? '')
    })

const arrayType = <T>(oid: number, parseElement: (text: string) => T) => ({
  to: oid,
  from: [oid],
  serialize,
  parse: makeParser(parseElement),
})

/** For the client's `types`. */
export const ARRAY_TYPES = {
  textArray: arrayType(TEXT_ARRAY, (text) => text),
  smallintArray: arrayType(SMALLINT_ARRAY, Number),
  integerArray: arrayType(INTEGER_ARRAY, Number),
  bigintArray: arrayType(BIGINT_ARRAY, BigInt),
  float8Array: arrayType(FLOAT8_ARRAY, Number),
} satisfies Record<string, postgres.PostgresType>
