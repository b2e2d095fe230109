/** The beginning of a text. */

interface Excerpt {
  readonly text: string
  readonly isCut: boolean
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff

/** Cuts a text to `maxChars` Unicode characters: a pair of surrogates is one, and is never split. */
export function excerpt(text: string, maxChars: number): Excerpt {
  if (text.length <= maxChars) return { text, isCut: false }
  let end = 0
  for (let chars = 0; chars < maxChars && end < text.length; chars++)
    end += isHighSurrogate(text.charCodeAt(end)) && isLowSurrogate(text.charCodeAt(end + 1)) ? 2 : 1
  return { text: text.slice(0, end), isCut: end < text.length }
}
