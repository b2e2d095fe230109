/** Which of two forms of an answer an `Accept` header prefers. RFC 9110, section 12.5.1. */

/** A range of media types; the weight is 0 to 1. */
interface MediaRange {
  readonly name: string
  readonly weight: number
}

/** A parameter's value, in which commas and semicolons part nothing. */
const QUOTED = /"(?:[^"\\]|\\.)*"?/g
const WEIGHT = /;\s*q\s*=\s*([^;\s]*)/i
const QVALUE = /^(?:0(?:\.\d*)?|1(?:\.0*)?)$/

function readRange(text: string): MediaRange[] {
  const [name = ''] = text.split(';', 1)
  const given = WEIGHT.exec(text)?.[1]
  // A text that is no weight leaves none: the range is ignored.
  if (given !== undefined && !QVALUE.test(given)) return []
  return [{ name: name.trim().toLowerCase(), weight: given === undefined ? 1 : Number(given) }]
}

interface Preference {
  readonly weight: number
  /** Specificity of the match: 2 the type itself, 1 its family, 0 anything, -1 none. */
  readonly closeness: number
}

/** Returns the weight of the most specific range; of two that are equally specific, the larger. */
function findPreference(type: string, ranges: readonly MediaRange[]): Preference {
  const names = ['*/*', `${type.split('/')[0]}/*`, type]
  return ranges
    .map(({ name, weight }) => ({ weight, closeness: names.indexOf(name) }))
    .reduce(
      (best, next) =>
        next.closeness > best.closeness || (next.closeness === best.closeness && next.weight > best.weight)
          ? next
          : best,
      { weight: 0, closeness: -1 },
    )
}

const readRanges = (accept: string): readonly MediaRange[] =>
  accept.replace(QUOTED, '').split(',').flatMap(readRange)

const JSON_TYPE = 'application/json'
const AUDIO = 'audio/'
/** Media types that request sound. */
const SOUND_TYPES = ['audio/mpeg', 'application/octet-stream']

/**
 * Returns whether a type is preferred over JSON: by its weight or, where the weights are equal, by a more specific
 * range. JSON is the default where neither is preferred, and where neither is acceptable.
 */
function isPreferred(type: string, ranges: readonly MediaRange[]): boolean {
  const wanted = findPreference(type, ranges)
  const json = findPreference(JSON_TYPE, ranges)
  if (wanted.weight === 0) return false
  return wanted.weight === json.weight ? wanted.closeness > json.closeness : wanted.weight > json.weight
}

export const prefersCsv = (accept: string): boolean => isPreferred('text/csv', readRanges(accept))

/** Returns whether sound of any kind, or plain bytes, is preferred over JSON. */
export function prefersSound(accept: string): boolean {
  const ranges = readRanges(accept).map((range) =>
    range.name.startsWith(AUDIO) ? { ...range, name: SOUND_TYPES[0]! } : range,
  )
  return SOUND_TYPES.some((type) => isPreferred(type, ranges))
}

/** Returns whether JSON is named, and not just matched by a wildcard. */
export function namesJson(accept: string): boolean {
  const { weight, closeness } = findPreference(JSON_TYPE, readRanges(accept))
  return weight > 0 && closeness > 0
}
