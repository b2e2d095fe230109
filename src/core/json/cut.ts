/** Cuts texts between characters: half a pair of surrogates is no text for other parsers and for engines. */

const CUT_MARK = '…'
const HALF = /[\uD800-\uDBFF]$/

/** Returns the beginning of a text, at most `maxChars` UTF-16 units. */
export const cutText = (text: string, maxChars: number): string =>
  text.length <= maxChars ? text : text.slice(0, maxChars).replace(HALF, '')

/** Returns the same with a mark where it is cut; the mark counts. */
export const shorten = (text: string, maxChars: number): string =>
  text.length <= maxChars ? text : `${cutText(text, maxChars - CUT_MARK.length)}${CUT_MARK}`
