/** Notifications on real PostgreSQL and NATS, before receivers that a test scripts. */
import type { ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { Test } from 'tap'
import { bindPublisher } from '../../../pipelines/notifications/messages.ts'
import { startRounds } from '../../../pipelines/notifications/rounds.ts'
import { DeliveryWork, type DeliveryWorkDeps } from '../../../pipelines/notifications/work.ts'
import { guardedPost } from '../../../src/fetch/guarded-post.ts'
import { openNats } from '../../../src/nats/nats.ts'
import type { Sql } from '../../../src/postgres/connection.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { newAccount, startDatabase } from '../../src/postgres/support.ts'
import { startEngines, type TestEngines } from '../../support/engines.ts'
import { serveHttp, textOf } from '../../support/http-server.ts'

const ROUND_INTERVAL_MS = 50

export const silent = { info() {}, warn() {}, error() {} }

export interface ReceivedHook {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Receiver {
  readonly url: string
  readonly received: ReceivedHook[]
}

interface Teardown {
  teardown(work: () => unknown): void
}

/** A receiver of webhooks on loopback; `answer` does what it likes with each. */
export async function startReceiver(
  t: Teardown,
  answer: (hook: ReceivedHook, response: ServerResponse) => void = (_, response) =>
    void response.end('thanks'),
): Promise<Receiver> {
  const received: ReceivedHook[] = []
  const url = await serveHttp(t, async (request, response) => {
    const headers = request.headers as Record<string, string>
    const hook = { path: request.url ?? '', headers, body: await textOf(request) }
    received.push(hook)
    answer(hook, response)
  })
  return { url: `${url}/hook`, received }
}

export interface TestNotifications {
  /** NATS. */
  readonly engines: TestEngines
  readonly database: Database
  readonly serviceUrl: string
  readonly masterKey: Buffer
  readonly sql: Sql
  /** A process that delivers, to loopback receivers too, until the test is over. */
  worker(t: Teardown, more?: Partial<DeliveryWorkDeps>): void
  newEndpoint(accountId: string, url: string): Promise<{ readonly id: string; readonly secret: string }>
  newAccount(credits?: bigint): Promise<string>
  /** Records events of an account; returns their ids. */
  record(accountId: string, count?: number): Promise<string[]>
}

export async function startNotifications(t: Test): Promise<TestNotifications> {
  const engines = await startEngines(t, { only: ['nats'] })
  const { database, sql, serviceUrl, masterKey } = await startDatabase(t)
  return {
    engines,
    database,
    sql,
    serviceUrl,
    masterKey,
    worker(t, more = {}) {
      const nats = openNats({ url: engines.natsUrl, name: 'test', log: silent })
      const work = new DeliveryWork({
        database,
        post: guardedPost,
        mayBePrivate: () => true,
        mail: null,
        onRecorded: () => begin(),
        log: silent,
        now: Date.now,
        random: () => 0,
        pause: (ms) => pause(ms),
        ...more,
      })
      const begin = startRounds({
        database,
        publish: bindPublisher(nats, silent),
        take: (id) => work.take(id),
        isOnline: () => nats.health().isConnected,
        hasMail: more.mail != null,
        log: silent,
      })
      const timer = setInterval(begin, ROUND_INTERVAL_MS)
      const stop = nats.consumeDeliveries((delivery) => work.receive(delivery))
      t.teardown(async () => {
        clearInterval(timer)
        stop()
        await work.stop(1_000)
        await nats.close()
      })
    },
    async newEndpoint(accountId, url) {
      const wanted = { kind: 'webhook', accountId, url, description: '', events: null } as const
      const { endpoint, secret } = await database.webhooks.create(wanted)
      return { id: endpoint.id, secret }
    },
    newAccount: (credits = 1000n) => newAccount(database, credits),
    async record(accountId, count = 1) {
      const rows = await sql<{ id: string }[]>`
        INSERT INTO events (type, account_id, subject_id, data)
        SELECT 'key.revoked', ${accountId}, 'key_1', jsonb_build_object('number', n)
        FROM generate_series(1, ${count}::integer) AS n RETURNING id`
      return rows.map(({ id }) => id)
    },
  }
}
