/** In what order channels are tried. Source: operator, "Configuration file": `priority`, `weight`. */
import type { Route } from './catalog.ts'

/** One of `routes` by weight; `chance` is in [0, 1). */
function pickByWeight(routes: readonly Route[], chance: number): Route {
  let left = chance * routes.reduce((sum, route) => sum + route.channel.weight, 0)
  for (const route of routes) {
    left -= route.channel.weight
    if (left < 0) return route
  }
  return routes[routes.length - 1]!
}

/**
 * The next route to try, or null when none is left: of those not tried yet, the lowest priority number first,
 * equals by weight. `routes` stand in order of priority, as the catalog gives them.
 */
export function nextRoute(
  routes: readonly Route[],
  tried: readonly Route[],
  random: () => number = Math.random,
): Route | null {
  if (routes.length === 1) return tried.length === 0 ? routes[0]! : null
  const open = routes.filter((route) => !tried.some((t) => t.channel.id === route.channel.id))
  const first = open[0]
  if (first === undefined) return null
  const equals = open.filter((route) => route.channel.priority === first.channel.priority)
  return pickByWeight(equals, random())
}
