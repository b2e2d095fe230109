/** The form in which titles, aliases, links and tags compare, whatever their spelling. */
import { normalizeText } from '../normalize-text.ts'

/** In characters, roughly as a reader counts them: longer names are compared only by their beginning. */
const NAME_KEY_MAX_CHARS = 300

const SPACES = /\s+/gu

/**
 * Folds compatibility forms and case and collapses white space: `ＡＰＩ Keys` and `api keys` are one name. Upper case
 * first, since only it unifies `ß` and `ss`, `ς` and `σ`.
 */
export function nameKey(name: string): string {
  const folded = normalizeText(normalizeText(name, 'NFKC').toUpperCase().toLowerCase(), 'NFKC')
  return [...folded.replace(SPACES, ' ').trim()].slice(0, NAME_KEY_MAX_CHARS).join('')
}
