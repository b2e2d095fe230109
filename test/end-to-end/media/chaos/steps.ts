/** Tasks that stand still in one step of their way each, until the service is killed. */
import type { TaskState } from '../../../../schemas/tasks/task.ts'
import type { TaskLine } from './books.ts'
import type { Intent, Maker } from './intents.ts'

export interface Step {
  readonly name: string
  readonly maker: Maker
  readonly simulate: string
  /** Where it is when the service is killed, and what becomes of it. */
  readonly stands: readonly TaskState[]
  readonly ends: TaskState
}

export const FOLLOWED: readonly Step[] = [
  {
    name: 'sent, and never read',
    maker: 'film',
    simulate: 'fault=hang, times=1',
    stands: ['submitting'],
    ends: 'refused',
  },
  {
    name: 'taken on, the answer on its way',
    maker: 'film',
    simulate: 'fault=hang:0, delay=1000',
    stands: ['submitting'],
    ends: 'refused',
  },
  {
    name: 'taken on by an upstream that cannot be asked',
    maker: 'video',
    simulate: 'fault=hang:0',
    stands: ['submitting'],
    ends: 'refused',
  },
  {
    name: 'being drawn by an upstream that answers with the picture',
    maker: 'picture',
    simulate: 'outcome=stuck',
    stands: ['submitting'],
    ends: 'refused',
  },
  {
    name: 'polled',
    maker: 'music',
    simulate: 'outcome=stuck',
    stands: ['running'],
    ends: 'succeeded',
  },
  {
    name: 'its file on the way',
    maker: 'video',
    simulate: 'delay=0, file_fault=hang:100, times=1',
    stands: ['storing'],
    ends: 'succeeded',
  },
]
/** Its file is stored, and its charge waits for the lock of a booking. */
export const SETTLING: Step = {
  name: 'before the commit of its end',
  maker: 'film',
  simulate: 'delay=0',
  stands: ['storing'],
  ends: 'succeeded',
}
/** Its row is written, and NATS is away. */
export const UNTOLD: Step = {
  name: 'before its message',
  maker: 'film',
  simulate: 'delay=0',
  stands: ['waiting'],
  ends: 'succeeded',
}
export const EACH = 2

export const intentsOf = (steps: readonly Step[], from: number): Intent[] =>
  steps.flatMap(({ maker, simulate }, step) =>
    Array.from({ length: EACH }, (_, n) => ({
      name: `intent-s${String.fromCharCode(97 + from + step)}${n}`,
      maker,
      simulate,
    })),
  )

/** Each step has its letter in the names of its intents. */
export const stepOf = (all: readonly Step[], { intent }: TaskLine): Step =>
  all[(intent.codePointAt('intent-s'.length) ?? 97) - 97]!
