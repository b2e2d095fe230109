/** Paths with what answers them, for families of endpoints that have their own file. */
import type { Handler } from '../../http/handler.ts'
import type { Route } from '../../http/router.ts'

export interface RoutedPath {
  /** A segment in braces matches any text without a slash. */
  readonly path: string
  /** Empty: there is no endpoint, whatever other paths match. */
  readonly methods: Readonly<Record<string, Route>>
}

/** Returns a path with the handler of each of its methods; `options` are those of all of them. */
export const routed = (
  path: string,
  handlers: Readonly<Record<string, Handler>>,
  options: Omit<Route, 'handler'> = {},
): RoutedPath => ({
  path,
  methods: Object.fromEntries(
    Object.entries(handlers).map(([method, handler]) => [method, { handler, ...options }]),
  ),
})

const PARAMETER = /\{[^/]+\}/g

/** Returns a function that finds the handlers of a path; an exact path wins over one with a parameter. */
export function pathRouter(
  paths: readonly RoutedPath[],
): (path: string) => RoutedPath['methods'] | undefined {
  const exact = new Map(
    paths.flatMap(({ path, methods }) => (path.includes('{') ? [] : [[path, methods] as const])),
  )
  const patterns = paths.flatMap(({ path, methods }) =>
    path.includes('{') ? [{ pattern: new RegExp(`^${path.replaceAll(PARAMETER, '[^/]+')}$`), methods }] : [],
  )
  return (path) => {
    const methods = exact.get(path) ?? patterns.find(({ pattern }) => pattern.test(path))?.methods
    return methods === undefined || Object.keys(methods).length === 0 ? undefined : methods
  }
}
