/** What the bench and its upstream of tasks say to each other. */

export type ToUpstream =
  /** Count looks from now on. */
  | { readonly type: 'count' }
  /** Say what was counted. */
  | { readonly type: 'counted' }
  /** End all tasks in the course of so long, in an order that the seed gives. */
  | { readonly type: 'end'; readonly spreadMs: number; readonly seed: number }
  /** Say what became of each. */
  | { readonly type: 'tell' }

export interface Counted {
  readonly looks: number
  /** How much later than planned each look came, milliseconds. */
  readonly latenessMs: readonly number[]
}

export interface Told {
  /** Our own id of the task. */
  readonly reference: string
  readonly submits: number
  /** Epoch milliseconds. */
  readonly endedAt: number
  /** When a look first found it ended; 0 while none has. */
  readonly seenAt: number
}
