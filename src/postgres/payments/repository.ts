/** Payments by card: rows, saved cards, automatic top-ups, receipts. */
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

export type Payments = ReturnType<typeof openPayments>

export const openPayments = ({ main }: Pools) =>
  onPool(main, {
    createPayment,
    showPayment,
    listPayments,
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
    listReceipts,
    showReceipt,
    listRefusedEvents,
    closeRefusedEvent,
  })
