/**
 * A light English stemmer: plural, -ing, -ed and the silent e. Far weaker than Porter's: ranking tolerates words that
 * it keeps apart, while words that a stronger one merges cannot be separated again.
 */

const SHORTEST_STEMMED = 4
const ENGLISH_WORD = /^[a-z]+$/
const VOWEL = /[aeiouy]/
/** A doubled consonant before an ending; l, s and z may be doubled in the word itself. */
const DOUBLED = /([bdgmnprt])\1$/

/** Stems `word`, which is folded. Words with other characters than a to z are unchanged. */
export function stem(word: string): string {
  if (word.length < SHORTEST_STEMMED || !ENGLISH_WORD.test(word)) return word
  const singular = withoutPlural(word)
  const plain = withoutEnding(singular)
  return plain.length >= SHORTEST_STEMMED && plain.endsWith('e') ? plain.slice(0, -1) : plain
}

function withoutPlural(word: string): string {
  if (!word.endsWith('s') || /(?:ss|us|is)$/.test(word)) return word
  if (word.endsWith('ies')) return word.length > 4 ? `${word.slice(0, -3)}y` : word.slice(0, -1)
  if (/(?:ss|x|z|ch|sh)es$/.test(word)) return word.slice(0, -2)
  return word.slice(0, -1)
}

function withoutEnding(word: string): string {
  const ending = word.endsWith('ing') ? 3 : word.endsWith('ed') && !word.endsWith('eed') ? 2 : 0
  if (ending === 0) return word
  const rest = word.slice(0, -ending)
  if (rest.length < 3 || !VOWEL.test(rest)) return word
  return DOUBLED.test(rest) ? rest.slice(0, -1) : rest
}
