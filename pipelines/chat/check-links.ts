/**
 * Checks the links of a chat request before an upstream gets them: it must not fetch from the operator's network for a
 * client. See docs/api-rules.md, "Links from clients".
 */
import { catchError, from, map, of } from 'rxjs'
import type { Stage } from '../calls/pipeline.ts'
import type { PricedCall, ServedModel } from './select-model.ts'

export interface LinkDeps {
  /** Rejects with a `Failure` `invalid_request` that names the link which may not be forwarded. */
  readonly checkLinks: (urls: readonly string[]) => Promise<void>
}

/**
 * Keeps the routes that the links of the call may go to: all of them, or those with `private_links`.
 * @throws Failure `invalid_request`
 */
export const checkLinks =
  <C extends PricedCall>(deps: LinkDeps): Stage<C, C> =>
  (call: C) => {
    const { urls } = call.call.links
    if (urls.length === 0) return call
    const models = [call, ...call.fallbacks]
    const trusting = models.map(trustingRoutes)
    if (models.every(({ routes }, index) => trusting[index]!.routes.length === routes.length)) return call
    return from(deps.checkLinks(urls)).pipe(
      map(() => call),
      catchError((error: unknown) => {
        const [first, ...others] = trusting.filter(({ routes }) => routes.length > 0)
        if (first === undefined) throw error
        return of({ ...call, ...first, fallbacks: others })
      }),
    )
  }

const trustingRoutes = ({ model, routes }: ServedModel): ServedModel => ({
  model,
  routes: routes.filter(({ channel }) => channel.private_links),
})
