/** The lines that a reader sees of a call. */
import type { DetailItem } from '../../../schemas/call-log/detail.ts'

/** Undefined: not known, or not there. */
export type Fact = readonly [name: string, value: string | number | boolean | undefined]

export const items = (facts: readonly Fact[]): DetailItem[] =>
  facts.flatMap(([k, value]) => (value === undefined ? [] : [{ k, v: String(value) }]))
