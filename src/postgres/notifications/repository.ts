/** Notifications: the outbox, deliveries, endpoints, and what is wanted by whom. */

import type { Credits } from '../../../schemas/money.ts'
import type {
  AttemptResult,
  DeliveryRecord,
  DueDelivery,
  NewMail,
  WebhookEndpoint,
} from '../../../schemas/notifications/delivery.ts'
import type { NewEvent, OperatorAlert } from '../../../schemas/notifications/event.ts'
import type { KnownMasterKey } from '../accounts/master-key.ts'
import type { Listing } from '../listing.ts'
import { onPool, type Pools } from '../repository.ts'
import {
  type Breaker,
  readEmailChoices,
  readLowBalance,
  recordBreakers,
  setEmailChoices,
  setLowBalance,
} from './alerts.ts'
import {
  dispatchEvents,
  endAttempts,
  listenEvents,
  type NamedDelivery,
  nameDeliveries,
  purgeDeliveries,
  readDeliveries,
  sendMail,
  touchDeliveries,
} from './deliveries.ts'
import {
  createEndpoint,
  deleteEndpoint,
  type EndpointChanges,
  listEndpoints,
  makeCallbacks,
  type NewEndpoint,
  readCallbackSecret,
  revealCallbackSecret,
  rotateSecret,
  showEndpoint,
  updateEndpoint,
  type WithSecret,
} from './endpoints.ts'
import { acknowledgeAlert, listOperatorAlerts } from './operator-alerts.ts'
import { recordEvent } from './outbox.ts'
import {
  type DeliveryFilter,
  listDeliveries,
  replayDelivery,
  replayFailed,
  showDelivery,
  testEndpoint,
} from './records.ts'

export interface Alerts {
  readLowBalance(accountId: string): Promise<Credits | null>
  setLowBalance(accountId: string, threshold: Credits | null): Promise<void>
  readEmailChoices(userId: string): Promise<ReadonlyMap<string, readonly string[]>>
  setEmailChoices(userId: string, accountId: string, events: readonly string[]): Promise<void>
  recordBreakers(breakers: readonly Breaker[]): Promise<void>
}

export interface OperatorAlerts {
  list(query: Parameters<typeof listOperatorAlerts>[1]): Promise<OperatorAlert[]>
  acknowledge(id: string, note: string): Promise<OperatorAlert>
}

export interface Webhooks {
  list(accountId: string, listing?: Listing): Promise<WebhookEndpoint[]>
  show(id: string): Promise<WebhookEndpoint>
  update(id: string, changes: EndpointChanges): Promise<WebhookEndpoint>
  delete(id: string): Promise<void>
  create(endpoint: NewEndpoint): Promise<WithSecret>
  rotateSecret(id: string): Promise<WithSecret>
  test(endpoint: { readonly id: string; readonly accountId: string }): Promise<DeliveryRecord>
  findCallbackSecret(accountId: string): Promise<{ readonly id: string; readonly secret: string }>
  makeCallbacks(caller: { readonly accountId: string; readonly keyId: string }): Promise<void>
  revealCallbackSecret(accountId: string): Promise<string>
}

export interface Deliveries {
  list(filter: DeliveryFilter): Promise<DeliveryRecord[]>
  show(id: string): Promise<DeliveryRecord>
  replay(id: string): Promise<DeliveryRecord>
  replayFailed(endpointId: string, since: Date): Promise<number>
  claimDue(ofLane: number, staleMs: number): Promise<NamedDelivery[]>
  endAttempts(results: readonly AttemptResult[]): Promise<void>
  touch(ids: readonly string[]): Promise<void>
  purge(): Promise<void>
  read(ids: readonly string[]): Promise<DueDelivery[]>
  sendMail(address: string, mail: NewMail): Promise<void>
}

export interface Events {
  record(newEvent: NewEvent): Promise<void>
  dispatch(most: number, can: { readonly hasMail: boolean }): Promise<number>
  listen(onEvent: () => void): Promise<() => Promise<void>>
}

export interface NotificationRepositories {
  readonly alerts: Alerts
  readonly operatorAlerts: OperatorAlerts
  readonly webhooks: Webhooks
  readonly deliveries: Deliveries
  readonly events: Events
}

export function openNotifications(
  { main, rounds, session }: Pools,
  { material }: KnownMasterKey,
): NotificationRepositories {
  return {
    alerts: {
      ...onPool(main, { readLowBalance, setLowBalance, readEmailChoices, setEmailChoices }),
      ...onPool(rounds, { recordBreakers }),
    },
    operatorAlerts: onPool(main, { list: listOperatorAlerts, acknowledge: acknowledgeAlert }),
    webhooks: {
      ...onPool(main, {
        list: listEndpoints,
        show: showEndpoint,
        update: updateEndpoint,
        delete: deleteEndpoint,
        test: testEndpoint,
      }),
      create: (endpoint) => createEndpoint(main, material, endpoint),
      rotateSecret: (id) => rotateSecret(main, material, id),
      findCallbackSecret: (accountId) => readCallbackSecret(main, material, accountId),
      makeCallbacks: (caller) => makeCallbacks(main, material, caller),
      revealCallbackSecret: (accountId) => revealCallbackSecret(main, material, accountId),
    },
    deliveries: {
      ...onPool(main, {
        list: listDeliveries,
        show: showDelivery,
        replay: replayDelivery,
        replayFailed,
        endAttempts,
      }),
      ...onPool(rounds, { claimDue: nameDeliveries, touch: touchDeliveries, purge: purgeDeliveries }),
      read: (ids) => readDeliveries(main, material, ids),
      sendMail: (address, mail) => sendMail(main, material, address, mail),
    },
    events: {
      ...onPool(main, { record: recordEvent }),
      ...onPool(rounds, { dispatch: dispatchEvents }),
      ...onPool(session, { listen: listenEvents }),
    },
  }
}
