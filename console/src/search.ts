/** The search parameters of pages, which links to them keep. */
import { parseSearchWith, stringifySearchWith } from '@tanstack/react-router'

/** Reads a value from the URL; throws if it is not JSON, so that the router keeps the text. */
function parseValue(text: string): unknown {
  const value: unknown = JSON.parse(text)
  // The router has already read the numbers that survive printing. Any other would lose digits of an id.
  return typeof value === 'number' ? text : value
}

export const readSearch = parseSearchWith(parseValue)
export const printSearch = stringifySearchWith(JSON.stringify, parseValue)

type Split<Texts extends string> = Texts extends ''
  ? never
  : Texts extends `${infer First} ${infer Rest}`
    ? First | Split<Rest>
    : Texts

/** Makes the `validateSearch` of a page whose parameters are texts. An id that has only digits arrives as a number. */
export const validateTexts =
  <Texts extends string>(texts: Texts) =>
  (search: Record<string, unknown>): { [Name in Split<Texts>]?: string } => {
    const given = texts.split(' ').flatMap((name) => {
      const value = search[name]
      return (typeof value === 'string' && value !== '') || typeof value === 'number'
        ? [[name, String(value)]]
        : []
    })
    return Object.fromEntries(given)
  }
