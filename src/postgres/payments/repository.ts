/** Payments by card: rows, saved cards, automatic top-ups, receipts. */

import type { Credits } from '../../../schemas/money.ts'
import type {
  AutomaticTopUp,
  Payment,
  Price,
  Receipt,
  SavedMethod,
} from '../../../schemas/payments/payment.ts'
import type { ProviderEvent, ProviderNotice, TakenNotice } from '../../../schemas/payments/provider.ts'
import { onStandby } from '../reading.ts'
import { onPool, type Pools } from '../repository.ts'
import {
  type AutomaticSettings,
  beginAutomatic,
  type ClaimedAttempt,
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
  existPayments,
  findCustomer,
  keepCustomer,
  keepReconciled,
  listOpenPayments,
  listPayments,
  type NewPayment,
  type PaymentsQuery,
  readReconciled,
  recordRefundRequest,
  showPayment,
} from './payments.ts'
import { listReceipts, showReceipt } from './receipts.ts'
import {
  closeRefusedEvent,
  listRefusedEvents,
  type RefusedEvent,
  type RefusedEventsQuery,
} from './refused-events.ts'

export interface Payments {
  list(paymentsQuery: PaymentsQuery): Promise<Payment[]>
  listReceipts(paymentIds: readonly string[]): Promise<Receipt[]>
  create(wanted: NewPayment): Promise<Payment>
  /** Returns whether there is any. */
  exist(): Promise<boolean>
  show(id: string): Promise<Payment>
  listOpen(olderThanSeconds: number): Promise<Payment[]>
  recordRefundRequest(
    pick: Pick<Payment, 'id' | 'accountId'>,
    asked: { readonly amount: string | null; readonly reason: string },
  ): Promise<void>
  findCustomer(accountId: string): Promise<string | null>
  keepCustomer(accountId: string, id: string): Promise<void>
  readReconciled(): Promise<Date | null>
  keepReconciled(until: Date): Promise<void>
  takeNotice(notice: ProviderNotice): Promise<TakenNotice>
  takeProviderEvent(event: ProviderEvent): Promise<TakenNotice>
  listMethods(accountId: string): Promise<SavedMethod[]>
  findAutomatic(accountId: string): Promise<AutomaticTopUp | null>
  setAutomatic(wanted: AutomaticSettings): Promise<AutomaticTopUp>
  findLowBalances(accountId?: string | null): Promise<string[]>
  beginAutomatic(accountId: string, computePrice: (credits: Credits) => Price): Promise<Payment | null>
  readAttempt(paymentId: string): Promise<ClaimedAttempt>
  claimAttempts(): Promise<string[]>
  showReceipt(number: bigint): Promise<Receipt>
  listRefusedEvents(refusedEventsQuery: RefusedEventsQuery): Promise<RefusedEvent[]>
  closeRefusedEvent({ id, reason }: { readonly id: string; readonly reason: string }): Promise<RefusedEvent>
}

export const openPayments = (pools: Pools): Payments => ({
  ...onStandby(pools, { list: listPayments, listReceipts }),
  ...onPool(pools.main, {
    create: createPayment,
    show: showPayment,
    listOpen: listOpenPayments,
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
    beginAutomatic,
    readAttempt,
    showReceipt,
    listRefusedEvents,
    closeRefusedEvent,
  }),
  ...onPool(pools.rounds, { exist: existPayments, findLowBalances, claimAttempts }),
})
