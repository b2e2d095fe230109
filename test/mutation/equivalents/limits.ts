/** Of limits, wallets and budgets in one process. */
import type { EquivalentGroup } from './group.ts'

export const LIMITS: readonly EquivalentGroup[] = [
  {
    file: 'src/credentials/budget.ts',
    why: 'a period is opened where none with its start is there',
    mutants: [['earlier < start', 'earlier <= start']],
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
]
