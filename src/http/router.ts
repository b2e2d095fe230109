/** Routes of the server, and the one router: it finds the route of a request, and reads the parameters of its path. */
import { Failure } from '../../schemas/failure.ts'
import { cutText } from '../core/json/cut.ts'
import { printSuggestion, suggest } from '../core/suggest.ts'
import type { GatewayRequest, Handler, PathParams, Reply } from './handler.ts'

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
  /**
   * The handler answers upgrades to a WebSocket, with the session on it; any other request finds no route here. The
   * function returns for how long a connection may be open, milliseconds.
   */
  readonly maxSocketMs?: () => number
  /** Health checks and metrics, which stay available during a drain. */
  readonly isAnsweredWhileDraining?: boolean
}

/** Routes by method. The one of GET answers HEAD, too. */
type RouteMethods = Record<string, Route>

/** A route at its method and path; `schemas/routes.ts` says how a path names its parameters. */
export type RoutedPath = readonly [method: string, path: string, route: Route]

/** The routes at a path, with the names of its parameters. */
interface Place {
  readonly methods: RouteMethods
  readonly parameters: readonly { readonly name: string; readonly segment: number }[]
  /** Whether the last parameter takes all segments that are left, and the text that ends them. */
  readonly rest: { readonly isOptional: boolean; readonly suffix: string } | null
}

/** What paths with parameters continue with after a segment. */
interface Branch {
  readonly literals: Map<string, Branch>
  parameter: Branch | null
  place: Place | null
  /** By their suffixes. */
  readonly rests: Map<string, Place>
}

export interface FoundRoute {
  readonly route: Route
  readonly params: PathParams
}

interface Match {
  readonly methods: RouteMethods
  /** @throws Failure `invalid_request` for a parameter that is not URL-encoded text */
  readonly readParams: () => PathParams
}

export const NO_PARAMS = Object.freeze({}) as PathParams
const PARAMETER = /^\{(?<name>\w+)(?<many>[+*]?)\}(?<suffix>.*)$/
/** A method that a protocol puts behind a name, such as `:generateContent`; the colon may be escaped. */
const SUFFIX = /(?::|%3[Aa])([a-z]+[A-Z][A-Za-z]*)$/

const readNone = (): PathParams => NO_PARAMS
const newBranch = (): Branch => ({ literals: new Map(), parameter: null, place: null, rests: new Map() })

function decode(name: string, text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Failure('invalid_request', `${name}: is not URL-encoded text.`)
  }
}

export class Router {
  readonly #exact = new Map<string, RouteMethods>()
  readonly #root = newBranch()

  constructor(paths: Iterable<RoutedPath>) {
    for (const [method, path, route] of paths) this.#findMethods(path)[method] = route
  }

