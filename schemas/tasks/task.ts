/**
 * Work that outlives its request: its kinds, the states of a task, and the effect of every event in every state, the
 * money included. See docs/api-rules.md, "Tasks".
 */
import { z } from 'zod'
import type { UnitType } from '../call-log/row.ts'
import { TASK_KINDS } from './kinds.ts'

export const taskKind = z.enum(TASK_KINDS)
export type TaskKind = z.infer<typeof taskKind>

/** States of the engine, finer than those that a client sees. The money is held in every one but the final ones. */
export const TASK_STATES = [
  /** Row and hold exist; no process has sent anything to an upstream. */
  'waiting',
  /** A process may have sent it: from here on it is never sent again. */
  'submitting',
  'queued',
  'running',
  /** The upstream is done; its results are on the way into the object store. */
  'storing',
  'succeeded',
  'failed',
  'expired',
  'cancelled',
  /** No upstream took it on, or it is not known whether one did: for the client there is no task. */
  'refused',
] as const
export const taskState = z.enum(TASK_STATES)
export type TaskState = z.infer<typeof taskState>

export const FINAL_STATES = ['succeeded', 'failed', 'expired', 'cancelled', 'refused'] as const
export type FinalState = (typeof FINAL_STATES)[number]
export const isFinal = (state: TaskState): state is FinalState =>
  (FINAL_STATES as readonly TaskState[]).includes(state)

export const TASK_EVENTS = [
  /** A process takes the submit on, and sends it to a channel next. */
  'claimed',
  /** The upstream has it, under its own id. */
  'accepted',
  /** No upstream took it on, and none can have. */
  'refused',
  /** Sent, and without an answer that says what became of it: a record for operators names it. */
  'lost',
  /** The upstream reports that it works on it. */
  'started',
  /** The upstream is done and named its results. */
  'produced',
  /** The results are where they stay. */
  'stored',
  'failed',
  /** The upstream let it lapse. */
  'lapsed',
  'cancelled',
  /** The deadline has passed, whatever the upstream reports. */
  'deadline',
  /** The upstream has it after all, and the task has ended: operators have a record of it, and nothing else follows. */
  'discarded',
] as const
export type TaskEvent = (typeof TASK_EVENTS)[number]

/**
 * Effect of a transition on the hold: `release` returns it because the work was never accepted, `refund` because it
 * failed; `charge` returns it and charges the delivery.
 */
export type MoneyEffect = 'release' | 'refund' | 'charge'

interface Transition {
  readonly to: TaskState
  /** Null leaves the hold as it is. */
  readonly money: MoneyEffect | null
}

/** Null where the state does not allow the event: it changes nothing and is logged. */
type TransitionTable = Readonly<Record<TaskState, Readonly<Record<TaskEvent, Transition | null>>>>

const to = (state: TaskState, money: MoneyEffect | null = null): Transition => ({ to: state, money })

const NOTHING: Readonly<Record<TaskEvent, null>> = {
  claimed: null,
  accepted: null,
  refused: null,
  lost: null,
  started: null,
  produced: null,
  stored: null,
  failed: null,
  lapsed: null,
  cancelled: null,
  deadline: null,
  discarded: null,
}

/** Returns an end without a result. Only the record of a late answer from an upstream can follow. */
const over = (state: Exclude<FinalState, 'succeeded'>) => ({ ...NOTHING, discarded: to(state) })

/**
 * Returns the table. `late` is the state of a task after its deadline; `broken` the effect of an end without a result
 * that the upstream reports: `charge` where it reports with it what it has used.
 */
