/** The parts that a settlement goes through, on real engines. */

import { join } from 'node:path'
import { asyncScheduler, type SchedulerAction, type SchedulerLike, type Subscription } from 'rxjs'
import type { Test } from 'tap'
import type { Malformed } from '../../../pipelines/settlement/messages.ts'
import { type CommittedWallets, SettlementPublisher } from '../../../pipelines/settlement/publisher.ts'
import type { PipelineLog } from '../../../pipelines/settlement/retrying.ts'
import { Settler, type SettlerDependencies } from '../../../pipelines/settlement/settler.ts'
import type { Admission } from '../../../schemas/call-log/columns.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { type Journal, type JournalOptions, openJournal } from '../../../src/journal/journal.ts'
import { type Nats, openNats } from '../../../src/nats/nats.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { newAccount, openFresh, settlement } from '../../src/postgres/support.ts'
import { startEngines, testDataDir } from '../../support/engines.ts'

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

const HURRY = 100

/** Ten seconds of the pipeline pass in a tenth of one. */
export const hurried: SchedulerLike = {
  now: () => HURRY * asyncScheduler.now(),
  schedule<T>(work: (this: SchedulerAction<T>, state: T) => void, delay = 0, state?: T): Subscription {
    return asyncScheduler.schedule(
      work as (this: SchedulerAction<T>, state?: T) => void,
      delay / HURRY,
      state as T,
    )
  },
}

/** The hurried clock, which can be set back. */
export function clockToSetBack() {
  let setBackMs = 0
  const scheduler: SchedulerLike = {
    now: () => hurried.now() - setBackMs,
    schedule: hurried.schedule.bind(hurried),
  }
  const setBack = (ms: number) => {
    setBackMs += ms
  }
  return { scheduler, setBack }
}

/** NATS and PostgreSQL for the tests of one file, and what runs on them until a test ends. */
export async function startSettlement(t: Test) {
  const engines = await startEngines(t, { only: ['nats', 'postgres'] })
  const { database, sql } = await openFresh(t, engines)
  const connect = (t: Test): Nats => {
    const nats = openNats({ url: engines.natsUrl, name: 'test', log: silent })
    t.teardown(() => nats.close())
    return nats
  }
  /** A gateway. Its directory is a new one unless `more` names one. */
  const gateway = async (
    t: Test,
    { directory, files, ...more }: Partial<GatewayDeps> & { directory?: string; files?: Files } = {},
  ) => {
    const folder = join(directory ?? (await testDataDir(t)), 'journal')
    return startGateway(
      t,
      { directory: folder, log: silent, ...files },
      { nats: connect(t), database, ...more },
    )
  }
  return {
    engines,
    database,
    sql,
    connect,
    gateway,
    /** A settler, and the lines that were none. */
    settler(t: Test, more: Partial<SettlerDependencies> = {}) {
      const malformed: Malformed[] = []
      const running = new Settler({
        nats: connect(t),
        database,
        onBookedRows: () => undefined,
        onMalformed: (line) => void malformed.push(line),
        onRefused: () => undefined,
        log: silent,
        ...more,
      })
      t.teardown(() => running.stop(1_000))
      return { running, malformed }
    },
    newAccount: () => newAccount(database),
    /** The request ids of an account's booked calls. */
    async rowsOf(accountId: string): Promise<string[]> {
      const rows = await sql<{ request_id: string }[]>`
        SELECT request_id FROM usage_rows WHERE account_id = ${accountId}`
      return rows.map(({ request_id }) => request_id)
    },
    usedOf: async (accountId: string) => (await database.wallets.read([accountId]))[0]?.used,
  }
}

interface GatewayDeps {
  readonly nats: Pick<Nats, 'publish' | 'listen' | 'sendDirectly'>
  readonly database: Database
  readonly scheduler?: SchedulerLike
  readonly isAwaited?: () => boolean
  readonly log?: PipelineLog
}

/** What gets nothing out of a gateway. */
export const NO_NATS: GatewayDeps['nats'] = {
  publish: () => undefined,
  listen: () => () => undefined,
  sendDirectly: () => undefined,
}

/** Of the journal. */
type Files = Pick<JournalOptions, 'files' | 'segmentBytes'>

async function startGateway(
  t: Test,
  options: JournalOptions,
  { nats, database, ...more }: GatewayDeps,
): Promise<TestGateway> {
  const journal = await openJournal(options)
  const notifications: CommittedWallets[] = []
  const publisher = new SettlementPublisher({
    journal,
    nats,
    database,
    onBooked: (booked) => void notifications.push(booked),
    onNotificationsMissed: () => undefined,
    isAwaited: () => false,
    log: silent,
    ...more,
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
  session_id: null,
})
