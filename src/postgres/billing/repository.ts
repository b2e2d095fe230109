/** Wallets: credits put in, calls booked, what calls in flight reserve, and the audit of all of it. */
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
export type Budgets = ReturnType<typeof openBudgets>
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

export const openReservations = ({ main }: Pools) =>
  onPool(main, { reserveSpend, reserveWallet, shrinkReservation, releaseReservation }, READ_DEADLINE_MS)

export const openBudgets = ({ main }: Pools) =>
  onPool(main, { putBudget, deleteBudget, listBudgets, showBudget })

export const openWalletAudits = ({ main, auditing }: Pools) => ({
  ...onPool(auditing, { verifyWallets, meteringReport }),
  ...onPool(main, { countNegativeBalances }, READ_DEADLINE_MS),
})
