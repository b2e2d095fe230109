/** Of pipelines. */
import type { EquivalentGroup } from './group.ts'

export const PIPELINES: readonly EquivalentGroup[] = [
  {
    file: 'pipelines/tasks/end/settlement.ts',
    why: 'a response is charged by its tokens, or not at all',
    mutants: [['charge !== null && isByTokens(charge)', 'true']],
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
