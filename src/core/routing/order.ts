/** In what order channels are tried. See docs/operating.md, "The configuration file". */
import type { Route } from './catalog.ts'

/** Picks one of `routes` by weight; `chance` is in [0, 1). */
function pickByWeight(routes: readonly Route[], chance: number): Route {
  let left = chance * routes.reduce((sum, route) => sum + route.channel.weight, 0)
  for (const route of routes) {
    left -= route.channel.weight
    if (left < 0) return route
  }
  return routes[routes.length - 1]!
}

/** Returns FNV-1a over the text, then mixed, as a number in (0, 1). */
function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (((hash ^ (hash >>> 16)) >>> 0) + 0.5) / 2 ** 32
}

/**
 * Picks the same of `options` for the same pin, by weight; when an option is added or removed, only its own pins move
 * (weighted rendezvous hashing). There is at least one option.
 */
export function pickByPin<T>(
  options: readonly T[],
  pin: string,
  toName: (option: T) => string,
  toWeight: (option: T) => number = () => 1,
): T {
  const score = (option: T) => -Math.log(hashText(`${pin} ${toName(option)}`)) / toWeight(option)
  return options.reduce((best, option) => (score(option) < score(best) ? option : best))
}

/** Returns a number by which equal routes are ordered, the least first. */
export type RankRoute = (route: Route) => number

function firstByRank(routes: readonly Route[], rank: RankRoute): readonly Route[] {
  const ranks = routes.map(rank)
  const least = Math.min(...ranks)
  return routes.filter((_, index) => ranks[index] === least)
}

/**
 * Returns the next route to try, or null when all are tried: the lowest priority number first, native before
 * translated, equals by `rank` and then by weight, or by `pin` where there is one. `routes` are in order of priority,
 * as the catalog returns them.
 */
export function chooseNextRoute(
  routes: readonly Route[],
  tried: readonly Route[],
  pin: string | null,
  random: () => number = Math.random,
  rank: RankRoute | null = null,
): Route | null {
  if (routes.length === 1 && tried.length === 0) return routes[0]!
  const open = routes.filter((route) => !tried.some((t) => t.channel.id === route.channel.id))
  const first = open[0]
  if (first === undefined) return null
  const equals = open.filter(
    ({ channel, isTranslated }) =>
      channel.priority === first.channel.priority && isTranslated === first.isTranslated,
  )
  if (pin !== null)
    return pickByPin(
      equals,
      pin,
      ({ channel }) => channel.id,
      ({ channel }) => channel.weight,
    )
  return pickByWeight(rank === null ? equals : firstByRank(equals, rank), random())
}