function makeTable(late: 'expired' | 'failed', broken: 'refund' | 'charge' = 'refund'): TransitionTable {
  const ends = {
    failed: to('failed', broken),
    lapsed: to('expired', broken),
    cancelled: to('cancelled', broken),
    deadline: to(late, 'refund'),
  }
  return {
    waiting: {
      ...NOTHING,
      claimed: to('submitting'),
      refused: to('refused', 'release'),
      failed: to('failed', 'refund'),
      cancelled: to('cancelled', 'refund'),
      deadline: ends.deadline,
    },
    // Nobody but its process ends it, until that is gone: who else could say what was sent?
    submitting: {
      ...NOTHING,
      // The former channel certainly did not accept the task: this one is tried next.
      claimed: to('submitting'),
      accepted: to('queued'),
      refused: to('refused', 'release'),
      lost: to('refused', 'release'),
      started: to('running'),
      produced: to('storing'),
      failed: ends.failed,
      deadline: ends.deadline,
    },
    queued: { ...NOTHING, ...ends, started: to('running'), produced: to('storing') },
    running: { ...NOTHING, ...ends, produced: to('storing') },
    // The work is done: from here it is delivered, is not what was ordered, or comes too late for a client that waits.
    storing: {
      ...NOTHING,
      stored: to('succeeded', 'charge'),
      failed: ends.failed,
      deadline: ends.deadline,
    },
    succeeded: NOTHING,
    failed: over('failed'),
    expired: over('expired'),
    cancelled: over('cancelled'),
    refused: over('refused'),
  }
}

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** The status that the client sees for each state. */
type Outward = Readonly<Record<TaskState, string>>

const AS_VIDEO: Outward = {
  waiting: 'queued',
  submitting: 'queued',
  queued: 'queued',
  running: 'running',
  storing: 'running',
  succeeded: 'succeeded',
  failed: 'failed',
  expired: 'expired',
  cancelled: 'cancelled',
  refused: 'failed',
}

/** Maps all open states to one name, and the failed ones to another. */
const inThree = (open: string, done: string): Outward => ({
  waiting: open,
  submitting: open,
  queued: open,
  running: open,
  storing: open,
  succeeded: done,
  failed: 'failed',
  expired: 'failed',
  cancelled: 'failed',
  refused: 'failed',
})

/** In the words of the responses protocol. */
const AS_RESPONSE: Outward = {
  ...inThree('in_progress', 'completed'),
  waiting: 'queued',
  submitting: 'queued',
  queued: 'queued',
  cancelled: 'cancelled',
}

/** The id of a transcript is never shown. */
export type TaskIdPrefix = 'img' | 'vid' | 'mus' | 'spc' | 'ava' | 'voi' | 'trn' | 'asr' | 'resp'

interface TaskRules {
  readonly kind: TaskKind
  readonly idPrefix: TaskIdPrefix
  /** As the call log has it. */
  readonly unitType: UnitType
  readonly transitions: TransitionTable
  readonly outward: Outward
  /** From the request to the end of time for it. */
  readonly deadlineMs: number
  /** For one attempt at a submit; of an upstream that answers with the result itself, for the whole work. */
  readonly submitTimeoutMs: number
  /** For all attempts at a submit together. */
  readonly ladderTimeoutMs: number
  /** The delay of the first poll after the submit, and the shortest interval of the others; see `pollDelayMs`. */
  readonly pollFirstMs: number
  readonly pollMaxMs: number
}

