/** Operations of the health of the installation. */
import type { ConfigFile } from '../../../schemas/config/file.ts'
import {
  acknowledgeAlert,
  listOperatorAlerts,
  showChannelImpact,
  showHealth,
  showWalletRules,
} from '../../../schemas/management/health.ts'
import { type Credits, ONE_CREDIT, printCredits } from '../../../schemas/money.ts'
import type { EventType, OperatorAlert } from '../../../schemas/notifications/event.ts'
import type { CallSummaries } from '../../../src/clickhouse/call-log.ts'
import type { ChannelHealth } from '../../../src/clickhouse/summaries/channel-health.ts'
import { DAY_MS } from '../../../src/core/call-log/window.ts'
import { toApiShape } from '../../../src/core/json/snake-case.ts'
import { hasAccess } from '../../../src/core/routing/channel-access.ts'
import { type ChannelServices, findChannel } from '../channels/channels.ts'
import { joinReports } from '../channels/reports.ts'
import { implementWith, type ReadContext } from '../operation.ts'
import { readPage, toPage } from '../page.ts'
import { printTimeOrNull } from '../shapes.ts'

export interface HealthServices extends ChannelServices {
  readonly callLog: CallSummaries
  readonly config: () => ConfigFile
}

const HOUR_MS = 60 * 60 * 1000
const MAX_LISTED = 100
const USUAL_DAYS = 7
const HOURS_PER_DAY = 24n
/** An hour that costs this many times the usual one, and at least the least amount, is unusual. */
const UNUSUAL_TIMES = 10n
const UNUSUAL_FROM = 100n * ONE_CREDIT

/** Returns null while the call log does not answer: an incident is no time to show nothing at all. */
const readChannels = ({ callLog }: HealthServices, now: number): Promise<ChannelHealth[] | null> =>
  callLog.readChannelHealth({ hourFrom: now - HOUR_MS, dayFrom: now - DAY_MS }).catch(() => null)

/** Returns the channels that failed in the last day or have an open circuit, the failing ones first. */
async function listTroubledChannels({ database, now }: ReadContext, services: HealthServices) {
  const [found, processes, holds] = await Promise.all([
    readChannels(services, now),
    services.processReports(),
    database.channels.listHolds(),
  ])
  const byId = new Map(found?.map((health) => [health.channelId, health]))
  const none = { attempts: 0, failures: 0 }
  const channels = services.catalog().channels.map(({ id }) => {
    const health = byId.get(id)
    const { joined } = joinReports(processes, id)
    const error = health?.lastError ?? null
    const isBroken = joined.breaker === 'open' || joined.breaker === 'half-open'
    return {
      id,
      state: holds.find((held) => held.id === id)?.state ?? ('active' as const),
      breaker: joined.breaker,
      is_failing: isBroken || (error !== null && error.at > (health?.lastSuccessAt ?? 0)),
      last_hour: health?.hour ?? none,
      last_day: health?.day ?? none,
      last_error: error && { ...error, at: new Date(error.at).toISOString() },
      last_success_at: printTimeOrNull(health?.lastSuccessAt ?? null),
    }
  })
  const troubled = channels
    .filter(({ is_failing, last_day }) => is_failing || last_day.failures > 0)
    .sort((a, b) => Number(b.is_failing) - Number(a.is_failing) || b.last_day.failures - a.last_day.failures)
  return { channels: troubled, is_log_read: found !== null }
}

const isUnusual = (hour: Credits, usual: Credits): boolean =>
  hour >= UNUSUAL_FROM && hour >= usual * UNUSUAL_TIMES

/** Returns the accounts whose last hour cost far more than their usual one. */
async function listUnusualSpend({ database, now }: ReadContext, { callLog }: HealthServices) {
  const find = (from: number, to: number) =>
    callLog.sumUsageByGroup({ accountId: null, by: 'account', from, to })
  const [hour, week] = await Promise.all([
    find(now - HOUR_MS, now),
    find(now - HOUR_MS - USUAL_DAYS * DAY_MS, now - HOUR_MS),
  ])
  const usual = new Map(
    week.map(({ accountId, cost }) => [accountId, cost / (BigInt(USUAL_DAYS) * HOURS_PER_DAY)]),
  )
  const found = hour
    .map(({ accountId, cost }) => ({ id: accountId ?? '', cost, usual: usual.get(accountId) ?? 0n }))
    .filter((row) => isUnusual(row.cost, row.usual))
    .slice(0, MAX_LISTED)
  const names = await database.accounts.readNames(found.map(({ id }) => id))
  return found.map((row) => ({
    account_id: row.id,
    name: names.get(row.id) ?? null,
    last_hour: printCredits(row.cost),
    usual_hour: printCredits(row.usual),
  }))
}

const alertShape = ({ type, ...alert }: OperatorAlert) => ({ ...toApiShape(alert), type: type as EventType })

const implement = implementWith<HealthServices>()

export const healthOperations = [
  implement(showHealth, async (context, _, services) => {
    const { database } = context
    const [troubled, alerts, negative, unusual] = await Promise.all([
      listTroubledChannels(context, services),
      database.operatorAlerts.list({ isOpen: true, before: null, limit: MAX_LISTED }),
      database.accounts.listNegative(MAX_LISTED),
      listUnusualSpend(context, services).catch(() => []),
    ])
    return {
      ...troubled,
      open_alerts: alerts.length,
      negative_balances: negative.map(({ account, wallet }) => ({
        account_id: account.id,
        name: account.name,
        balance: printCredits(wallet.balance),
      })),
      unusual_spend: unusual,
    }
  }),
  implement(showChannelImpact, async ({ database, now }, { id }, services) => {
    const channel = findChannel(services, id)
    const { channels } = services.catalog()
    const [health, processes, holds, openTasks] = await Promise.all([
      readChannels(services, now),
      services.processReports(),
      database.channels.listHolds(),
      database.channels.countTasks(),
    ])
    const isHeld = (other: string) => holds.some((held) => held.id === other)
    const others = channels.filter((other) => other.id !== id && hasAccess(other) && !isHeld(other.id))
    const isLast = (model: string) => !others.some(({ models }) => Object.hasOwn(models, model))
    return {
      id,
      orphaned_models: isHeld(id) ? [] : Object.keys(channel.models).filter(isLast),
      calls_last_hour: health && (health.find(({ channelId }) => channelId === id)?.hour.attempts ?? 0),
      in_flight: joinReports(processes, id).joined.in_flight,
      open_tasks: openTasks.get(id) ?? 0,
    }
  }),
  implement(showWalletRules, async (_, __, { config }) => ({
    confirm_above: printCredits(config().wallet.confirm_above),
  })),
  implement(listOperatorAlerts, async ({ database }, input) => {
    const { after: before, limit } = readPage(input)
    const found = await database.operatorAlerts.list({ isOpen: input.open, before, limit })
    return toPage(found.map(alertShape), input)
  }),
  implement(acknowledgeAlert, async ({ write }, { id, note }) =>
    alertShape(await write((writing) => writing.operatorAlerts.acknowledge(id, note))),
  ),
]
