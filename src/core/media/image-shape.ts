/**
 * Maps a requested size to the form that the kind of the model accepts. Most accept the size; grid-style models accept
 * only the ratio of its sides, and flags in the prompt for the quality; others accept only the prompt. See
 * docs/api-rules.md, "Images".
 */
import type { ImageTraits } from '../../../schemas/config/catalog.ts'
import { readGridPrompt } from './prompt-flags.ts'

/** The ratios that grid-style models know, and a size of each. */
const GRID_SIZES: ReadonlyArray<readonly [width: number, height: number, size: string]> = [
  [1, 1, '1024x1024'],
  [16, 9, '1024x576'],
  [9, 16, '576x1024'],
  [4, 3, '1024x768'],
  [3, 4, '768x1024'],
]
/** A ratio of larger numbers means nothing to a model: the nearest known one replaces it. */
const MAX_RATIO_TERM = 32
const SIZE = /^(\d{1,5})[xX*×](\d{1,5})$/
const RATIO = /^(\d{1,2}):(\d{1,2})$/
const AUTO = 'auto'

const TIER_OF_QUALITY: ReadonlyMap<unknown, string> = new Map([
  ['hd', 'hd'],
  ['high', 'hd'],
  ['sd', 'sd'],
  ['standard', 'sd'],
  ['medium', 'sd'],
  ['low', 'sd'],
])

export interface ImageShapeRequest {
  readonly prompt: string
  readonly size: string | null
  /** The other requested fields. */
  readonly extra: Readonly<Record<string, unknown>>
}

type Ratio = readonly [width: number, height: number]

/** Returns the sides of a size or a ratio; null for any other text. */
function parseSides(size: string): Ratio | null {
  const [, width = '', height = ''] = SIZE.exec(size) ?? RATIO.exec(size) ?? []
  const sides: Ratio = [Number(width), Number(height)]
  return sides[0] > 0 && sides[1] > 0 ? sides : null
}

/** Ratios are as far apart as their logarithms. */
function findNearestGridSize([width, height]: Ratio) {
  const distance = ([across, down]: (typeof GRID_SIZES)[number]) =>
    Math.abs(Math.log((width * down) / (height * across)))
  return GRID_SIZES.reduce((best, size) => (distance(size) < distance(best) ? size : best))
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b)
}

function printRatio(sides: Ratio): string {
  const divisor = greatestCommonDivisor(...sides)
  const [width, height] = sides.map((side) => side / divisor) as [number, number]
  if (Math.max(width, height) <= MAX_RATIO_TERM) return `${width}:${height}`
  const [across, down] = findNearestGridSize(sides)
  return `${across}:${down}`
}

/**
 * Returns the request with its quality in the one priced field: flags in the prompt of a grid-style model are removed
 * from it, and take precedence over the field `quality`.
 */
export function withQualityApart(
  traits: ImageTraits | undefined,
  wish: ImageShapeRequest,
): ImageShapeRequest {
  if (traits?.grid !== true) return wish
  const { prompt, tier } = readGridPrompt(wish.prompt)
  const { quality } = wish.extra
  const asked = tier ?? TIER_OF_QUALITY.get(quality) ?? quality
  return asked === undefined
    ? { ...wish, prompt }
    : { ...wish, prompt, extra: { ...wish.extra, quality: asked } }
}

function withFlag({ prompt, size, extra }: ImageShapeRequest): ImageShapeRequest {
  const { quality, ...rest } = extra
  if (quality !== 'hd' && quality !== 'sd') return { prompt, size, extra }
  return { prompt: `${prompt} --${quality}`.trimStart(), size, extra: rest }
}

/** Returns the request in the form of the model. Null: the text is no size, and this model needs a ratio. */
export function chooseShape(
  traits: ImageTraits | undefined,
  asWritten: ImageShapeRequest,
): ImageShapeRequest | null {
  const { grid = false, ratio_in_prompt = false } = traits ?? {}
  if (!grid && !ratio_in_prompt) return asWritten
  const wish = withQualityApart(traits, asWritten)
  const asked = wish.size === AUTO ? null : wish.size
  const sides = asked === null ? null : parseSides(asked)
  if (asked !== null && sides === null) return null
  const prompt =
    ratio_in_prompt && sides !== null ? `${wish.prompt}\n\nAspect ratio: ${printRatio(sides)}` : wish.prompt
  const size = ratio_in_prompt || sides === null ? null : findNearestGridSize(sides)[2]
  return grid ? withFlag({ ...wish, size, prompt }) : { ...wish, size, prompt }
}
