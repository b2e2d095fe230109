/** Operations that watch the installation and the calls of an account, from what the processes publish. */

import {
  concat,
  defer,
  exhaustMap,
  filter,
  ignoreElements,
  interval,
  type MonoTypeOperatorFunction,
  map,
  merge,
  type Observable,
  of,
  share,
  tap,
} from 'rxjs'
import { findColumn, SETTLED_COLUMNS, type Settlement } from '../../../schemas/call-log/columns.ts'
import type { ProcessReport } from '../../../schemas/config/channel-report.ts'
import { Failure } from '../../../schemas/failure.ts'
import * as operations from '../../../schemas/management/live.ts'
import { printCredits } from '../../../schemas/money.ts'
import { listVisibleKeys } from '../calls/calls.ts'
import { implementWith } from '../operation.ts'
import { printInstant } from '../shapes.ts'
import type { LiveEvent } from './events.ts'
import { sumReports } from './installation.ts'
import { implementStream } from './stream.ts'
import { CallWindow } from './window.ts'

/** A settled call; null: some may have been missed. */
type SettledCall = Settlement | null

/** Sources of live data: what the processes publish and report. */
interface Published {
  /** Settled calls of all gateways as they are published, each once; shared by those who subscribe. */
  readonly settledCalls: Observable<SettledCall>
  /** Returns each running process's report; null without an answer. */
  readonly processReports: () => Promise<ProcessReport[] | null>
}

export interface LiveServices extends Published {
  /** Made by `overviews`, once for a process. */
  readonly overviews: Observable<operations.Overview>
}

const OVERVIEW_MS = 2_000

const readReports = async ({ processReports }: Published): Promise<ProcessReport[]> => {
  const reports = await processReports()
  // This process answers as well: none does while NATS hangs.
  if (reports === null || reports.length === 0)
    throw new Failure('service_unavailable', 'No process answers: NATS is away. Try again in a minute.')
  return reports
}

/** Sums up the calls of each interval, with what the processes report at its end; shared by those who subscribe. */
export const watchOverviews = (published: Published): Observable<operations.Overview> =>
  defer(() => {
    let window = new CallWindow()
    let since = Date.now()
    const counted = published.settledCalls.pipe(
      tap((call) => call !== null && window.add(call)),
      ignoreElements(),
    )
    const ticks = interval(OVERVIEW_MS).pipe(
      // Where the answers take longer than the interval, the next overview counts both.
      exhaustMap(async () => {
        const reports = (await published.processReports()) ?? []
        const now = Date.now()
        const read = window.read()
        const seconds = (now - since) / 1000
        window = new CallWindow()
        since = now
        return { ...sumReports(reports, now), seconds, ...read }
      }),
    )
    return merge(counted, ticks)
  }).pipe(share())

/** Returns the call as it is shown; the schema of the answer takes what the stream gives. */
const toLiveCall = (call: Settlement): operations.LiveCall => {
  const shown = SETTLED_COLUMNS.map((name) => {
    const value = call[name]
    const { kind } = findColumn(name)
    if (kind === 'instant' && value !== null) return [name, printInstant(Number(value))]
    return [name, kind === 'credits' && value !== null ? printCredits(BigInt(String(value))) : value]
  })
  return operations.liveCall.parse(Object.fromEntries(shown))
}

const GAP: LiveEvent = { name: 'gap', data: {} }

interface CallFilter {
  readonly accountId: string
  readonly keyIds: readonly string[] | null
  readonly model: string | undefined
  /** None: every one. */
  readonly statuses: readonly string[]
}

const filterCalls = ({
  accountId,
  keyIds,
  model,
  statuses,
}: CallFilter): MonoTypeOperatorFunction<SettledCall> =>
  filter(
    (call) =>
      call === null ||
      (call.account_id === accountId &&
        (keyIds === null || keyIds.includes(call.key_id)) &&
        (model === undefined || call.model === model) &&
        (statuses.length === 0 || statuses.includes(call.status))),
  )

const implement = implementWith<LiveServices>()

export const liveOperations = [
  implement(operations.showInstallation, async ({ now }, _, live) =>
    sumReports(await readReports(live), now),
  ),
]

export const liveStreams = [
  implementStream<LiveServices, typeof operations.watchInstallation>(
    operations.watchInstallation,
    async (_, __, { overviews }) => overviews.pipe(map((data) => ({ name: 'overview', data }))),
  ),
  implementStream<LiveServices, typeof operations.watchCalls>(
    operations.watchCalls,
    async (context, input, { settledCalls }) => {
      const { account_id: accountId, key_id, model, status: statuses = [] } = input
      const keyIds = await listVisibleKeys(context, accountId, key_id)
      const calls = settledCalls.pipe(
        filterCalls({ accountId, keyIds, model, statuses }),
        map((call): LiveEvent => (call === null ? GAP : { name: 'call', data: toLiveCall(call) })),
      )
      return context.isContinued ? concat(of(GAP), calls) : calls
    },
  ),
]
