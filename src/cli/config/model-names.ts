/** Names of models as the command line is given them. */
import { suggestion } from '../../core/suggest.ts'
import type { Wiring } from '../wiring.ts'
import { operatorConfig } from './config.ts'

/**
 * Refuses an allowlist with a name that is no id or alias of the configuration: it would allow nothing.
 * @throws Error with the nearest known name; ConfigProblems, UnknownConfig when it looks a name up
 */
export function assertKnownModels(
  wiring: Pick<Wiring, 'loadConfig'>,
  names: readonly string[] | 'all' | undefined,
): void {
  if (names === undefined || names === 'all' || names.length === 0) return
  const known = new Set(operatorConfig(wiring).models.flatMap(({ id, aliases }) => [id, ...aliases]))
  const unknown = names.filter((name) => !known.has(name))
  if (unknown.length === 0) return
  const problems = unknown.map(
    (name) => `The configuration has no model "${name}".${suggestion(name, known)}`,
  )
  throw new Error(`${problems.join('\n')}\nNothing was changed.`)
}
