/** Ratios of sides, for upstreams that take no size in pixels. */

const PIXELS = /^(\d{1,5})[x*:](\d{1,5})$/i

/** Returns the sides of a size such as `1024x768` or `16:9`; null for anything else. */
export function parseSides(size: string | null): readonly [width: number, height: number] | null {
  const [, width, height] = PIXELS.exec(size ?? '') ?? []
  const sides = [Number(width), Number(height)] as const
  return sides[0] > 0 && sides[1] > 0 ? sides : null
}

/**
 * Returns the one of `ratios` that is nearest to a size; null without a size. Among equal ratios it is the one that is
 * nearest in area, as larger ones cost more; for a size that is a bare ratio, the first.
 */
export function findNearestRatio(size: string | null, ratios: readonly string[]): string | null {
  const wanted = parseSides(size)
  if (wanted === null) return null
  const isBare = size?.includes(':')
  const measureDistances = (ratio: string): readonly [inRatio: number, inArea: number] => {
    const [width, height] = parseSides(ratio) ?? [1, 1]
    const inArea = isBare ? 0 : Math.abs(width * height - wanted[0] * wanted[1])
    return [Math.abs(Math.log(width / height / (wanted[0] / wanted[1]))), inArea]
  }
  return ratios.reduce((best, ratio) => {
    const [one, other] = [measureDistances(ratio), measureDistances(best)]
    return one[0] < other[0] || (one[0] === other[0] && one[1] < other[1]) ? ratio : best
  })
}
