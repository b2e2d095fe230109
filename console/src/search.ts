/** Search parameters of pages: what a link to a page keeps. */
import { parseSearchWith, stringifySearchWith } from '@tanstack/react-router'

/** Reads a value of the URL; throws for a text that is no JSON, which is then kept. */
function parseValue(text: string): unknown {
  const value: unknown = JSON.parse(text)
  // The router has read the numbers that print as they are written. Any other would lose digits of an id.
  return typeof value === 'number' ? text : value
}

export const readSearch = parseSearchWith(parseValue)
export const printSearch = stringifySearchWith(JSON.stringify, parseValue)

/** Makes the `validateSearch` of a page whose parameters are texts. An id of digits alone arrives as a number. */
export const validateTexts =
  <Name extends string>(...names: readonly Name[]) =>
  (search: Record<string, unknown>): { [N in Name]?: string } => {
    const given = names.flatMap((name) => {
      const value = search[name]
      return (typeof value === 'string' && value !== '') || typeof value === 'number'
        ? [[name, String(value)]]
        : []
    })
    return Object.fromEntries(given)
  }
