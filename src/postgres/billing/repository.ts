/** Wallets: credits put in, calls booked, what calls in flight reserve, and the audit of all of it. */
import type { Sql } from '../connection.ts'
import { DeadlineExceeded, within } from '../errors.ts'
import { countNegativeBalances, keepMalformed, meteringReport } from '../metering.ts'
import { onStandby } from '../reading.ts'
import { BOOKING_DEADLINE_MS, onPool, type Pools, READ_DEADLINE_MS } from '../repository.ts'
import { bookSettlements, readBooked } from './booking.ts'
import { deleteBudget, listBudgets, putBudget, showBudget } from './budgets.ts'
import { releaseReservation, reserveSpend, reserveWallet, shrinkReservation } from './caps.ts'
import { verifyWallets } from './verify.ts'
import { adjust, findRefund, ledgerPage, readWallets, refund, topUp } from './wallets.ts'

export type Wallets = ReturnType<typeof openWallets>
export type Bookings = ReturnType<typeof openBookings>
export type Reservations = ReturnType<typeof openReservations>
export type WalletAudits = ReturnType<typeof openWalletAudits>

export const openWallets = ({ main, ...pools }: Pools) => ({
  ...onPool(main, { topUp, adjust, refund }),
  ...onStandby({ main, ...pools }, { ledgerPage }),
  ...onPool(main, { readWallets, findRefund }, READ_DEADLINE_MS),
})

export const openBookings = ({ main }: Pools) => ({
  ...onPool(main, { bookSettlements }, BOOKING_DEADLINE_MS),
  ...onPool(main, { readBooked }, READ_DEADLINE_MS),
  ...onPool(main, { keepMalformed }),
})

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
      return await within(READ_DEADLINE_MS, reserving)
    } catch (error) {
      if (error instanceof DeadlineExceeded)
        reserving.then(() => releaseReservation(main, wanted.requestId)).catch(ignored)
      throw error
    }
  }

/** A release that fails leaves the reservation until it expires. */
const ignored = () => {}

export const openReservations = ({ main }: Pools) => ({
  ...onPool(main, { shrinkReservation, releaseReservation }, READ_DEADLINE_MS),
  reserveSpend: releasedIfLate(main, reserveSpend),
  reserveWallet: releasedIfLate(main, reserveWallet),
})

export const openBudgets = ({ main }: Pools) =>
  onPool(main, { putBudget, deleteBudget, listBudgets, showBudget })

export const openWalletAudits = ({ main, auditing }: Pools) => ({
  ...onPool(auditing, { verifyWallets, meteringReport }),
  ...onPool(main, { countNegativeBalances }, READ_DEADLINE_MS),
})
