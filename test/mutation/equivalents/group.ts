export interface Equivalent {
  readonly file: string
  readonly code: string
  readonly mutant: string
  readonly why: string
}

/** Mutants of one file that no test can notice for one reason. */
export interface EquivalentGroup extends Pick<Equivalent, 'file' | 'why'> {
  readonly mutants: readonly (readonly [code: string, mutant: string])[]
}
