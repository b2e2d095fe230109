/** Mutants that no test can notice, each with the reason. A run fails if it notices one, or if one is no longer made. */
export interface Equivalent {
  readonly file: string
  readonly code: string
  readonly mutant: string
  readonly why: string
}

export const EQUIVALENTS: readonly Equivalent[] = []
