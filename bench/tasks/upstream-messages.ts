/** The messages between the bench and its task upstream. */

export type ToUpstream =
  /** Starts counting polls. */
  | { readonly type: 'count' }
  /** Requests the count. */
  | { readonly type: 'counted' }
  /** Ends all tasks within a time, in an order by the seed. */
  | { readonly type: 'end'; readonly spreadMs: number; readonly seed: number }
  /** Requests the result of each task. */
  | { readonly type: 'results' }

export interface Counted {
  readonly polls: number
  /** The lateness of each poll, milliseconds. */
  readonly latenessMs: readonly number[]
}

export interface TaskResult {
  /** Our own id of the task. */
  readonly reference: string
  readonly submits: number
  /** Epoch milliseconds. */
  readonly endedAt: number
  /** When a poll first found it ended; 0 before. */
  readonly seenAt: number
}
