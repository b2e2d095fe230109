/** Who is served, and which model: the same in every dialect, though each tells it in its own words. */

import { splitModelName } from './directives.ts'

/** The one key that is refused. */
export const BAD_KEY = 'sim-bad-key'
const MODEL_PREFIX = 'sim'

export type NamedModel = {
  /** Without directives. */
  readonly model: string
  readonly directives: string | null
  readonly isServed: boolean
}

export function namedModel(name: string): NamedModel {
  const split = splitModelName(name)
  return { ...split, isServed: split.model.startsWith(MODEL_PREFIX) }
}
