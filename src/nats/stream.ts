/** The stream of settlements and the consumer that all settlers share: made when missing, else left as they are. */
import {
  AckPolicy,
  DiscardPolicy,
  JetStreamApiError,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
} from '@nats-io/jetstream'
import { type NatsConnection, nanos } from '@nats-io/transport-node'
import { SETTLEMENT_CONSUMER, SETTLEMENT_STREAM, SETTLEMENT_SUBJECT } from '../../schemas/event.ts'

/**
 * What is on its way at most. A full stream refuses (`DiscardPolicy.New`), so that nothing is thrown away: what it
 * refuses stays in the journal.
 */
const STREAM_MAX_BYTES = 512 * 1024 * 1024
/** A batch that is published twice in this time is stored once. PostgreSQL would book it once in any case. */
const DUPLICATE_WINDOW_MS = 120_000
/** A settler that says nothing for this long is taken for dead, and its messages are given to another. */
export const ACK_WAIT_MS = 6_000
/** Messages given out and not acknowledged, over all settlers. */
const MAX_ACK_PENDING_MESSAGES = 4_096
const STREAM_NOT_FOUND = 10_059
const CONSUMER_NOT_FOUND = 10_014

const isMissing = (error: unknown, code: number): boolean =>
  error instanceof JetStreamApiError && error.apiError().err_code === code

/** @throws Error when JetStream does not answer or refuses */
export async function ensureStream(connection: NatsConnection): Promise<void> {
  const manager = await jetstreamManager(connection, { checkAPI: false })
  await manager.streams.info(SETTLEMENT_STREAM).catch((error) => {
    if (!isMissing(error, STREAM_NOT_FOUND)) throw error
    return manager.streams.add({
      name: SETTLEMENT_STREAM,
      subjects: [`${SETTLEMENT_SUBJECT}.>`],
      retention: RetentionPolicy.Workqueue,
      storage: StorageType.File,
      discard: DiscardPolicy.New,
      max_bytes: STREAM_MAX_BYTES,
      duplicate_window: nanos(DUPLICATE_WINDOW_MS),
    })
  })
  await manager.consumers.info(SETTLEMENT_STREAM, SETTLEMENT_CONSUMER).catch((error) => {
    if (!isMissing(error, CONSUMER_NOT_FOUND)) throw error
    return manager.consumers.add(SETTLEMENT_STREAM, {
      durable_name: SETTLEMENT_CONSUMER,
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(ACK_WAIT_MS),
      max_deliver: -1,
      max_ack_pending: MAX_ACK_PENDING_MESSAGES,
    })
  })
}
