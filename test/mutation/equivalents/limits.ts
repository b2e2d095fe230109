/** Equivalent mutants of limits, and of wallets and budgets in one process. */
import type { EquivalentGroup } from './group.ts'

export const LIMITS: readonly EquivalentGroup[] = [
  {
    file: 'src/credentials/budget.ts',
    why: 'a period with that start already exists',
    mutants: [['earlier < start', 'earlier <= start']],
  },
  {
    file: 'src/core/limits/answer-memory.ts',
    why: 'dropping an account without slots only saves memory',
    mutants: [
      ['held > 0', 'true'],
      ['held > 0', 'held >= 0'],
    ],
  },
  {
    file: 'src/core/limits/answer-memory.ts',
    why: 'a request for no slots always fits',
    mutants: [['more <= 0', 'more < 0']],
  },
  {
    file: 'src/core/limits/rate-window.ts',
    why: 'nothing reads past the last entry',
    mutants: [['[]', '["Stryker was here"]']],
  },
  {
    file: 'src/core/limits/rate-window.ts',
    why: 'comparisons with undefined are false',
    mutants: [
      ['this.#head < this.#times.length', 'true'],
      ['this.#head < this.#times.length', 'this.#head <= this.#times.length'],
    ],
  },
  {
    file: 'src/core/limits/rate-window.ts',
    why: 'removing expired entries only saves memory',
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
    why: 'there is nothing to expire past the last entry',
    mutants: [['at < this.#times.length', 'at <= this.#times.length']],
  },
  {
    file: 'src/limits/arbiter.ts',
    why: 'withdrawing nothing changes nothing',
    mutants: [
      ['withdrawn.length > 0', 'true'],
      ['withdrawn.length > 0', 'withdrawn.length >= 0'],
    ],
  },
  {
    file: 'src/limits/arbiter.ts',
    why: 'serial numbers are never letters',
    mutants: [['[]', '["Stryker was here"]']],
  },
  {
    file: 'src/limits/arbiter.ts',
    why: 'only objects can be closed',
    mutants: [["typeof request !== 'number'", 'true']],
  },
  {
    file: 'src/limits/client.ts',
    why: 'a process that starts to follow a leader has no grants yet',
    mutants: [['[]', '["Stryker was here"]']],
  },
  {
    file: 'src/limits/client.ts',
    why: 'serial numbers only need to be different',
    mutants: [['++this.#serial', '--this.#serial']],
  },
  {
    file: 'src/limits/client.ts',
    why: 'a second round, or an empty sweep, has no effect',
    mutants: [
      ['this.#isFlushComing', 'false'],
      ['true', 'false'],
      ['this.#waiting.size > 0', 'true'],
      ['this.#waiting.size > 0', 'this.#waiting.size >= 0'],
    ],
  },
  {
    file: 'src/limits/client.ts',
    why: 'a leader cannot withdraw what it never granted',
    mutants: [['!this.#unsent.delete(serial)', 'true']],
  },
  {
    file: 'src/limits/codec.ts',
    why: 'rows that fit exactly make one part either way',
    mutants: [['rows <= MAX_LIMIT_ROWS', 'rows < MAX_LIMIT_ROWS']],
  },
  {
    file: 'src/limits/counter.ts',
    why: 'an entry without a time is dropped',
    mutants: [['[]', '["Stryker was here"]']],
  },
  {
    file: 'src/limits/limits.ts',
    why: 'slots released without a leader are dropped before one is elected',
    mutants: [["this.#mode === 'following'", 'true']],
  },
  {
    file: 'src/limits/limits.ts',
    why: 'no process has the name null',
    mutants: [['gone !== null', 'true']],
  },
  {
    file: 'src/credentials/wallet.ts',
    why: 'equal estimates are interchangeable',
    mutants: [['estimate > this.#largestEstimate', 'estimate >= this.#largestEstimate']],
  },
  {
    file: 'src/credentials/wallet.ts',
    why: 'everything is booked either way',
    mutants: [['cost < this.#unbooked', 'cost <= this.#unbooked']],
  },
]
