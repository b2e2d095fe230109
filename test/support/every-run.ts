/** Properties that fast-check draws values for. */
import fc from 'fast-check'
import type { Test } from 'tap'

/** Checks what must hold of all values, with values that fast-check draws; a predicate fails by false or by throwing. */
export function everyRun<Values extends [unknown, ...unknown[]]>(
  t: Test,
  options: fc.Parameters<Values>,
  arbitraries: { [Index in keyof Values]: fc.Arbitrary<Values[Index]> },
  holds: (...values: Values) => unknown,
): void {
  fc.assert(
    fc.property(...arbitraries, (...values: Values) => holds(...values) !== false),
    options,
  )
  t.pass('every run held')
}
