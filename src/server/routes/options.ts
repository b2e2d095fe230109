/** Options of routes that several families share, and the form of a family. */
import type { RouteName } from '../../../schemas/routes.ts'
import type { Handler } from '../../http/handler.ts'
import type { Route } from '../../http/router.ts'

/** What answers a route: a handler, with options where it needs some. Null: the route is not served. */
export type Answer = Handler | Route | null
export type Family = Readonly<Partial<Record<RouteName, Answer>>>

/** No key is checked on open routes, and no body is read. */
export const OPEN = { maxBodyBytes: 64 * 1024 } as const
/** Pages of the console, and files whose links are signed. */
export const UNCOUNTED = { ...OPEN, addressLimit: 'never' } as const
export const PROBE = { ...UNCOUNTED, isAnsweredWhileDraining: true } as const