export const TASK_RULES: Readonly<Record<TaskKind, TaskRules>> = {
  image: {
    kind: 'image',
    idPrefix: 'img',
    unitType: 'image',
    transitions: makeTable('expired'),
    outward: AS_VIDEO,
    deadlineMs: 30 * MINUTE_MS,
    submitTimeoutMs: 240 * SECOND_MS,
    ladderTimeoutMs: 280 * SECOND_MS,
    pollFirstMs: SECOND_MS,
    pollMaxMs: 5 * SECOND_MS,
  },
  video: {
    kind: 'video',
    idPrefix: 'vid',
    unitType: 'video',
    transitions: makeTable('expired'),
    outward: AS_VIDEO,
    deadlineMs: DAY_MS,
    submitTimeoutMs: 60 * SECOND_MS,
    ladderTimeoutMs: 60 * SECOND_MS,
    pollFirstMs: SECOND_MS,
    pollMaxMs: 10 * SECOND_MS,
  },
  music: {
    kind: 'music',
    idPrefix: 'mus',
    unitType: 'music',
    transitions: makeTable('expired'),
    outward: { ...inThree('processing', 'succeeded'), expired: 'expired', cancelled: 'cancelled' },
    deadlineMs: 30 * MINUTE_MS,
    submitTimeoutMs: 60 * SECOND_MS,
    ladderTimeoutMs: 60 * SECOND_MS,
    pollFirstMs: SECOND_MS,
    pollMaxMs: 10 * SECOND_MS,
  },
  speech: {
    kind: 'speech',
    idPrefix: 'spc',
    unitType: 'audio',
    transitions: makeTable('failed'),
    outward: inThree('pending', 'succeeded'),
    deadlineMs: 30 * MINUTE_MS,
    submitTimeoutMs: 180 * SECOND_MS,
    ladderTimeoutMs: 240 * SECOND_MS,
    pollFirstMs: SECOND_MS,
    pollMaxMs: 5 * SECOND_MS,
  },
  avatar: {
    kind: 'avatar',
    idPrefix: 'ava',
    unitType: 'avatar',
    transitions: makeTable('failed'),
    outward: inThree('pending', 'ready'),
    deadlineMs: HOUR_MS,
    submitTimeoutMs: 60 * SECOND_MS,
    ladderTimeoutMs: 60 * SECOND_MS,
    pollFirstMs: SECOND_MS,
    pollMaxMs: 10 * SECOND_MS,
  },
  voice: {
    kind: 'voice',
    idPrefix: 'voi',
    unitType: 'voice',
    transitions: makeTable('failed'),
    outward: inThree('pending', 'ready'),
    deadlineMs: 30 * MINUTE_MS,
    submitTimeoutMs: 180 * SECOND_MS,
    ladderTimeoutMs: 240 * SECOND_MS,
    pollFirstMs: SECOND_MS,
    pollMaxMs: 5 * SECOND_MS,
  },
  transcript: {
    kind: 'transcript',
    idPrefix: 'trn',
    unitType: 'transcript',
    transitions: makeTable('failed'),
    outward: inThree('running', 'succeeded'),
    deadlineMs: 55 * SECOND_MS,
    submitTimeoutMs: 55 * SECOND_MS,
    ladderTimeoutMs: 55 * SECOND_MS,
    pollFirstMs: SECOND_MS,
    pollMaxMs: 2 * SECOND_MS,
  },
  subtitle: {
    kind: 'subtitle',
    idPrefix: 'asr',
    unitType: 'transcript',
    transitions: makeTable('failed'),
    outward: inThree('running', 'succeeded'),
    deadlineMs: 25 * MINUTE_MS,
    submitTimeoutMs: 60 * SECOND_MS,
    ladderTimeoutMs: 60 * SECOND_MS,
    pollFirstMs: SECOND_MS,
    pollMaxMs: 5 * SECOND_MS,
  },
  response: {
    kind: 'response',
    idPrefix: 'resp',
    unitType: 'chat',
    transitions: makeTable('expired', 'charge'),
    outward: AS_RESPONSE,
    deadlineMs: DAY_MS,
    submitTimeoutMs: 60 * SECOND_MS,
    ladderTimeoutMs: 60 * SECOND_MS,
    pollFirstMs: SECOND_MS,
    pollMaxMs: 10 * SECOND_MS,
  },
}

/** Polls come at a tenth of a task's age: often at first, seldom for a long task. */
const POLL_AGE_SHARE = 10

/** Returns the time before the next poll of a task that is `ageMs` old; `failures` polls in a row have failed. */
export function pollDelayMs(rules: TaskRules, ageMs: number, failures: number): number {
  const usual = Math.min(rules.pollMaxMs, Math.max(rules.pollFirstMs, ageMs / POLL_AGE_SHARE))
  return Math.min(rules.pollMaxMs * 4, usual * 2 ** Math.min(failures, 10))
}
