/** A gateway's end of the task engine: orders become tasks, and their ends are waited for. The work is done elsewhere. */
import { setTimeout as pause } from 'node:timers/promises'
import { cancelUpstream } from '../../../pipelines/tasks/end/cancel-upstream.ts'
import type { TaskEngine } from '../../../pipelines/tasks/engine.ts'
import { awaitTask, createTask, type TaskOrders } from '../../../pipelines/tasks/order/create-task.ts'
import { watchTasks } from '../../../pipelines/tasks/order/watch-tasks.ts'
import { drive } from '../../../pipelines/tasks/task.ts'
import { taskMessages } from '../../../pipelines/tasks/worker/messages.ts'
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import type { Authorizer } from '../../auth/authorizer.ts'
import type { Credentials } from '../../credentials/credentials.ts'
import { openNats } from '../../nats/nats.ts'
import { isTransient } from '../../postgres/errors.ts'
import type { Tasks } from '../../postgres/tasks/repository.ts'
import type { Task } from '../../postgres/tasks/types.ts'
import type { ObjectStore } from '../../storage/store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import { openMediaCalls } from '../channels/media-calls.ts'
import type { Boot } from '../messages.ts'
import { findTaskAdapter } from '../tasks/adapters.ts'
import { openTaskStorage } from '../tasks/storage.ts'

interface DriverParts {
  readonly health: TaskEngine['health']
  readonly metrics: TaskEngine['metrics']
  readonly catalog: TaskEngine['catalog']
}

interface GatewayTasksOptions {
  readonly boot: Boot
  readonly database: { readonly tasks: Tasks }
  readonly credentials: Credentials
  readonly store: ObjectStore
  readonly upstream: UpstreamClient
  readonly findAuthorizer: (channel: ChannelEntry) => Authorizer
  readonly log: Log
}

export function openGatewayTasks(options: GatewayTasksOptions) {
  const { boot, database, credentials, log } = options
  // A separate connection: notifications of tasks do not queue behind settlements.
  const nats = openNats({
    url: boot.natsUrl,
    name: `tollgate gateway ${boot.index} tasks`,
    log,
    replicas: boot.natsReplicas,
  })
  const messages = taskMessages(nats, log)
  const watch = watchTasks({ database, messages, log })
  const storage = openTaskStorage({ store: options.store })
  const submit: TaskOrders = {
    database,
    messages,
    watch,
    findAdapter: findTaskAdapter,
    isTransient,
    onWallet: (wallet) => credentials.update([wallet]),
    log,
  }
  const calls = openMediaCalls(options.upstream, storage, options.findAuthorizer)
  const engine = {
    database,
    messages,
    storage,
    calls,
    findAdapter: findTaskAdapter,
    log,
    // The task worker logs it with its next poll.
    onUnmappedState: () => {},
    now: Date.now,
    pause: (ms: number) => pause(ms),
    random: Math.random,
  }
  return {
    createTask: createTask(submit),
    awaitTask: awaitTask(submit),
    /** Returns what polls the upstream of a task once, and ends the task where the upstream says so. */
    driver: (deps: DriverParts) => (task: Task) => drive({ ...engine, ...deps }, task, 0),
    /** Returns what cancels a task at the upstream that has it. */
    canceller: (catalog: TaskEngine['catalog']) => (task: Task) =>
      cancelUpstream({ calls, findAdapter: findTaskAdapter, catalog }, task),
    /** Calls that an endpoint makes to upstreams of media, such as a cancel. */
    calls,
    messages,
    nats,
    async close(): Promise<void> {
      watch.close()
      await nats.close()
    },
  }
}
