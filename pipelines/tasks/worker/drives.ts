/** Works on the tasks that the sweep found, so that one that takes minutes does not hold up the sweep. */
import type { Task } from '../../../src/postgres/tasks/types.ts'
import type { PipelineLog } from '../../settlement/retrying.ts'
import type { Next } from '../task.ts'

export interface TaskDriver {
  once(task: Task): Promise<Next>
}

interface DriveWork {
  readonly work: TaskDriver
  readonly log: PipelineLog
}

export class Drives {
  readonly #deps: DriveWork
  readonly #maxAtOnce: number
  readonly #ids = new Set<string>()
  readonly #left: Task[] = []
  #drivers = 0

  constructor(deps: DriveWork, maxAtOnce: number) {
    this.#deps = deps
    this.#maxAtOnce = maxAtOnce
  }

  /** The number of tasks that it can take without waiting. */
  get room(): number {
    return Math.max(0, this.#maxAtOnce - this.#ids.size)
  }

  has(id: string): boolean {
    return this.#ids.has(id)
  }

  add(tasks: readonly Task[]): void {
    for (const task of tasks) {
      if (this.#ids.has(task.id)) continue
      this.#ids.add(task.id)
      this.#left.push(task)
    }
    while (this.#drivers < this.#maxAtOnce && this.#left.length > 0) void this.#driveNext()
  }

  async #driveNext(): Promise<void> {
    const { work, log } = this.#deps
    this.#drivers++
    for (let task = this.#left.shift(); task !== undefined; task = this.#left.shift()) {
      const { id } = task
      await work
        .once(task)
        .catch((error: unknown) => log.warn({ task: id, error }, 'Failed to work on a task; retrying'))
      this.#ids.delete(id)
    }
    this.#drivers--
  }
}
