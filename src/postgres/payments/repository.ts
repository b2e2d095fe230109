/** Payments by card: rows, saved cards, automatic top-ups, receipts. */
import { onStandby } from '../reading.ts'
import { onPool, type Pools } from '../repository.ts'
import {
  beginAutomatic,
  claimAttempts,
  findAutomatic,
  findLowBalances,
  readAttempt,
  setAutomatic,
} from './automatic.ts'
import { takeNotice, takeProviderEvent } from './booking.ts'
import { listMethods } from './methods.ts'
import {
  createPayment,
  findCustomer,
  keepCustomer,
  keepReconciled,
  listOpenPayments,
  listPayments,
  readReconciled,
  recordRefundRequest,
  showPayment,
} from './payments.ts'
import { listReceipts, showReceipt } from './receipts.ts'
import { closeRefusedEvent, listRefusedEvents } from './refused-events.ts'

export const openPayments = (pools: Pools) => ({
  ...onStandby(pools, { listPayments, listReceipts }),
  ...onPool(pools.main, {
    createPayment,
    showPayment,
    listOpenPayments,
    recordRefundRequest,
    findCustomer,
    keepCustomer,
    readReconciled,
    keepReconciled,
    takeNotice,
    takeProviderEvent,
    listMethods,
    findAutomatic,
    setAutomatic,
    findLowBalances,
    beginAutomatic,
    readAttempt,
    claimAttempts,
    showReceipt,
    listRefusedEvents,
    closeRefusedEvent,
  }),
})
