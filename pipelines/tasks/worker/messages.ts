/** Messages about tasks: work, redelivered until a task has ended, and notifications of its transitions. */
import { asyncScheduler, type SchedulerLike } from 'rxjs'
import type { WalletTotals } from '../../../schemas/accounts/account.ts'
import {
  BOOKED_SUBJECT,
  TASK_CHANGES_SUBJECT,
  TASK_SUBJECT,
  type TaskMessage,
  taskMessage,
  taskNotification,
} from '../../../schemas/events/event.ts'
import type { TaskState } from '../../../schemas/tasks/task.ts'
import type { Nats } from '../../../src/nats/nats.ts'
import { decodeText, encodeCommitNotification } from '../../settlement/messages.ts'
import { OutageLog, type PipelineLog } from '../../settlement/retrying.ts'

/** Names a task and the chain of messages about it. */
export interface TaskRef {
  readonly id: string
  readonly chain: number
}

interface TaskNote {
  readonly id: string
  readonly version: number
  readonly state: TaskState
}

/** Tells all processes what has changed. */
export interface TaskNotices {
  announce(tasks: readonly TaskNote[]): void
  /** Sends the totals after a commit to all gateway processes. */
  announceWallets(wallets: readonly WalletTotals[]): void
}

export interface TaskMessages extends TaskNotices {
  /** Retries for a while. If NATS stays down, the sweep finds the task. */
  publish(task: TaskRef): void
  /** Subscribes to notifications of all processes; calls `missed` when some may be lost. Returns the unsubscribe. */
  listen(heard: (tasks: readonly TaskNote[]) => void, missed: () => void): () => void
}

const PUBLISH_RETRY_MS = 1_000
const PUBLISH_RETRIES = 30

const encoder = new TextEncoder()

/** Returns null if it is not a message about a task. */
export function decodeTaskMessage(payload: Uint8Array): TaskRef | null {
  try {
    const { task: id, chain } = taskMessage.parse(JSON.parse(decodeText(payload)))
    return { id, chain }
  } catch {
    return null
  }
}

export function taskMessages(
  nats: Pick<Nats, 'publish' | 'announce' | 'listen' | 'isClosed'>,
  log: PipelineLog,
  scheduler: SchedulerLike = asyncScheduler,
): TaskMessages {
  const publishing = new OutageLog(log, 'Publishing tasks')
  return {
    publish({ id, chain }) {
      const message: TaskMessage = { task: id, chain }
      const payload = encoder.encode(JSON.stringify(message))
      const attempt = (left: number) =>
        nats.publish(TASK_SUBJECT, `${id}.${chain}`, payload, (error) => {
          if (error === null) return publishing.noteSuccess()
          if (nats.isClosed) return
          publishing.noteFailure(error)
          if (left > 0) scheduler.schedule(() => attempt(left - 1), PUBLISH_RETRY_MS)
        })
      attempt(PUBLISH_RETRIES)
    },
    announce(tasks) {
      const notification = tasks.map(({ id, version, state }) => ({ id, version, state }))
      nats.announce(TASK_CHANGES_SUBJECT, JSON.stringify({ tasks: notification }))
    },
    announceWallets: (wallets) =>
      nats.announce(BOOKED_SUBJECT, encodeCommitNotification({ batches: [], wallets })),
    listen: (heard, missed) =>
      nats.listen(
        TASK_CHANGES_SUBJECT,
        (payload) => {
          const notification = decodeTaskNotification(payload)
          if (notification === null) log.error({}, 'Dropped malformed task notification')
          else heard(notification)
        },
        missed,
      ),
  }
}

function decodeTaskNotification(payload: Uint8Array): readonly TaskNote[] | null {
  try {
    return taskNotification.parse(JSON.parse(decodeText(payload))).tasks
  } catch {
    return null
  }
}
