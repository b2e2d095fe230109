/** Which of the call log's two forms an `Accept` header prefers. Source: RFC 9110, section 12.5.1. */

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
  // What is no weight gives none: the range is as if it did not stand there.
  if (given !== undefined && !QVALUE.test(given)) return []
  return [{ name: name.trim().toLowerCase(), weight: given === undefined ? 1 : Number(given) }]
}

interface Preference {
  readonly weight: number
  /** How closely the range names the type: 2 the type itself, 1 its family, 0 anything, -1 not at all. */
  readonly closeness: number
}

/** The closest range decides, whatever its weight; of two that are as close, the heavier. */
function preferenceFor(type: string, ranges: readonly MediaRange[]): Preference {
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

/**
 * Whether CSV is preferred over JSON: by its weight or, where the weights are equal, by being named more closely. JSON
 * is what is given where neither is preferred, and where neither is acceptable.
 */
export function prefersCsv(accept: string): boolean {
  const ranges = accept.replace(QUOTED, '').split(',').flatMap(readRange)
  const csv = preferenceFor('text/csv', ranges)
  const json = preferenceFor('application/json', ranges)
  if (csv.weight === 0) return false
  return csv.weight === json.weight ? csv.closeness > json.closeness : csv.weight > json.weight
}
