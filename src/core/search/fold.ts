/**
 * Text in the form in which search compares it: without case, accents, widths and ligatures. Unicode Standard Annex 15
 * (NFKC); the letters that have no decomposition are mapped as Unicode's root collation groups them.
 */
import { normalizeText } from '../normalize-text.ts'

const BEYOND_ASCII = /[\u0080-\uffff]/
/** Combining Diacritical Marks: accents. Vowel signs of other scripts, which carry meaning, are elsewhere. */
const ACCENTS = /[\u0300-\u036f]/g
const UNDECOMPOSED = /[ßæœøłđðþıħŧ]/g
const REPLACEMENTS: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ı: 'i',
  ħ: 'h',
  ŧ: 't',
}

/** Returns the folded text; for text beyond ASCII its length may differ. */
export function foldText(text: string): string {
  if (!BEYOND_ASCII.test(text)) return text.toLowerCase()
  const bare = normalizeText(normalizeText(text, 'NFKC').toLowerCase(), 'NFD').replace(ACCENTS, '')
  return normalizeText(bare, 'NFC').replace(UNDECOMPOSED, (letter) => REPLACEMENTS[letter]!)
}
