/** The parts that a settlement goes through, on real engines. */
import { join } from 'node:path'
import { asyncScheduler, type SchedulerAction, type SchedulerLike, type Subscription } from 'rxjs'
import type { Test } from 'tap'
import type { Malformed } from '../../../pipelines/settlement/messages.ts'
import {
  type CommittedWallets,
  type SettlementPublisher,
  settlementPublisher,
  settler,
} from '../../../pipelines/settlement/settlement.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { type Admission, type Journal, openJournal } from '../../../src/journal/journal.ts'
import { type Nats, openNats } from '../../../src/nats/nats.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { settlement } from '../../src/postgres/support.ts'

export const silent = { info() {}, warn() {}, error() {} }

/** A gateway's end over a journal of its own. */
export interface TestGateway {
  readonly journal: Journal
  readonly publisher: SettlementPublisher
  readonly notifications: CommittedWallets[]
  /** Lets a call in and ends it; answers its request id once the admission is written. */
  call(accountId: string, cost: bigint): Promise<string>
  /** As a process that is killed leaves it: nothing is closed. */
  abandon(): Promise<void>
}

/** Ten seconds of the pipeline pass in a tenth of one. */
export const hurried: SchedulerLike = {
  now: () => asyncScheduler.now(),
  schedule<T>(work: (this: SchedulerAction<T>, state: T) => void, delay = 0, state?: T): Subscription {
    return asyncScheduler.schedule(
      work as (this: SchedulerAction<T>, state?: T) => void,
      delay / 100,
      state as T,
    )
  },
}

export function connectNats(t: Test, url: string): Nats {
  const nats = openNats({ url, name: 'test', log: silent })
  t.teardown(() => nats.close())
  return nats
}

export async function startGateway(
  t: Test,
  of: { directory: string; nats: Nats; database: Database; scheduler?: SchedulerLike },
): Promise<TestGateway> {
  const { nats, database, scheduler } = of
  const journal = await openJournal({ directory: join(of.directory, 'journal'), log: silent })
  const notifications: CommittedWallets[] = []
  const publisher = settlementPublisher({
    journal,
    nats,
    database,
    onBooked: (booked) => void notifications.push(booked),
    log: silent,
    ...(scheduler === undefined ? {} : { scheduler }),
  })
  t.teardown(async () => {
    publisher.stop()
    await journal.close()
  })
  return {
    journal,
    publisher,
    notifications,
    call: (accountId, cost) =>
      new Promise((resolve, reject) => {
        const requestId = newId('req')
        const ticket = journal.admit(admission(requestId, accountId), (error) => {
          if (error !== null) return reject(error)
          journal.settle(ticket, settlement(accountId, { request_id: requestId, cost: String(cost) }))
          resolve(requestId)
        })
      }),
    async abandon() {
      publisher.stop()
      await journal.close()
    },
  }
}

export const admission = (requestId: string, accountId: string): Admission => ({
  request_id: requestId,
  account_id: accountId,
  key_id: 'key_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
  model: 'sonata-large',
  protocol: 'chat-completions',
  stream: true,
  submitted_at: 1_760_000_000_000,
  estimate: '96000000',
})

export interface TestSettler {
  readonly malformed: Malformed[]
  stop(): Promise<void>
}

export function startSettler(t: Test, of: { nats: Nats; database: Database }): TestSettler {
  const malformed: Malformed[] = []
  const running = settler({
    nats: of.nats,
    database: of.database,
    onBookedRows: () => undefined,
    onMalformed: (line) => void malformed.push(line),
    log: silent,
  })
  const stop = () => running.stop(1_000)
  t.teardown(stop)
  return { malformed, stop }
}
