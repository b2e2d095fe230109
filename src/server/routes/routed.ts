/** Paths with what answers them, for families of endpoints that have their own file. */
import type { Route } from '../../http/route.ts'

export interface RoutedPath {
  /** A segment in braces matches any text without a slash. */
  readonly path: string
  /** Empty: there is no endpoint, whatever other paths match. */
  readonly methods: Readonly<Record<string, Route>>
}

const PARAMETER = /\{[^/]+\}/g

/** Returns a function that finds the handlers of a path; an exact path wins over one with a parameter. */
export function pathRouter(
  routed: readonly RoutedPath[],
): (path: string) => RoutedPath['methods'] | undefined {
  const exact = new Map(
    routed.flatMap(({ path, methods }) => (path.includes('{') ? [] : [[path, methods] as const])),
  )
  const patterns = routed.flatMap(({ path, methods }) =>
    path.includes('{') ? [{ pattern: new RegExp(`^${path.replaceAll(PARAMETER, '[^/]+')}$`), methods }] : [],
  )
  return (path) => {
    const methods = exact.get(path) ?? patterns.find(({ pattern }) => pattern.test(path))?.methods
    return methods === undefined || Object.keys(methods).length === 0 ? undefined : methods
  }
}
