/** Paths with what answers them, for families of endpoints that have their own file. */
import type { Route } from '../../http/route.ts'

export interface RoutedPath {
  /** One segment may be in braces: it matches any text without a slash. */
  readonly path: string
  readonly methods: Readonly<Record<string, Route>>
}

const PARAMETER = /\{[^/]+\}/

/** Returns a function that finds the handlers of a path; an exact path wins over one with a parameter. */
export function pathRouter(
  routed: readonly RoutedPath[],
): (path: string) => RoutedPath['methods'] | undefined {
  const exact = new Map(
    routed.flatMap(({ path, methods }) => (PARAMETER.test(path) ? [] : [[path, methods] as const])),
  )
  const patterns = routed.flatMap(({ path, methods }) =>
    PARAMETER.test(path) ? [{ pattern: new RegExp(`^${path.replace(PARAMETER, '[^/]+')}$`), methods }] : [],
  )
  return (path) => exact.get(path) ?? patterns.find(({ pattern }) => pattern.test(path))?.methods
}
