/** Brings texts to one of Unicode's normal forms, in time that grows with their length. */

/**
 * The runtime sorts the combining marks behind a letter by comparing each with those before it. No language needs more
 * of them in a row: Unicode's Stream-Safe Text Format (Standard Annex 15) allows as many.
 */
const MAX_MARKS = 30
/** Marks but the joiner, and the two letters whose compatible form is a mark. */
const MARK = '[[\\p{M}\\uff9e\\uff9f]--\\u034f]'
const LONG_RUN = new RegExp(`${MARK}{${MAX_MARKS}}(?=${MARK})`, 'gv')
/** Invisible; marks on its two sides are sorted separately. */
const GRAPHEME_JOINER = '\u034f'
const BEYOND_ASCII = /[\u0080-\uffff]/

/**
 * Returns the text in a normal form. In a run of more than `MAX_MARKS` combining marks a joiner follows each so many, as
 * in the Stream-Safe Text Format.
 */
export const normalizeText = (text: string, form: 'NFC' | 'NFD' | 'NFKC' | 'NFKD'): string =>
  BEYOND_ASCII.test(text) ? text.replace(LONG_RUN, `$&${GRAPHEME_JOINER}`).normalize(form) : text
