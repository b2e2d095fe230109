/** Averages the time to the first byte of routes whose model asks for the least; later calls count more. */
import { type Route, routeName } from './catalog.ts'

/** Weight of the newest call in the average. */
const NEWEST_SHARE = 0.2
/** Routes that were never measured come first, so that they are. */
const UNMEASURED = -1

export class RouteLatencies {
  /** Milliseconds by channel and the upstream's name of the model. */
  readonly #averages = new Map<string, number>()

  noteTime(route: Route, ms: number): void {
    const name = routeName(route)
    const average = this.#averages.get(name) ?? ms
    this.#averages.set(name, average + (ms - average) * NEWEST_SHARE)
  }

  readonly of = (route: Route): number => this.#averages.get(routeName(route)) ?? UNMEASURED
}
