/** Equivalent mutants of pure rules: prices, keys, media, payments. */
import type { EquivalentGroup } from './group.ts'

export const CORE: readonly EquivalentGroup[] = [
  {
    file: 'src/core/keys/address-list.ts',
    why: 'an empty list has nothing; it only takes longer',
    mutants: [['this.#networks.length === 0', 'false']],
  },
  {
    file: 'src/core/keys/ids.ts',
    why: 'the codes of a prefix are only kept to save time',
    mutants: [['last === undefined', 'true']],
  },
  {
    file: 'src/core/keys/ids.ts',
    why: 'the same time is written again',
    mutants: [['last.time !== now', 'true']],
  },
  {
    file: 'src/core/keys/ids.ts',
    why: 'chance is drawn for each identifier',
    mutants: [['poolAt === pool.length', 'true']],
  },
  {
    file: 'src/core/keys/ids.ts',
    why: 'the pool is longer',
    mutants: [['CHANCE_CHARS / 2', 'CHANCE_CHARS * 2']],
  },
  {
    file: 'src/core/keys/ids.ts',
    why: 'the pool is shorter',
    mutants: [['POOL_IDS * CHANCE_WORDS', 'POOL_IDS / CHANCE_WORDS']],
  },
  {
    file: 'src/core/keys/material.ts',
    why: '16 bytes are what a tag has by default',
    mutants: [['{ authTagLength: TAG_BYTES }', '{}']],
  },
  {
    file: 'src/core/pricing/catalog-difference.ts',
    why: 'no model of a list has that name',
    mutants: [
      ['[]', '["Stryker was here"]'],
      ['upstream === undefined', 'false'],
    ],
  },
  {
    file: 'src/core/pricing/changes.ts',
    why: 'the only prices are found the longer way too',
    mutants: [['pricing.changes.length === 0', 'false']],
  },
  {
    file: 'src/core/pricing/estimate.ts',
    why: 'counting finds none in ASCII; it only takes longer',
    mutants: [['isAscii(text)', 'false']],
  },
  {
    file: 'src/core/pricing/estimate.ts',
    why: 'behind the last byte is none',
    mutants: [['i < text.length', 'i <= text.length']],
  },
  {
    file: 'src/core/pricing/estimate.ts',
    why: 'a plain price has the same estimate for each kind; it only takes longer',
    mutants: [['current.isPlain && tier === undefined', 'false']],
  },
  {
    file: 'src/core/pricing/estimate.ts',
    why: 'without a tier it only computes the same charge twice',
    mutants: [['tier === undefined', 'false']],
  },
  {
    file: 'src/core/pricing/estimate.ts',
    why: 'an equal charge is as dear',
    mutants: [['charge > most', 'charge >= most']],
  },
  {
    file: 'src/core/pricing/price-list.ts',
    why: 'with no places nothing is divided or multiplied',
    mutants: [['places >= 0', 'places > 0']],
  },
  {
    file: 'src/core/pricing/pricing.ts',
    why: 'charges by whole numbers of any size are the same; they only take longer',
    mutants: [['value / factor', 'value * factor']],
  },
  {
    file: 'src/core/pricing/pricing.ts',
    why: 'a sum with a price too large for numbers is too large too, and both ways have the same charge',
    mutants: [
      [
        'values.every((value) => value <= Number.MAX_SAFE_INTEGER)',
        'values.some(value => value <= Number.MAX_SAFE_INTEGER)',
      ],
      ['(value) => value <= Number.MAX_SAFE_INTEGER', '() => undefined'],
      ['value <= Number.MAX_SAFE_INTEGER', 'true'],
      ['value <= Number.MAX_SAFE_INTEGER', 'false'],
      ['value <= Number.MAX_SAFE_INTEGER', 'value < Number.MAX_SAFE_INTEGER'],
      ['value <= Number.MAX_SAFE_INTEGER', 'value > Number.MAX_SAFE_INTEGER'],
    ],
  },
  {
    file: 'src/core/pricing/pricing.ts',
    why: 'the charge by items is the same; it only takes longer',
    mutants: [
      ['[terms.inputAudio, terms.inputImage].every((rate) => rate ==', 'false'],
      ['(rate) => rate === terms.input', '() => undefined'],
      ['rate === terms.input', 'false'],
      ['(rate) => rate === terms.output', '() => undefined'],
      ['rate === terms.output', 'false'],
      ['tiers.every(isUniform) && minimum === 0n && Object.keys(serv', 'false'],
      ['current.isPlain && usage.extra === undefined && factor === n', 'false'],
      ['({ full: { terms } }: TokenRates): boolean => [terms.inputAu', '() => undefined'],
    ],
  },
  {
    file: 'src/core/pricing/pricing.ts',
    why: 'no tier has the factor of the usual one; it only takes longer',
    mutants: [['factor === null', 'false']],
  },
  {
    file: 'src/core/pricing/pricing.ts',
    why: 'an equal charge is the minimum',
    mutants: [['charge < minimum', 'charge <= minimum']],
  },
  {
    file: 'src/core/pricing/pricing.ts',
    why: 'the charge by whole numbers of any size is the same; it only takes longer',
    mutants: [
      ['{ const sum = freshTokens(usage) * prices.fresh + usage.cach', '{}'],
      ['!Number.isSafeInteger(sum)', 'true'],
    ],
  },
  {
    file: 'src/core/pricing/text-tokens.ts',
    why: 'no digit is a colon',
    mutants: [['byte < DIGITS_END', 'byte <= DIGITS_END']],
  },
  {
    file: 'src/core/pricing/text-tokens.ts',
    why: 'it only saves the comparisons that follow',
    mutants: [['byte <= QUOTE', 'true']],
  },
  {
    file: 'src/core/pricing/usage.ts',
    why: 'a field without a value is none',
    mutants: [['compaction === undefined', 'false']],
  },
  {
    file: 'src/core/pricing/price-list.ts',
    why: 'nothing follows a number that JavaScript prints',
    mutants: [['/^(\\d+)(?:\\.(\\d+))?(?:e([+-]\\d+))?$/', '/^(\\d+)(?:\\.(\\d+))?(?:e([+-]\\d+))?/']],
  },
  {
    file: 'src/core/media/pricing.ts',
    why: 'what is lost is less than any rounding shows',
    mutants: [['CHARACTERS_PER_UNIT * SECONDS_PER_MINUTE', 'CHARACTERS_PER_UNIT / SECONDS_PER_MINUTE']],
  },
  {
    file: 'src/core/media/pricing.ts',
    why: 'equal prices are interchangeable',
    mutants: [['one < other', 'one <= other']],
  },
  {
    file: 'src/core/media/pricing.ts',
    why: 'a shift by no places changes nothing',
    mutants: [['shift >= 0', 'shift > 0']],
  },
  {
    file: 'src/core/media/pricing.ts',
    why: 'no variant is named null',
    mutants: [['variant !== null', 'true']],
  },
  {
    file: 'src/core/payments/price.ts',
    why: 'all of the money has all of the credits',
    mutants: [['part >= whole.amount', 'part > whole.amount']],
  },
  {
    file: 'src/core/payments/price.ts',
    why: 'without a match there is no second part',
    mutants: [['[]', '["Stryker was here"]']],
  },
  {
    file: 'src/core/payments/price.ts',
    why: 'the charge is zero either way',
    mutants: [['owed > 0n', 'owed >= 0n']],
  },
]
