/** Settled calls of all gateways, as they are published to be booked. Without a subscriber nothing is read. */

import { Observable, share } from 'rxjs'
import { decodeSettlements } from '../../../pipelines/settlement/messages.ts'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import { SETTLEMENT_SUBJECT } from '../../../schemas/events/event.ts'
import type { Nats } from '../../nats/nats.ts'

/** A batch that is published again comes within seconds. */
const MAX_REMEMBERED = 20_000

/** Emits each call once; null where some may have been missed. Shared by all who subscribe. */
export const settledCalls = (nats: Pick<Nats, 'listen'>): Observable<Settlement | null> =>
  new Observable<Settlement | null>((listener) => {
    const seen = new Set<string>()
    return nats.listen(
      `${SETTLEMENT_SUBJECT}.*`,
      (payload) => {
        for (const call of decodeSettlements(null, payload).settlements) {
          if (seen.has(call.request_id)) continue
          seen.add(call.request_id)
          if (seen.size > MAX_REMEMBERED) seen.delete(seen.values().next().value ?? '')
          listener.next(call)
        }
      },
      () => listener.next(null),
    )
  }).pipe(share())
