/** Routes of the server, and the search for the one of a request. */
import { Failure } from '../../schemas/failure.ts'
import { cutText } from '../core/json/cut.ts'
import { suggested, suggestion } from '../core/suggest.ts'
import type { Handler, Reply } from './handler.ts'

export interface Route {
  readonly handler: Handler
  readonly maxBodyBytes?: number
  /** The route takes multipart forms, this long at most, and reads them as they come. */
  readonly maxFormBytes?: number
  /** Pages of other origins may not read the answers. */
  readonly isSameOrigin?: true
  /**
   * Requests that count as ones without a valid key. Left out: each one, where no key is asked for. `refused`: those that are
   * answered 401, since a session or a token does instead of a key. `never`: none, and the limit refuses none either.
   */
  readonly addressLimit?: 'refused' | 'never'
  /** Health checks and metrics, which stay available during a drain. */
  readonly isAnsweredWhileDraining?: boolean
}

/** Handlers by method. The one of GET answers HEAD, too. */
export type RouteMethods = Readonly<Partial<Record<string, Route>>>

/** Finds the handlers of a path; a Map is one where every path is known beforehand. */
export interface RouteTable {
  get(path: string): RouteMethods | undefined
  /** Returns the paths without parameters with their methods, as `get` does. */
  entries(): Iterable<readonly [path: string, RouteMethods]>
  /** Paths that a refusal may suggest, those in braces left out. */
  readonly endpoints?: readonly { readonly path: string }[]
}

const PREFLIGHT_MAX_AGE_SECONDS = 86_400
const MAX_ECHOED_PATH_CHARS = 200
const LISTED = ' GET /openapi.json lists every endpoint.'

const PREFLIGHT = {
  type: 'full',
  status: 204,
  headers: [
    ['access-control-allow-methods', 'GET, POST, DELETE, OPTIONS'],
    ['access-control-allow-headers', '*, authorization'],
    ['access-control-max-age', String(PREFLIGHT_MAX_AGE_SECONDS)],
  ],
  body: '',
} as const

/** A version alone begins too many paths. */
const MIN_PREFIX_SEGMENTS = 2

/** Returns the first path that begins so. */
function beginning(prefix: string, paths: readonly string[]): string | null {
  const segments = prefix.split('/').filter(Boolean).length
  return segments < MIN_PREFIX_SEGMENTS ? null : (paths.find((path) => path.startsWith(prefix)) ?? null)
}

/**
 * Says what to do about a path that leads nowhere. The whole beginning of a path is nearer than one with few other letters.
 * A long path is near to none, and is not compared.
 */
function hint({ endpoints = [] }: RouteTable, path: string): string {
  if (path.length > MAX_ECHOED_PATH_CHARS) return LISTED
  const paths = endpoints.filter((one) => !one.path.includes('{')).map((one) => one.path)
  const longer = suggested(beginning(`${path}/`, paths))
  return longer || suggestion(path, paths) || suggested(beginning(path, paths)) || LISTED
}

/** Returns the route; else the answer to a request that reaches none. */
export function findRoute(
  routes: RouteTable,
  { method, path }: { readonly method: string; readonly path: string },
): Route | Reply | Failure {
  const methods = routes.get(path)
  if (method === 'OPTIONS' && !Object.values(methods ?? {}).some((route) => route?.isSameOrigin))
    return PREFLIGHT
  if (methods === undefined)
    return new Failure(
      'not_found',
      `There is no endpoint at ${cutText(path, MAX_ECHOED_PATH_CHARS)}.${hint(routes, path)}`,
    )
  const handled = method === 'HEAD' ? 'GET' : method
  const route = Object.hasOwn(methods, handled) ? methods[handled] : undefined
  if (route !== undefined) return route
  const allow = Object.keys(methods)
    .flatMap((one) => (one === 'GET' ? ['GET', 'HEAD'] : [one]))
    .join(', ')
  return new Failure('method_not_allowed', `${path} takes ${allow}, not ${method}.`, {
    headers: [['allow', allow]],
  })
}
