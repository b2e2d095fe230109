/** Notifications: the outbox, deliveries, endpoints, and what is wanted by whom. */
import type { NewMail } from '../../../schemas/notifications/delivery.ts'
import type { KnownMasterKey } from '../accounts/master-key.ts'
import { onPool, type Pools } from '../repository.ts'
import * as alerts from './alerts.ts'
import {
  dispatchEvents,
  endAttempts,
  listenEvents,
  nameDeliveries,
  purgeDeliveries,
  readDeliveries,
  sendMail,
  touchDeliveries,
} from './deliveries.ts'
import {
  callbackSecret,
  createEndpoint,
  deleteEndpoint,
  listEndpoints,
  makeCallbacks,
  type NewEndpoint,
  revealCallbackSecret,
  rotateSecret,
  showEndpoint,
  updateEndpoint,
} from './endpoints.ts'
import { recordEvent } from './outbox.ts'
import * as records from './records.ts'

export type Notifications = ReturnType<typeof openNotifications>

export const openNotifications = ({ main, session }: Pools, { material }: KnownMasterKey) => ({
  ...onPool(main, {
    recordEvent,
    dispatchEvents,
    nameDeliveries,
    endAttempts,
    touchDeliveries,
    purgeDeliveries,
    listEndpoints,
    showEndpoint,
    updateEndpoint,
    deleteEndpoint,
    ...alerts,
    ...records,
  }),
  ...onPool(session, { listenEvents }),
  readDeliveries: (ids: readonly string[]) => readDeliveries(main, material, ids),
  sendMail: (address: string, mail: NewMail) => sendMail(main, material, address, mail),
  createEndpoint: (endpoint: NewEndpoint) => createEndpoint(main, material, endpoint),
  rotateSecret: (id: string) => rotateSecret(main, material, id),
  callbackSecret: (accountId: string) => callbackSecret(main, material, accountId),
  makeCallbacks: (caller: { readonly accountId: string; readonly keyId: string }) =>
    makeCallbacks(main, material, caller),
  revealCallbackSecret: (accountId: string) => revealCallbackSecret(main, material, accountId),
})
