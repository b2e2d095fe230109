/** Mutants that no test can notice, each with the reason. A run fails if it notices one, or if one is no longer made. */
export interface Equivalent {
  readonly file: string
  readonly code: string
  readonly mutant: string
  readonly why: string
}

export const EQUIVALENTS: readonly Equivalent[] = [
  {
    file: 'src/credentials/budget.ts',
    code: 'earlier < start',
    mutant: 'earlier <= start',
    why: 'a period is opened where none with its start is there',
  },
  {
    file: 'src/core/keys/address-list.ts',
    code: 'this.#networks.length === 0',
    mutant: 'false',
    why: 'an empty list has nothing; it only takes longer',
  },
  {
    file: 'src/core/keys/ids.ts',
    code: 'last === undefined',
    mutant: 'true',
    why: 'the codes of a prefix are only kept to save time',
  },
  {
    file: 'src/core/keys/ids.ts',
    code: 'last.time !== now',
    mutant: 'true',
    why: 'the same time is written again',
  },
  {
    file: 'src/core/keys/ids.ts',
    code: 'poolAt === pool.length',
    mutant: 'true',
    why: 'chance is drawn for each identifier',
  },
  {
    file: 'src/core/keys/ids.ts',
    code: 'CHANCE_CHARS / 2',
    mutant: 'CHANCE_CHARS * 2',
    why: 'the pool is longer',
  },
  {
    file: 'src/core/keys/ids.ts',
    code: 'POOL_IDS * CHANCE_WORDS',
    mutant: 'POOL_IDS / CHANCE_WORDS',
    why: 'the pool is shorter',
  },
  {
    file: 'src/core/keys/material.ts',
    code: '{ authTagLength: TAG_BYTES }',
    mutant: '{}',
    why: '16 bytes are what a tag has by default',
  },
]
