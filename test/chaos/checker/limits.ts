/**
 * Caps hold over all gateways; calls that a gateway admits while it may not reach PostgreSQL count in its own view of the
 * cap (docs/architecture.md, "A reservation"). Limits hold, but that each gateway that has no NATS holds the whole limit by itself (docs/operating.md,
 * "Limits of accounts"), and one that is killed then forgets what it admitted.
 */
import type { FaultLine, KeyLine } from '../history.ts'
import type { Run } from './check.ts'
import { type Problems, problem } from './problems.ts'
import type { Row } from './tables.ts'

const MINUTE_MS = 60_000
const GATEWAY = /^gateway/
/** Faults by which a gateway may lose PostgreSQL, and how long after their end it may not have found it again. */
const DATABASE_AWAY = /^(postgres|pgbouncer|gateway)/
const FOUND_AGAIN_MS = 10_000

export interface CheckedLimits {
  readonly problems: Problems
  readonly figures: Readonly<Record<string, number>>
}

export function checkLimits({ lines, tables }: Run): CheckedLimits {
  const admitted = Map.groupBy(
    tables.rows.filter(({ attempts }) => attempts > 0),
    ({ key_id }) => key_id,
  )
  const gateways = new Set(lines.call.map(({ node }) => node)).size
  const deaths = lines.fault.filter(
    ({ victim, act, state }) => GATEWAY.test(victim) && act === 'kill' && state === 'begins',
  )
  const deathsIn = (from: number, to: number) => deaths.filter(({ at }) => at >= from && at <= to).length
  const figures: Record<string, number> = {}
  const beyond: unknown[] = []
  const compare = (key: KeyLine, limit: number | null, of: 'a minute' | 'at once', peak: Peak) => {
    if (limit === null) return
    figures[`${key.name}: most ${of}, of ${limit}`] = peak.count
    if (peak.count > limit * (gateways + deathsIn(peak.from, peak.to)))
      beyond.push({ key: key.name, limit, of, ...peak })
  }
  for (const key of lines.key) {
    const rows = admitted.get(key.keyId) ?? []
    compare(key, key.requestsPerMinute, 'a minute', mostInAMinute(rows))
    compare(key, key.concurrency, 'at once', mostAtOnce(rows))
  }
  const isDatabaseAway = awayAt(lines.fault)
  const exactlySpent = (keyId: string) =>
    costOf((admitted.get(keyId) ?? []).filter(({ submitted_at }) => !isDatabaseAway(submitted_at)))
  for (const { name, keyId } of lines.key) {
    const grant = tables.grants.find(({ key_id }) => key_id === keyId)
    if (grant !== undefined)
      figures[`${name}: spent of its cap, in percent`] = Math.round((100 * grant.spent) / grant.spend_cap)
  }
  const wallets = new Map(tables.wallets.map(({ account_id, balance }) => [account_id, balance]))
  for (const { name, accountId } of lines.key.filter(({ name }) => name.startsWith('poor')))
    figures[`${name}: balance, in credits`] = Math.round((wallets.get(accountId) ?? 0) / 1e8)
  return {
    figures,
    problems: [
      ...problem(
        'Keys that have spent more than their cap in calls that reserved what they may cost',
        tables.grants.filter(({ key_id, spend_cap }) => exactlySpent(key_id) > spend_cap),
      ),
      ...problem(
        'Keys that have spent more than their cap in each gateway',
        tables.grants.filter(({ spend_cap, spent }) => spent > spend_cap * gateways),
      ),
      ...problem(
        'Keys whose spending is not the sum of their rows',
        tables.grants.filter(({ key_id, spent }) => spent !== costOf(admitted.get(key_id) ?? [])),
      ),
      ...problem('Limits that did not hold', beyond),
      // docs/architecture.md, "A reservation": without PostgreSQL the balance once more for each further process.
      ...problem(
        'Accounts overdrawn beyond what each gateway may admit by itself',
        lines.key.filter(({ accountId, credit }) => (wallets.get(accountId) ?? 0) < -credit * (gateways - 1)),
      ),
    ],
  }
}

const costOf = (rows: readonly Row[]): number => rows.reduce((sum, { cost }) => sum + cost, 0)

/** Tells whether a gateway may have been without PostgreSQL at this instant. */
function awayAt(faults: readonly FaultLine[]): (at: number) => boolean {
  const times = faults
    .filter(({ victim, state }) => state === 'begins' && DATABASE_AWAY.test(victim))
    .map(({ at, lastsMs }) => [at, at + lastsMs + FOUND_AGAIN_MS] as const)
  return (at) => times.some(([from, to]) => at >= from && at <= to)
}

interface Peak {
  readonly count: number
  readonly from: number
  readonly to: number
}

const NONE: Peak = { count: 0, from: 0, to: 0 }

function mostInAMinute(rows: readonly Row[]): Peak {
  const starts = rows.map(({ submitted_at }) => submitted_at).sort((a, b) => a - b)
  return starts.reduce((most, to, at) => {
    const from = to - MINUTE_MS
    const count = at + 1 - starts.findIndex((start) => start > from)
    return count > most.count ? { count, from, to } : most
  }, NONE)
}

function mostAtOnce(rows: readonly Row[]): Peak {
  return rows.reduce((most, { submitted_at: at }) => {
    const open = rows.filter(({ submitted_at, created_at }) => submitted_at <= at && created_at > at)
    return open.length > most.count ? { count: open.length, from: at - MINUTE_MS, to: at } : most
  }, NONE)
}
