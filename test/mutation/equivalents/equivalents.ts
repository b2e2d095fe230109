/** Mutants that no test can notice, each with the reason. A run fails if it notices one, or if one is no longer made. */
import { CORE } from './core.ts'
import type { Equivalent } from './group.ts'
import { LIMITS } from './limits.ts'
import { PIPELINES } from './pipelines.ts'

export const EQUIVALENTS: readonly Equivalent[] = [...CORE, ...LIMITS, ...PIPELINES].flatMap(
  ({ file, why, mutants }) => mutants.map(([code, mutant]) => ({ file, code, mutant, why })),
)
