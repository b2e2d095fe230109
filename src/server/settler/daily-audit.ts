/**
 * Audits the books from the settler: once a day a log line reports whether every wallet agrees with the ledger, and
 * how calls were metered; negative balances are counted each minute, for the metrics.
 */
import { printCredits } from '../../../schemas/money.ts'
import { DAY_MS } from '../../core/call-log/window.ts'
import type { AuditedPayments } from '../../postgres/billing/audit-report.ts'
import type { Audits } from '../../postgres/billing/repository.ts'
import type { LogOutput } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'

const COUNT_INTERVAL_MS = 60_000
/** 03:17 UTC: most customers sleep, and the nightly jobs of the full hour are over. */
const AUDIT_AT_MS = (3 * 60 + 17) * 60_000
/** Of what differs, as many are named in the line; `wallet verify` names the rest. */
const MAX_NAMED = 10

/** Returns the time until the next audit, milliseconds. */
export const untilAudit = (now: number): number => DAY_MS - ((now - AUDIT_AT_MS) % DAY_MS)

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)

/** Writes the day's line: an error where the books disagree, a warning where a balance is negative. */
export async function logAudit(
  database: { readonly audits: Audits },
  log: Pick<LogOutput, 'info' | 'warn' | 'error'>,
  payments?: AuditedPayments,
) {
  const { ok, since, accounts, entries, differences } = await database.audits.verifyWallets(undefined, {
    isIncremental: true,
    payments,
  })
  const { groups, negative } = await database.audits.reportMetering()
  const facts = {
    ok,
    since,
    accounts,
    entries,
    differences: differences.length,
    named_differences: differences.slice(0, MAX_NAMED),
    estimated_calls: sum(groups.map(({ estimated }) => estimated)),
    suspect_calls: sum(groups.map(({ suspect }) => suspect)),
    other_model_calls: sum(groups.map(({ otherModel }) => otherModel)),
    negative_balances: negative.length,
    lowest_balances: negative
      .slice(0, MAX_NAMED)
      .map(({ account_id, balance }) => ({ account_id, balance: printCredits(balance) })),
  }
  if (!ok) log.error(facts, 'Daily wallet verify: the books differ; run `tollgate wallet verify`')
  else if (negative.length > 0) log.warn(facts, 'Daily wallet verify: ok, with negative balances')
  else log.info(facts, 'Daily wallet verify: ok')
}

interface DailyAuditDeps {
  readonly database: { readonly audits: Audits }
  /** Null: there is no payment provider. */
  readonly openProvider: (() => Promise<AuditedPayments>) | null
  readonly metrics: Metrics
  readonly log: LogOutput
}

export function scheduleDailyAudit({ database, openProvider, metrics, log }: DailyAuditDeps) {
  let negative: number | null = null
  metrics.observe('tollgate_wallets_negative', () => negative)
  const count = () => {
    database.audits.countNegativeBalances().then(
      (found) => {
        negative = found
      },
      () => {
        negative = null
      },
    )
  }
  count()
  const counting = setInterval(count, COUNT_INTERVAL_MS)
  let auditing: NodeJS.Timeout
  const plan = () => {
    auditing = setTimeout(() => {
      plan()
      const audit = async () => logAudit(database, log, await openProvider?.())
      audit().catch((error) => log.warn({ err: error }, 'Daily wallet verify failed'))
    }, untilAudit(Date.now()))
  }
  plan()
  return {
    stop(): void {
      clearInterval(counting)
      clearTimeout(auditing)
    },
  }
}
