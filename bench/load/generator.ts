import { fileURLToPath } from 'node:url'
import { type Child, startChild } from '../harness/children.ts'
import type { CallsPlan, CallsResult } from './calls.ts'
import type { StreamsPlan, StreamsProgress } from './streams.ts'

/** A command to the load generator's process. */
export type LoadOrder =
  | { do: 'calls'; plan: CallsPlan }
  | { do: 'open-streams'; plan: StreamsPlan }
  | { do: 'progress' }
  | { do: 'await-streams' }
  | { do: 'abandon-streams' }

export interface LoadAnswer {
  id: number
  value?: unknown
  error?: string
}

const PROGRAM = fileURLToPath(new URL('main.ts', import.meta.url))

/** The parent's side of the load generator. Every method rejects when the subject answers wrongly. */
export class LoadGenerator {
  readonly #child: Child
  readonly #orders = new Map<number, PromiseWithResolvers<unknown>>()
  #lastId = 0

  private constructor(child: Child) {
    this.#child = child
    child.process.on('message', (message) => this.#hear(message as LoadAnswer))
    child.process.once('exit', () => {
      for (const order of this.#orders.values())
        order.reject(new Error(`the load generator ended: ${child.lastOutput()}`))
      this.#orders.clear()
    })
  }

  static async start(core: number | null): Promise<LoadGenerator> {
    return new LoadGenerator(
      await startChild('the load generator', process.execPath, [PROGRAM], { core, messages: true }),
    )
  }

  calls(plan: CallsPlan): Promise<CallsResult> {
    return this.#order({ do: 'calls', plan }) as Promise<CallsResult>
  }

  /** Resolves when all streams have their first byte. */
  async openStreams(plan: StreamsPlan): Promise<void> {
    await this.#order({ do: 'open-streams', plan })
  }

  progress(): Promise<StreamsProgress> {
    return this.#order({ do: 'progress' }) as Promise<StreamsProgress>
  }

  /** Resolves when all streams have ended as they must. */
  async awaitStreams(): Promise<void> {
    await this.#order({ do: 'await-streams' })
  }

  /** Drops the streams that a failed measurement left open. */
  async abandonStreams(): Promise<void> {
    await this.#order({ do: 'abandon-streams' })
  }

  #order(order: LoadOrder): Promise<unknown> {
    if (this.#child.ended()) return Promise.reject(new Error('the load generator has ended'))
    const id = ++this.#lastId
    const answer = Promise.withResolvers<unknown>()
    this.#orders.set(id, answer)
    this.#child.process.send({ id, order })
    return answer.promise
  }

  #hear({ id, value, error }: LoadAnswer): void {
    const order = this.#orders.get(id)
    this.#orders.delete(id)
    if (error === undefined) order?.resolve(value)
    else order?.reject(new Error(error))
  }
}
