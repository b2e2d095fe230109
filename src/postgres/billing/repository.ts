/** Wallets, their bookings and reservations, budgets, and the audit of them. */

import type { LedgerEntry, WalletTotals } from '../../../schemas/accounts/account.ts'
import type { SpendRefusal } from '../../../schemas/accounts/budget.ts'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import type { Credits } from '../../../schemas/money.ts'
import type { Sql } from '../connection.ts'
import { DeadlineExceeded, waitWithin } from '../errors.ts'
import { countNegativeBalances, keepMalformed, type MeteringReport, reportMetering } from '../metering.ts'
import { onStandby } from '../reading.ts'
import { BOOKING_DEADLINE_MS, onPool, type Pools, READ_DEADLINE_MS } from '../repository.ts'
import type { AuditedLog, AuditReport } from './audit-report.ts'
import { type BookedState, type Booking, bookSettlements, readBooked } from './booking.ts'
import * as budgets from './budgets.ts'
import * as caps from './caps.ts'
import { type AuditOptions, verifyWallets } from './verify.ts'
import * as wallets from './wallets.ts'

export interface Wallets {
  topUp(accountId: string, amount: Credits, topUpOptions?: wallets.TopUpOptions): Promise<wallets.Credited>
  adjust(
    accountId: string,
    amount: Credits,
    adjustmentOptions: wallets.AdjustmentOptions,
  ): Promise<wallets.Credited>
  refund(accountId: string, ref: string, refundOptions: wallets.RefundOptions): Promise<wallets.Credited>
  readLedger(accountId: string, query: wallets.LedgerQuery): Promise<LedgerEntry[]>
  sumLedgerMonth(accountId: string, month: wallets.LedgerMonth): Promise<wallets.LedgerDay[]>
  read(ids: readonly string[]): Promise<WalletTotals[]>
  findRefund(accountId: string, ref: string): Promise<LedgerEntry | null>
}

export interface Bookings {
  book(settlements: readonly Settlement[]): Promise<Booking>
  readBooked(requestIds: readonly string[], walletIds: readonly string[]): Promise<BookedState>
  keepMalformed(line: string, reason: string): Promise<void>
}

export interface Reservations {
  shrink(requestId: string, cost: Credits): Promise<void>
  release(requestId: string): Promise<void>
  reserveSpend(wanted: caps.SpendReservation): Promise<SpendRefusal | null>
  reserveWallet(walletReservation: caps.WalletReservation): Promise<boolean>
}

export interface Budgets {
  put(wanted: budgets.NewBudget): Promise<budgets.BudgetState>
  delete(id: string): Promise<budgets.BudgetState>
  list(accountId: string, budgetListing?: budgets.BudgetListing): Promise<budgets.BudgetState[]>
  show(id: string): Promise<budgets.BudgetState>
}

export interface Audits {
  verifyWallets(log?: AuditedLog, auditOptions?: AuditOptions): Promise<AuditReport>
  reportMetering(since?: number): Promise<MeteringReport>
  countNegativeBalances(): Promise<number>
}

export interface BillingRepositories {
  readonly wallets: Wallets
  readonly bookings: Bookings
  readonly reservations: Reservations
  readonly budgets: Budgets
  readonly audits: Audits
}

export function openBilling(pools: Pools): BillingRepositories {
  const { main, auditing } = pools
  return {
    wallets: {
      ...onPool(main, { topUp: wallets.topUp, adjust: wallets.adjust, refund: wallets.refund }),
      ...onStandby(pools, { readLedger: wallets.readLedger, sumLedgerMonth: wallets.sumLedgerMonth }),
      ...onPool(main, { read: wallets.readWallets, findRefund: wallets.findRefund }, READ_DEADLINE_MS),
    },
    bookings: {
      ...onPool(main, { book: bookSettlements }, BOOKING_DEADLINE_MS),
      ...onPool(main, { readBooked }, READ_DEADLINE_MS),
      ...onPool(main, { keepMalformed }),
    },
    reservations: {
      ...onPool(main, { shrink: caps.shrinkReservation, release: caps.releaseReservation }, READ_DEADLINE_MS),
      reserveSpend: releasedIfLate(main, caps.reserveSpend),
      reserveWallet: releasedIfLate(main, caps.reserveWallet),
    },
    budgets: onPool(main, {
      put: budgets.putBudget,
      delete: budgets.deleteBudget,
      list: budgets.listBudgets,
      show: budgets.showBudget,
    }),
    audits: {
      ...onPool(auditing, { verifyWallets, reportMetering }),
      ...onPool(main, { countNegativeBalances }, READ_DEADLINE_MS),
    },
  }
}

/**
 * Releases what is reserved after the deadline. The caller has decided without it then: the call may be booked already, and
 * nothing else would end its reservation before it expires.
 */
const releasedIfLate =
  <Wanted extends { readonly requestId: string }, T>(
    main: Sql,
    reserve: (sql: Sql, wanted: Wanted) => Promise<T>,
  ) =>
  async (wanted: Wanted): Promise<T> => {
    const reserving = reserve(main, wanted)
    try {
      return await waitWithin(READ_DEADLINE_MS, reserving)
    } catch (error) {
      if (error instanceof DeadlineExceeded)
        reserving.then(() => caps.releaseReservation(main, wanted.requestId)).catch(ignored)
      throw error
    }
  }

/** A release that fails leaves the reservation until it expires. */
const ignored = () => {}
