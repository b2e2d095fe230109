/** Operations that watch the installation and the calls of an account, from what the processes publish. */

import {
  bufferTime,
  concat,
  concatAll,
  concatMap,
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
import { implementWith, type ReadContext } from '../operation.ts'
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

/** Returns the call with all of its columns, as rows show them. */
const toShown = (call: Settlement) =>
  Object.fromEntries(
    SETTLED_COLUMNS.map((name) => {
      const value = call[name]
      const { kind } = findColumn(name)
      if (kind === 'instant' && value !== null) return [name, printInstant(Number(value))]
      return [name, kind === 'credits' && value !== null ? printCredits(BigInt(String(value))) : value]
    }),
  )

const GAP: LiveEvent = { name: 'gap', data: {} }

interface CallFilter {
  /** Undefined: of every account. */
  readonly accountId: string | undefined
  readonly channelId?: string | undefined
  readonly keyIds: readonly string[] | null
  readonly model: string | undefined
  /** None: every one. */
  readonly statuses: readonly string[]
}

const filterCalls = ({
  accountId,
  channelId,
  keyIds,
  model,
  statuses,
}: CallFilter): MonoTypeOperatorFunction<SettledCall> =>
  filter(
    (call) =>
      call === null ||
      ((accountId === undefined || call.account_id === accountId) &&
        (channelId === undefined || call.channel_id === channelId) &&
        (keyIds === null || keyIds.includes(call.key_id)) &&
        (model === undefined || call.model === model) &&
        (statuses.length === 0 || statuses.includes(call.status))),
  )

const NAMES_MS = 200

/** Adds the names of accounts and keys, which are read for many calls together. Without PostgreSQL they are null. */
const withNames = ({ accounts, keys }: ReadContext['database']) =>
  concatMap(async (calls: readonly SettledCall[]): Promise<LiveEvent[]> => {
    const settled = calls.filter((call) => call !== null)
    const [accountNames, namedKeys] = await Promise.all([
      accounts.readNames([...new Set(settled.map(({ account_id }) => account_id))]),
      keys.readNamed([...new Set(settled.map(({ key_id }) => key_id))]),
    ]).catch(() => [new Map(), new Map()] as const)
    return calls.map((call) => {
      if (call === null) return GAP
      const data = operations.liveInstallationCall.parse({
        ...toShown(call),
        key_name: namedKeys.get(call.key_id)?.name ?? null,
        account_name: accountNames.get(call.account_id) ?? null,
      })
      return { name: 'call', data }
    })
  })

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
        map(
          (call): LiveEvent =>
            call === null ? GAP : { name: 'call', data: operations.liveCall.parse(toShown(call)) },
        ),
      )
      return context.isContinued ? concat(of(GAP), calls) : calls
    },
  ),
  implementStream<LiveServices, typeof operations.watchAllCalls>(
    operations.watchAllCalls,
    async ({ database, isContinued }, input, { settledCalls }) => {
      const { account_id: accountId, channel_id: channelId, key_id, model, status: statuses = [] } = input
      const keyIds = key_id === undefined ? null : [key_id]
      const calls = settledCalls.pipe(
        filterCalls({ accountId, channelId, keyIds, model, statuses }),
        bufferTime(NAMES_MS),
        filter((some) => some.length > 0),
        withNames(database),
        concatAll(),
      )
      return isContinued ? concat(of(GAP), calls) : calls
    },
  ),
]