  #findMethods(path: string): RouteMethods {
    if (path.includes('{')) return this.#addPlace(path).methods
    const methods = this.#exact.get(path) ?? {}
    this.#exact.set(path, methods)
    return methods
  }

  #addPlace(path: string): Place {
    let branch = this.#root
    const parameters: { name: string; segment: number }[] = []
    for (const [segment, text] of path.split('/').entries()) {
      const { name, many = '', suffix = '' } = PARAMETER.exec(text)?.groups ?? {}
      if (name === undefined) {
        const next = branch.literals.get(text) ?? newBranch()
        branch.literals.set(text, next)
        branch = next
        continue
      }
      parameters.push({ name, segment })
      if (many !== '') {
        const rest = { isOptional: many === '*', suffix }
        const place = branch.rests.get(suffix) ?? { methods: {}, parameters, rest }
        branch.rests.set(suffix, place)
        return place
      }
      branch.parameter ??= newBranch()
      branch = branch.parameter
    }
    branch.place ??= { methods: {}, parameters, rest: null }
    return branch.place
  }

  /** Returns the paths without parameters with their routes. */
  listExactPaths(): Iterable<readonly [path: string, Readonly<RouteMethods>]> {
    return this.#exact
  }

  /** Returns the routes at a path. An exact path wins over one with a parameter. */
  match(path: string): Match | null {
    const methods = this.#exact.get(path)
    if (methods !== undefined) return { methods, readParams: readNone }
    const segments = path.split('/')
    const place = findPlace(this.#root, segments, 0)
    return place && { methods: place.methods, readParams: () => readParams(place, segments) }
  }

  /** Returns the route with the parameters of the path; else the answer to a request that reaches none. */
  find(head: Pick<GatewayRequest, 'method' | 'path' | 'header'>): FoundRoute | Reply | Failure {
    const { method, path } = head
    const match = this.match(path)
    const { methods = {} } = match ?? {}
    if (method === 'OPTIONS' && !Object.values(methods).some((route) => route.isSameOrigin)) return PREFLIGHT
    if (match === null)
      return new Failure(
        'not_found',
        `There is no endpoint at ${cutText(path, MAX_ECHOED_PATH_CHARS)}.${this.#suggestPath(path)}`,
      )
    const handled = method === 'HEAD' ? 'GET' : method
    const route = Object.hasOwn(methods, handled) ? methods[handled] : undefined
    if (route === undefined || route.maxSocketMs !== undefined) {
      const served = Object.entries(methods).filter(([, { maxSocketMs }]) => maxSocketMs === undefined)
      return refuseMethod(
        head,
        served.map(([name]) => name),
      )
    }
    try {
      return { route, params: match.readParams() }
    } catch (error) {
      return error as Failure
    }
  }

  /**
   * Says what to do about a path that leads nowhere. The whole beginning of a path is nearer than one with few other
   * letters. A long path is near to none, and is not compared.
   */
  #suggestPath(path: string): string {
    if (path.length > MAX_ECHOED_PATH_CHARS) return LISTED
    const paths = Array.from(this.listExactPaths(), ([exact]) => exact)
    const longer = printSuggestion(findBeginning(`${path}/`, paths))
    return longer || suggest(path, paths) || printSuggestion(findBeginning(path, paths)) || LISTED
  }
}

function findPlace(branch: Branch, segments: readonly string[], at: number): Place | null {
  const segment = segments[at]
  if (segment === undefined) return branch.place
  const literal = branch.literals.get(segment)
  const found = literal && findPlace(literal, segments, at + 1)
  if (found) return found
  const { parameter, rests } = branch
  const one = segment !== '' && parameter ? findPlace(parameter, segments, at + 1) : null
  return one ?? (rests.size === 0 ? null : findRest(rests, segments.slice(at).join('/')))
}

/** A suffix that no path has is no part of a name where paths have suffixes. */
function findRest(rests: ReadonlyMap<string, Place>, text: string): Place | null {
  const [escaped = '', method = ''] = rests.size > 1 ? (SUFFIX.exec(text) ?? []) : []
  const place = rests.get(method && `:${method}`)
  const isEmpty = text.length === escaped.length
  return place === undefined || (isEmpty && place.rest?.isOptional !== true) ? null : place
}

function readParams({ parameters, rest }: Place, segments: readonly string[]): PathParams {
  const read = parameters.map(({ name, segment }, index): [string, string] => {
    if (rest === null || index < parameters.length - 1) return [name, decode(name, segments[segment]!)]
    const text = segments.slice(segment).join('/')
    return [name, decode(name, rest.suffix === '' ? text : text.replace(SUFFIX, ''))]
  })
  return Object.fromEntries(read) as PathParams
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

/** Too many paths begin with only a version. */
const MIN_PREFIX_SEGMENTS = 2

/** Returns the first path that begins so. */
function findBeginning(prefix: string, paths: readonly string[]): string | null {
  const segments = prefix.split('/').filter(Boolean).length
  return segments < MIN_PREFIX_SEGMENTS ? null : (paths.find((path) => path.startsWith(prefix)) ?? null)
}

/** The only status at which clients that try a WebSocket first fall back to HTTP at once. */
const HTTP_UPGRADE_REQUIRED = 426

function refuseMethod(
  { method, path, header }: Pick<GatewayRequest, 'method' | 'path' | 'header'>,
  methods: readonly string[],
): Failure {
  const allow = methods.flatMap((one) => (one === 'GET' ? ['GET', 'HEAD'] : [one])).join(', ')
  return new Failure('method_not_allowed', `${path} takes ${allow}, not ${method}.`, {
    headers: [['allow', allow]],
    ...(header('upgrade') !== '' && { status: HTTP_UPGRADE_REQUIRED }),
  })
}
