/** The readers of the call log in these tests, and their queries. */

import type { Observable } from 'rxjs'
import { answerWithCalls, type LogPageDeps } from '../../../pipelines/call-log/page.ts'
import { readSearch } from '../../../pipelines/call-log/search.ts'
import {
  answerWithSummary,
  findSummary,
  type LogSummaryDeps,
  readSummary,
} from '../../../pipelines/call-log/summary.ts'
import type { Credential } from '../../../schemas/accounts/key.ts'
import type { Flow, GatewayRequest, HeaderList, Reply } from '../../../src/http/handler.ts'
import type { Tasks } from '../../../src/postgres/tasks/repository.ts'
import { gatewayRequest } from '../../support/gateway-request.ts'
import { accountOf, apiKey } from '../../support/known-key.ts'
import { replyTo } from '../../support/reply-to.ts'

export type Reader = Pick<Credential, 'key' | 'account'>

export const reader = (accountId: string, keyId: string, more: Partial<Credential['key']> = {}): Reader => ({
  account: accountOf({ id: accountId }),
  key: apiKey({ id: keyId, accountId, name: keyId, ...more }),
})

/** Where a test is about calls that have ended, and there is no PostgreSQL. */
export const NO_OPEN_JOBS = { listOpenJobs: async () => [] } as Partial<Tasks> as Tasks

export const request = (query: string, more: Partial<GatewayRequest> = {}): GatewayRequest =>
  gatewayRequest({ query, ...more })

export interface Received {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly flow: Flow | null
  /** What has come so far. */
  text: string
}

/** A reply in pieces: `onHead` gets its head before anything follows; the promise ends with the reply. */
export function receive(reply$: Observable<Reply>, onHead: (received: Received) => void = () => {}) {
  return new Promise<Received>((resolve, reject) => {
    let received: Received | null = null
    const begin = (status: number, headers: HeaderList, flow: Flow | null) => {
      received = { status, headers: new Map(headers), flow, text: '' }
      onHead(received)
      return received
    }
    reply$.subscribe({
      next(reply) {
        if (reply.type === 'full') begin(reply.status, reply.headers, null).text = String(reply.body)
        else if (reply.type === 'head') begin(reply.status, reply.headers, reply.flow)
        else received!.text += String(reply.bytes)
      },
      error: reject,
      complete: () => (received === null ? reject(new Error('no reply')) : resolve(received)),
    })
  })
}

/** `GET /v1/logs`, for a reader who has authenticated. */
export const logs = (deps: LogPageDeps) => (who: Reader, asked: GatewayRequest) =>
  replyTo(who, asked, readSearch(deps), answerWithCalls(deps))

/** `GET /v1/logs/summary`, for a reader who has authenticated. */
export const logSummary = (deps: LogSummaryDeps) => {
  const stages = [readSummary(deps), findSummary(deps), answerWithSummary()] as const
  return (who: Reader, asked: GatewayRequest) => replyTo(who, asked, ...stages)
}
