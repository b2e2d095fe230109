import fc from 'fast-check'

const FIRST_SURROGATE = 0xd800
const SURROGATES = 0x800
const LAST_CODE_POINT = 0x10_ffff

/**
 * Any character of Unicode: the `unit` of a string that may hold whatever text can. The library's own, `binary`, holds
 * each of the million in a map, which takes a second to make.
 */
export const ANY_CHARACTER: fc.Arbitrary<string> = fc
  .integer({ min: 0, max: LAST_CODE_POINT - SURROGATES })
  .map((n) => String.fromCodePoint(n < FIRST_SURROGATE ? n : n + SURROGATES))
