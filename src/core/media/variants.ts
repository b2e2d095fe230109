/**
 * Variants of a model that have their own prices, such as the resolutions of a video: which one a request chooses,
 * and which one an upstream delivered. Pure.
 */
import type { ModelEntry } from '../../../schemas/config/catalog.ts'
import type { ResultFile } from '../../../schemas/media/job.ts'

type Priced = Pick<ModelEntry, 'pricing' | 'videos'>

export const listVariants = ({ pricing }: Pick<ModelEntry, 'pricing'>): string[] =>
  Object.keys(pricing?.variants ?? {})

/** Returns a name in the model's spelling: `720P` and `720p` are one variant with one price. */
export function findVariant(names: readonly string[], word: string): string | null {
  const wanted = word.trim().toLowerCase()
  return names.find((name) => name.toLowerCase() === wanted) ?? null
}

/**
 * Returns the variant of a request that names none: the configured default, else the dearest variant that the base
 * price covers, else the cheapest. Null where the model has no variants, or no base price: then a request has to name
 * one.
 */
export function findDefaultVariant(entry: Priced): string | null {
  const names = listVariants(entry)
  const { per_unit: base, variants = {} } = entry.pricing ?? {}
  const configured = entry.videos?.default_resolution
  const named = configured === undefined ? null : findVariant(names, configured)
  if (named !== null) return named
  if (base === undefined) return null
  const byPrice = names.toSorted((a, b) => Number(variants[a]! - variants[b]!))
  return byPrice.findLast((name) => variants[name]! <= base) ?? byPrice[0] ?? null
}

/** Lines of a 16:9 picture by the names of resolutions. */
const LINES: Readonly<Record<string, number>> = {
  '240p': 240,
  '360p': 360,
  '480p': 480,
  '720p': 720,
  '1080p': 1080,
  '2k': 1440,
  '1440p': 1440,
  '4k': 2160,
  '2160p': 2160,
}
const ASPECT = 16 / 9
const LINES_NAME = /^(\d{3,4})p$/

const parseLines = (name: string): number | null => {
  const word = name.toLowerCase()
  const known = Object.hasOwn(LINES, word) ? LINES[word] : undefined
  return known ?? (LINES_NAME.test(word) ? Number.parseInt(word, 10) : null)
}

/** Sides are rounded to what encoders take. */
const TOLERATED_FACTOR = 1.1
const isNear = (one: number, other: number): boolean =>
  Math.max(one, other) <= Math.min(one, other) * TOLERATED_FACTOR

/**
 * Returns the resolution of a video of this size. Vendors count by the area or by the shorter side: a match by either
 * counts, else the nearest by area among the model's own and larger ones. Null where the variants are no resolutions,
 * or the size is not known.
 */
function findResolution(
  { width, height }: ResultFile,
  names: readonly string[],
  asked: string | null,
): string | null {
  if (width === null || height === null || names.some((name) => parseLines(name) === null)) return null
  const lines = Math.sqrt((width * height) / ASPECT)
  const wanted = asked === null ? null : parseLines(asked)
  if (wanted !== null && (isNear(wanted, lines) || isNear(wanted, Math.min(width, height)))) return asked
  const largest = Math.max(...names.map((name) => parseLines(name)!))
  const larger = Object.keys(LINES).filter((name) => LINES[name]! > largest)
  const distance = (name: string) => Math.abs(Math.log(lines / parseLines(name)!))
  return [...names, ...larger].reduce((best, name) => (distance(name) < distance(best) ? name : best))
}

/** Values by which an upstream reports its own choice. */
const UNSAID = /^(auto|adaptive|default)?$/i

interface Agreed {
  /** The requested one. */
  readonly variant: string | null
  readonly variants: Readonly<Record<string, unknown>>
}

/**
 * Returns the delivered variant, by the upstream's report or by the size of the video; null where neither is known.
 */
export function findDeliveredVariant(
  { variant: asked, variants }: Agreed,
  { variant, files }: { readonly variant: string | null; readonly files: readonly ResultFile[] },
): string | null {
  const names = Object.keys(variants)
  if (names.length === 0) return null
  if (variant !== null && !UNSAID.test(variant.trim())) return findVariant(names, variant) ?? variant.trim()
  const video = files.find(({ role }) => role === 'video')
  return video === undefined ? null : findResolution(video, names, asked)
}
