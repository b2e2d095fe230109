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
import * as automatic from './automatic.ts'
import { takeNotice, takeProviderEvent } from './booking.ts'
import { listMethods } from './methods.ts'
import * as payments from './payments.ts'
import { listReceipts, showReceipt } from './receipts.ts'
import {
  closeRefusedEvent,
  listRefusedEvents,
  type RefusedEvent,
  type RefusedEventsQuery,
} from './refused-events.ts'

export interface Payments {
  list(paymentsQuery: payments.PaymentsQuery): Promise<Payment[]>
  listReceipts(paymentIds: readonly string[]): Promise<Receipt[]>
  create(wanted: payments.NewPayment): Promise<Payment>
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
  setAutomatic(wanted: automatic.AutomaticSettings): Promise<AutomaticTopUp>
  findLowBalances(accountId?: string | null): Promise<string[]>
  beginAutomatic(accountId: string, computePrice: (credits: Credits) => Price): Promise<Payment | null>
  readAttempt(paymentId: string): Promise<automatic.ClaimedAttempt>
  claimAttempts(): Promise<string[]>
  showReceipt(number: bigint): Promise<Receipt>
  listRefusedEvents(refusedEventsQuery: RefusedEventsQuery): Promise<RefusedEvent[]>
  closeRefusedEvent({ id, reason }: { readonly id: string; readonly reason: string }): Promise<RefusedEvent>
}

export const openPayments = (pools: Pools): Payments => ({
  ...onStandby(pools, { list: payments.listPayments, listReceipts }),
  ...onPool(pools.main, {
    create: payments.createPayment,
    show: payments.showPayment,
    listOpen: payments.listOpenPayments,
    recordRefundRequest: payments.recordRefundRequest,
    findCustomer: payments.findCustomer,
    keepCustomer: payments.keepCustomer,
    readReconciled: payments.readReconciled,
    keepReconciled: payments.keepReconciled,
    takeNotice,
    takeProviderEvent,
    listMethods,
    findAutomatic: automatic.findAutomatic,
    setAutomatic: automatic.setAutomatic,
    beginAutomatic: automatic.beginAutomatic,
    readAttempt: automatic.readAttempt,
    showReceipt,
    listRefusedEvents,
    closeRefusedEvent,
  }),
  ...onPool(pools.rounds, {
    findLowBalances: automatic.findLowBalances,
    claimAttempts: automatic.claimAttempts,
  }),
})
