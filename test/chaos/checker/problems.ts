/** What must not be, in words, with examples. */
export type Problems = readonly string[]

const MAX_SHOWN = 10

/** One problem that names some of those it concerns; none where there are none. */
export const problem = (what: string, concerned: readonly unknown[]): Problems =>
  concerned.length === 0
    ? []
    : [`${what}: ${concerned.length}, such as ${concerned.slice(0, MAX_SHOWN).map(print).join('; ')}`]

const print = (one: unknown): string => (typeof one === 'string' ? one : JSON.stringify(one))
