/**
 * Removes flags from a prompt, such as `--dur 60`: an older form of a field, which some upstreams obey. The charge
 * follows the fields, so flags are removed before a prompt is sent. Pure.
 */
import { normalizeText } from '../normalize-text.ts'

/** Every dash that parsers or people take for a hyphen. */
const DASHES = '\\-\\u2010-\\u2015\\u2212\\u2e3a\\u2e3b\\ufe58\\ufe63\\uff0d'
/** Typing programs make one of these of two hyphens. */
const LONG_DASHES = '\\u2013-\\u2015\\u2e3a\\u2e3b\\ufe58'
const SPACE = '[\\s\\u0000-\\u001f\\u0085\\u180e\\u2800]'
const SEPARATOR = `(?:${SPACE}|[=:])*`
const VALUE = `(?:"[^"]*"|'[^']*'|(?![${DASHES}]{2}|${SPACE})\\S+)?`
/** A value that cannot be a word of a sentence: after one long dash a name by itself may be prose. */
const SURE_VALUE = '(?:[\\-+]?\\d\\S*|true\\b|false\\b|adaptive\\b)'

/** The longer of two names comes first where one begins with the other. */
const VIDEO_FLAGS = [
  'duration|dur|seconds|length',
  'resolution|res|rs|size|quality',
  'frames[_-]?per[_-]?second|frames?|fps',
  'ratio|rt|aspect[_-]?ratio|aspect|ar',
  'seed|camera[_-]?fixed|cf|watermark|wm',
  'generate[_-]?audio|audio|return[_-]?last[_-]?frame|draft|service[_-]?tier|n',
].join('|')
/** Flags that make an image model of the grid kind do more work, or other work, than the request orders. */
const GRID_FLAGS =
  'hd|sd|quality|q|repeat|r|turbo|fast|relax|draft|video|batch[_-]?size|bs|aspect|ar|version|v|niji'
const GRID_FLAGS_WITHOUT_VALUE = 'hd|sd|turbo|fast|relax|draft|video'

const matchFlagWithValue = (names: string, value: string): RegExp =>
  new RegExp(`[${DASHES}]{2}(?:${names})(?![\\p{L}_])${SEPARATOR}${value}`, 'giu')
const matchFlag = (names: string): RegExp =>
  new RegExp(`[${LONG_DASHES}](?:${names})(?![\\p{L}_])${SEPARATOR}${SURE_VALUE}`, 'giu')

/** Names that no sentence has between a dash and a number. */
const SURE_VIDEO_FLAGS =
  'duration|dur|resolution|rs|frames[_-]?per[_-]?second|frames|fps|ratio|rt|seed|camera[_-]?fixed|cf|watermark|wm'

const VIDEO_PATTERNS: readonly RegExp[] = [
  matchFlagWithValue(VIDEO_FLAGS, VALUE),
  matchFlag(SURE_VIDEO_FLAGS),
]
const GRID_PATTERNS: readonly RegExp[] = [
  new RegExp(`[${DASHES}]{2}(?:${GRID_FLAGS_WITHOUT_VALUE})(?![\\p{L}\\p{N}_])`, 'giu'),
  new RegExp(`[${LONG_DASHES}](?:hd|sd)(?![\\p{L}\\p{N}_])`, 'giu'),
  matchFlagWithValue(GRID_FLAGS, VALUE),
  matchFlag('repeat|quality|aspect|ar|version|niji'),
]

/** Folds a text as a lenient parser does: one form of each letter, without invisible characters. */
const foldBlanks = (text: string): string =>
  normalizeText(text, 'NFKC').replace(/\p{Default_Ignorable_Code_Point}/gu, '')

/** Removes the flags. A space replaces each, so that the texts on both sides do not form a flag. */
const removeAll = (text: string, patterns: readonly RegExp[]): string =>
  patterns.reduce((rest, pattern) => rest.replace(pattern, ' '), text)

/** Returns the text without flags; the same text where it has none. */
function withoutFlags(text: string, patterns: readonly RegExp[]): string {
  const plain = removeAll(text, patterns)
  const read = foldBlanks(plain)
  const reread = removeAll(read, patterns)
  const left = reread === read ? plain : reread
  return left === text ? text : left.replace(/[ \t]{2,}/g, ' ').trim()
}

/** Removes the flags for the length and size of a video, and those that repeat a field. */
export const withoutVideoFlags = (text: string): string => withoutFlags(text, VIDEO_PATTERNS)

/**
 * Returns the texts as one, without the flags that they form together: an upstream may join them, with a space or with
 * nothing between. Null where they form none.
 */
export function withoutSplitFlags(texts: readonly string[]): string | null {
  if (texts.length < 2) return null
  for (const between of ['', ' ']) {
    const joined = texts.join(between)
    const left = withoutVideoFlags(joined)
    if (left !== joined) return left
  }
  return null
}

interface GridPrompt {
  readonly prompt: string
  /** The quality that the prompt itself orders; null without one. */
  readonly tier: 'hd' | 'sd' | null
}

const TIER = new RegExp(`(?:[${DASHES}]{2}|[${LONG_DASHES}])(hd|sd)(?![\\p{L}\\p{N}_])`, 'iu')

/** Reads a prompt of an image model of the grid kind, and removes the flags that change the price of its images. */
export function readGridPrompt(text: string): GridPrompt {
  const prompt = withoutFlags(text, GRID_PATTERNS)
  const found = prompt === text ? undefined : TIER.exec(foldBlanks(text))?.[1]?.toLowerCase()
  return { prompt, tier: found === 'hd' || found === 'sd' ? found : null }
}
