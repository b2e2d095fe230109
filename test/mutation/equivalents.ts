/** Mutants that no test can notice, each with the reason. A run fails if it notices one, or if one is no longer made. */
export interface Equivalent {
  readonly file: string
  readonly code: string
  readonly mutant: string
  readonly why: string
}

interface EquivalentGroup extends Pick<Equivalent, 'file' | 'why'> {
  readonly mutants: readonly (readonly [code: string, mutant: string])[]
}

const GROUPS: readonly EquivalentGroup[] = [
  {
    file: 'src/credentials/budget.ts',
    why: 'a period is opened where none with its start is there',
    mutants: [['earlier < start', 'earlier <= start']],
  },
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
    why: 'without a tier the second charge is the first one again; it only takes longer',
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
    why: 'equal prices are the same',
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
    why: 'what does not match has no second part',
    mutants: [['[]', '["Stryker was here"]']],
  },
  {
    file: 'src/core/payments/price.ts',
    why: 'nothing is owed either way',
    mutants: [['owed > 0n', 'owed >= 0n']],
  },
  {
    file: 'src/core/limits/answer-memory.ts',
    why: 'an account that holds nothing is forgotten only to save memory',
    mutants: [
      ['held > 0', 'true'],
      ['held > 0', 'held >= 0'],
    ],
  },
  {
    file: 'src/core/limits/answer-memory.ts',
    why: 'there is always room for nothing',
    mutants: [['more <= 0', 'more < 0']],
  },
  {
    file: 'src/core/limits/rate-window.ts',
    why: 'what is behind the last entry is never read',
    mutants: [['[]', '["Stryker was here"]']],
  },
  {
    file: 'src/core/limits/rate-window.ts',
    why: 'no comparison with what is behind the last entry holds',
    mutants: [
      ['this.#head < this.#times.length', 'true'],
      ['this.#head < this.#times.length', 'this.#head <= this.#times.length'],
    ],
  },
  {
    file: 'src/core/limits/rate-window.ts',
    why: 'entries that have left are thrown away only to save memory',
    mutants: [
      ['this.#head >= SPENT_ENTRIES && this.#head * 2 >= this.#times', 'false'],
      [
        'this.#head >= SPENT_ENTRIES && this.#head * 2 >= this.#times',
        'this.#head >= SPENT_ENTRIES || this.#head * 2 >= this.#times',
      ],
      ['this.#head >= SPENT_ENTRIES', 'true'],
      ['this.#head >= SPENT_ENTRIES', 'this.#head > SPENT_ENTRIES'],
      ['this.#head >= SPENT_ENTRIES', 'this.#head < SPENT_ENTRIES'],
      ['this.#head * 2 >= this.#times.length', 'true'],
      ['this.#head * 2 >= this.#times.length', 'this.#head * 2 > this.#times.length'],
      ['this.#head * 2 >= this.#times.length', 'this.#head * 2 < this.#times.length'],
      ['this.#head * 2', 'this.#head / 2'],
    ],
  },
  {
    file: 'src/core/limits/rate-window.ts',
    why: 'behind the last entry nothing leaves',
    mutants: [['at < this.#times.length', 'at <= this.#times.length']],
  },
  {
    file: 'pipelines/tasks/end/settlement.ts',
    why: 'a response is charged by its tokens, or not at all',
    mutants: [['charge !== null && isByTokens(charge)', 'true']],
  },
  {
    file: 'src/limits/arbiter.ts',
    why: 'who withdraws nothing changes nothing',
    mutants: [
      ['withdrawn.length > 0', 'true'],
      ['withdrawn.length > 0', 'withdrawn.length >= 0'],
    ],
  },
  {
    file: 'src/limits/arbiter.ts',
    why: 'no serial number is a letter',
    mutants: [['[]', '["Stryker was here"]']],
  },
  {
    file: 'src/limits/arbiter.ts',
    why: 'a number is never closed',
    mutants: [["typeof request !== 'number'", 'true']],
  },
  {
    file: 'src/limits/client.ts',
    why: 'whoever follows a leader begins with none',
    mutants: [['[]', '["Stryker was here"]']],
  },
  {
    file: 'src/limits/client.ts',
    why: 'serial numbers only have to differ',
    mutants: [['++this.#serial', '--this.#serial']],
  },
  {
    file: 'src/limits/client.ts',
    why: 'a second turn, or a sweep of nothing, does nothing',
    mutants: [
      ['this.#isFlushComing', 'false'],
      ['true', 'false'],
      ['this.#waiting.size > 0', 'true'],
      ['this.#waiting.size > 0', 'this.#waiting.size >= 0'],
    ],
  },
  {
    file: 'src/limits/client.ts',
    why: 'a leader withdraws nothing that it has never had',
    mutants: [['!this.#unsent.delete(serial)', 'true']],
  },
  {
    file: 'src/limits/codec.ts',
    why: 'as many rows as fit are one part either way',
    mutants: [['rows <= MAX_LIMIT_ROWS', 'rows < MAX_LIMIT_ROWS']],
  },
  {
    file: 'src/limits/counter.ts',
    why: 'what has no time is dropped',
    mutants: [['[]', '["Stryker was here"]']],
  },
  {
    file: 'src/limits/limits.ts',
    why: 'what is released without a leader is forgotten before there is one',
    mutants: [["this.#mode === 'following'", 'true']],
  },
  {
    file: 'src/limits/limits.ts',
    why: 'no process is named null',
    mutants: [['gone !== null', 'true']],
  },
  {
    file: 'src/credentials/wallet.ts',
    why: 'an equal estimate is as large',
    mutants: [['estimate > this.#largestEstimate', 'estimate >= this.#largestEstimate']],
  },
  {
    file: 'src/credentials/wallet.ts',
    why: 'all of it is booked either way',
    mutants: [['cost < this.#unbooked', 'cost <= this.#unbooked']],
  },
  {
    file: 'pipelines/calls/max-price.ts',
    why: 'equal prices are the same',
    mutants: [['ofKey < wanted', 'ofKey <= wanted']],
  },
  {
    file: 'pipelines/calls/claim.ts',
    why: 'what is no head has no sink',
    mutants: [["reply.type === 'head'", 'true']],
  },
  {
    file: 'pipelines/calls/claim.ts',
    why: 'an answer begins with its head',
    mutants: [['[]', '["Stryker was here"]']],
  },
  {
    file: 'pipelines/chat/precharge.ts',
    why: 'an equal estimate is as high',
    mutants: [['estimate > most', 'estimate >= most']],
  },
  {
    file: 'pipelines/chat/forward/response-notes.ts',
    why: 'it is called where there are too many',
    mutants: [['oldest === undefined', 'false']],
  },
  {
    file: 'pipelines/chat/stored/state.ts',
    why: 'only a call with a state is in a conversation',
    mutants: [['call.call.state?.isBackground', 'call.call.state.isBackground']],
  },
  {
    file: 'pipelines/settlement/batch-worker.ts',
    why: 'a second reading finds nothing',
    mutants: [
      ['this.#isReadComing', 'false'],
      ['true', 'false'],
    ],
  },
  {
    file: 'pipelines/settlement/batch-worker.ts',
    why: 'no work without a message is held',
    mutants: [['delivery !== null', 'true']],
  },
  {
    file: 'pipelines/settlement/publisher.ts',
    why: 'where nothing is unbooked, nothing is waited for',
    mutants: [['journal.depth().settlementsUnbooked === 0', 'false']],
  },
  {
    file: 'pipelines/settlement/publisher.ts',
    why: 'what fails has no end either',
    mutants: [['oldest === undefined', 'false']],
  },
  {
    file: 'pipelines/settlement/publisher.ts',
    why: 'who is woken for nothing does nothing',
    mutants: [
      ['batches.length > 0', 'true'],
      ['batches.length > 0', 'batches.length >= 0'],
      ['journal.untaken > 0', 'true'],
      ['journal.untaken > 0', 'journal.untaken >= 0'],
    ],
  },
  {
    file: 'pipelines/settlement/publisher.ts',
    why: 'no batch is tried twice at one instant',
    mutants: [['sentAt <= now', 'sentAt < now']],
  },
  {
    file: 'pipelines/settlement/publisher.ts',
    why: 'what is undefined is not true',
    mutants: [['{ isOverdue: false, isUnreadable: false }', '{}']],
  },
  {
    file: 'pipelines/settlement/stored.ts',
    why: 'it only takes longer to find that nobody has waited for it',
    mutants: [
      ['at > 0 || this.#waiting.length === 0', 'false'],
      ['at > 0 || this.#waiting.length === 0', 'at > 0 && this.#waiting.length === 0'],
      ['at > 0', 'false'],
      ['this.#waiting.length === 0', 'false'],
    ],
  },
  {
    file: 'pipelines/settlement/stored.ts',
    why: 'one that waits is there',
    mutants: [['this.#waiting.shift()?.done', 'this.#waiting.shift().done']],
  },
  {
    file: 'pipelines/settlement/stored.ts',
    why: 'who looks for nothing finds nothing',
    mutants: [
      ['this.#waiting.length > 0', 'true'],
      ['this.#waiting.length > 0', 'this.#waiting.length >= 0'],
    ],
  },
]

export const EQUIVALENTS: readonly Equivalent[] = GROUPS.flatMap(({ file, why, mutants }) =>
  mutants.map(([code, mutant]) => ({ file, code, mutant, why })),
)
