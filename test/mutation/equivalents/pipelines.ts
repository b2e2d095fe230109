/** Equivalent mutants of pipelines. */
import type { EquivalentGroup } from './group.ts'

export const PIPELINES: readonly EquivalentGroup[] = [
  {
    file: 'pipelines/tasks/end/settlement.ts',
    why: 'responses are charged only by tokens',
    mutants: [['charge !== null && isByTokens(charge)', 'true']],
  },
  {
    file: 'pipelines/calls/max-price.ts',
    why: 'equal prices are interchangeable',
    mutants: [['ofKey < wanted', 'ofKey <= wanted']],
  },
  {
    file: 'pipelines/calls/claim.ts',
    why: 'only a head has a sink',
    mutants: [["reply.type === 'head'", 'true']],
  },
  {
    file: 'pipelines/calls/claim.ts',
    why: 'every answer begins with a head',
    mutants: [['[]', '["Stryker was here"]']],
  },
  {
    file: 'pipelines/chat/precharge.ts',
    why: 'equal estimates are interchangeable',
    mutants: [['estimate > most', 'estimate >= most']],
  },
  {
    file: 'pipelines/chat/forward/response-notes.ts',
    why: 'the caller has checked that there are too many',
    mutants: [['oldest === undefined', 'false']],
  },
  {
    file: 'pipelines/chat/stored/state.ts',
    why: 'only calls with a state belong to a conversation',
    mutants: [['call.call.state?.isBackground', 'call.call.state.isBackground']],
  },
  {
    file: 'pipelines/settlement/batch-worker.ts',
    why: 'a second read finds nothing',
    mutants: [
      ['this.#isReadComing', 'false'],
      ['true', 'false'],
    ],
  },
  {
    file: 'pipelines/settlement/batch-worker.ts',
    why: 'work is held only with its message',
    mutants: [['delivery !== null', 'true']],
  },
  {
    file: 'pipelines/settlement/publisher.ts',
    why: 'without unbooked batches there is nothing to wait for',
    mutants: [['journal.depth().settlementsUnbooked === 0', 'false']],
  },
  {
    file: 'pipelines/settlement/publisher.ts',
    why: 'a failed entry has no end either',
    mutants: [['oldest === undefined', 'false']],
  },
  {
    file: 'pipelines/settlement/publisher.ts',
    why: 'waking up without work has no effect',
    mutants: [
      ['batches.length > 0', 'true'],
      ['batches.length > 0', 'batches.length >= 0'],
      ['journal.untaken > 0', 'true'],
      ['journal.untaken > 0', 'journal.untaken >= 0'],
    ],
  },
  {
    file: 'pipelines/settlement/publisher.ts',
    why: 'a batch is never tried twice at the same instant',
    mutants: [['sentAt <= now', 'sentAt < now']],
  },
  {
    file: 'pipelines/settlement/publisher.ts',
    why: 'undefined is not true',
    mutants: [['{ isOverdue: false, isUnreadable: false }', '{}']],
  },
  {
    file: 'pipelines/settlement/stored.ts',
    why: 'it only takes longer to find that nothing waits for it',
    mutants: [
      ['at > 0 || this.#waiting.length === 0', 'false'],
      ['at > 0 || this.#waiting.length === 0', 'at > 0 && this.#waiting.length === 0'],
      ['at > 0', 'false'],
      ['this.#waiting.length === 0', 'false'],
    ],
  },
  {
    file: 'pipelines/settlement/stored.ts',
    why: 'the list is not empty here',
    mutants: [['this.#waiting.shift()?.done', 'this.#waiting.shift().done']],
  },
  {
    file: 'pipelines/settlement/stored.ts',
    why: 'searching an empty list finds nothing',
    mutants: [
      ['this.#waiting.length > 0', 'true'],
      ['this.#waiting.length > 0', 'this.#waiting.length >= 0'],
    ],
  },
]
