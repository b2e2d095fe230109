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
import * as alerts from './alerts.ts'
import * as deliveries from './deliveries.ts'
import * as endpoints from './endpoints.ts'
import { acknowledgeAlert, listOperatorAlerts } from './operator-alerts.ts'
import { recordEvent } from './outbox.ts'
import * as records from './records.ts'

export interface Alerts {
  readLowBalance(accountId: string): Promise<Credits | null>
  setLowBalance(accountId: string, threshold: Credits | null): Promise<void>
  readEmailChoices(userId: string): Promise<ReadonlyMap<string, readonly string[]>>
  setEmailChoices(userId: string, accountId: string, events: readonly string[]): Promise<void>
  recordBreakers(breakers: readonly alerts.Breaker[]): Promise<void>
}

export interface OperatorAlerts {
  list(query: Parameters<typeof listOperatorAlerts>[1]): Promise<OperatorAlert[]>
  acknowledge(id: string, note: string): Promise<OperatorAlert>
}

export interface Webhooks {
  list(accountId: string, listing?: Listing): Promise<WebhookEndpoint[]>
  show(id: string): Promise<WebhookEndpoint>
  update(id: string, changes: endpoints.EndpointChanges): Promise<WebhookEndpoint>
  delete(id: string): Promise<void>
  create(endpoint: endpoints.NewEndpoint): Promise<endpoints.WithSecret>
  rotateSecret(id: string): Promise<endpoints.WithSecret>
  test(endpoint: { readonly id: string; readonly accountId: string }): Promise<DeliveryRecord>
  findCallbackSecret(accountId: string): Promise<{ readonly id: string; readonly secret: string }>
  makeCallbacks(caller: { readonly accountId: string; readonly keyId: string }): Promise<void>
  revealCallbackSecret(accountId: string): Promise<string>
}

export interface Deliveries {
  list(filter: records.DeliveryFilter): Promise<DeliveryRecord[]>
  show(id: string): Promise<DeliveryRecord>
  replay(id: string): Promise<DeliveryRecord>
  replayFailed(endpointId: string, since: Date): Promise<number>
  claimDue(ofLane: number, staleMs: number): Promise<deliveries.NamedDelivery[]>
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
      ...onPool(main, {
        readLowBalance: alerts.readLowBalance,
        setLowBalance: alerts.setLowBalance,
        readEmailChoices: alerts.readEmailChoices,
        setEmailChoices: alerts.setEmailChoices,
      }),
      ...onPool(rounds, { recordBreakers: alerts.recordBreakers }),
    },
    operatorAlerts: onPool(main, { list: listOperatorAlerts, acknowledge: acknowledgeAlert }),
    webhooks: {
      ...onPool(main, {
        list: endpoints.listEndpoints,
        show: endpoints.showEndpoint,
        update: endpoints.updateEndpoint,
        delete: endpoints.deleteEndpoint,
        test: records.testEndpoint,
      }),
      create: (endpoint) => endpoints.createEndpoint(main, material, endpoint),
      rotateSecret: (id) => endpoints.rotateSecret(main, material, id),
      findCallbackSecret: (accountId) => endpoints.readCallbackSecret(main, material, accountId),
      makeCallbacks: (caller) => endpoints.makeCallbacks(main, material, caller),
      revealCallbackSecret: (accountId) => endpoints.revealCallbackSecret(main, material, accountId),
    },
    deliveries: {
      ...onPool(main, {
        list: records.listDeliveries,
        show: records.showDelivery,
        replay: records.replayDelivery,
        replayFailed: records.replayFailed,
        endAttempts: deliveries.endAttempts,
        touch: deliveries.touchDeliveries,
        purge: deliveries.purgeDeliveries,
      }),
      ...onPool(rounds, { claimDue: deliveries.nameDeliveries }),
      read: (ids) => deliveries.readDeliveries(main, material, ids),
      sendMail: (address, mail) => deliveries.sendMail(main, material, address, mail),
    },
    events: {
      ...onPool(main, { record: recordEvent }),
      ...onPool(rounds, { dispatch: deliveries.dispatchEvents }),
      ...onPool(session, { listen: deliveries.listenEvents }),
    },
  }
}
