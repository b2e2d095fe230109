/**
 * The streams and the one consumer of each, which all that work on it share: made when missing, the consumer also when it
 * is ahead of its stream, else left as they are.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  AckPolicy,
  type ConsumerInfo,
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type StreamState,
} from '@nats-io/jetstream'
import { type NatsConnection, nanos } from '@nats-io/transport-node'
import {
  DELIVERY_CONSUMER,
  DELIVERY_STREAM,
  DELIVERY_SUBJECT,
  SETTLEMENT_CONSUMER,
  SETTLEMENT_STREAM,
  SETTLEMENT_SUBJECT,
  TASK_CONSUMER,
  TASK_STREAM,
  TASK_SUBJECT,
} from '../../schemas/events/event.ts'

export interface StreamPlan {
  /** Its content, for messages. */
  readonly title: string
  readonly stream: string
  readonly subject: string
  readonly consumer: string
  /** A full stream refuses (`DiscardPolicy.New`), so that nothing is thrown away: the publisher keeps it. */
  readonly maxBytes: number
  /** A message that is published twice in this time is stored once. */
  readonly duplicateWindowMs: number
  /** A consumer without an acknowledgement for this long counts as dead: another gets its message. */
  readonly ackWaitMs: number
  /** Messages given out, or waiting to come back, and not acknowledged, over all processes. */
  readonly maxAckPending: number
  /** Messages given to one process and not finished, so that its memory is bounded. */
  readonly maxUnfinished: number
  /** More are requested when this many or fewer are unfinished. */
  readonly refillAt: number
}

const MB = 1024 * 1024

export const SETTLEMENTS: StreamPlan = {
  title: 'settlements',
  stream: SETTLEMENT_STREAM,
  subject: `${SETTLEMENT_SUBJECT}.>`,
  consumer: SETTLEMENT_CONSUMER,
  // A message that it refuses stays in the journal.
  maxBytes: 512 * MB,
  // PostgreSQL would book a second one once in any case.
  duplicateWindowMs: 120_000,
  ackWaitMs: 6_000,
  maxAckPending: 4_096,
  // A batch each.
  maxUnfinished: 64,
  // Messages end many at a time: one request for all of them.
  refillAt: 32,
}

export const TASKS: StreamPlan = {
  title: 'tasks',
  stream: TASK_STREAM,
  subject: TASK_SUBJECT,
  consumer: TASK_CONSUMER,
  // A message is a hundred bytes; the sweep finds tasks whose message it refuses.
  maxBytes: 128 * MB,
  duplicateWindowMs: 120_000,
  ackWaitMs: 30_000,
  // Each open task is one.
  maxAckPending: 100_000,
  maxUnfinished: 512,
  // Those that are being submitted may take minutes; the others must not wait for them.
  refillAt: 448,
}

export const DELIVERIES: StreamPlan = {
  title: 'deliveries',
  stream: DELIVERY_STREAM,
  subject: DELIVERY_SUBJECT,
  consumer: DELIVERY_CONSUMER,
  // As of tasks; a delivery whose message it refuses is named again.
  maxBytes: 64 * MB,
  duplicateWindowMs: 120_000,
  ackWaitMs: 6_000,
  maxAckPending: 100_000,
  // Sixty lanes that are slow leave room for the others.
  maxUnfinished: 4_096,
  refillAt: 3_584,
}

/** A message that is done is removed some moments after it counts as done: what seems ahead is checked again. */
const RECHECK_MS = 100

const STREAM_NOT_FOUND = 10_059
const CONSUMER_NOT_FOUND = 10_014

const isMissing = (error: unknown, code: number): boolean =>
  error instanceof JetStreamApiError && error.apiError().err_code === code

/** Replicas of a stream on a cluster that has enough servers. */
const USUAL_REPLICAS = 3

interface EnsureOptions {
  /** Before a missing stream is created. */
  readonly missingPauseMs: number
  /** Null: as many as the cluster allows, three at most; never fewer than there are. Undefined: those that there are. */
  readonly replicas?: number | null | undefined
  /** Called when the server refuses that many: the stream stays as it is. */
  onRefused?(reason: string): void
}

/**
 * Creates the stream where it is missing, and gives it its replicas.
 * @throws Error when JetStream does not answer or refuses
 */
export async function ensureStream(
  connection: NatsConnection,
  plan: StreamPlan,
  options: EnsureOptions,
): Promise<void> {
  const manager = await jetstreamManager(connection, { checkAPI: false })
  const found = await manager.streams.info(plan.stream).catch(async (error) => {
    if (!isMissing(error, STREAM_NOT_FOUND)) throw error
    await sleep(options.missingPauseMs)
    return manager.streams.add({
      name: plan.stream,
      subjects: [plan.subject],
      retention: RetentionPolicy.Workqueue,
      storage: StorageType.File,
      discard: DiscardPolicy.New,
      max_bytes: plan.maxBytes,
      duplicate_window: nanos(plan.duplicateWindowMs),
    })
  })
  await replicate(connection, manager, { name: plan.stream, count: found.config.num_replicas }, options)
  await ensureConsumer(manager, plan)
}

async function replicate(
  connection: NatsConnection,
  manager: JetStreamManager,
  stream: { readonly name: string; readonly count: number },
  { replicas, onRefused }: EnsureOptions,
): Promise<void> {
  if (replicas === undefined) return
  const isClustered = connection.info?.cluster !== undefined
  const wanted = replicas ?? (isClustered ? Math.max(USUAL_REPLICAS, stream.count) : stream.count)
  if (wanted === stream.count) return
  try {
    await manager.streams.update(stream.name, { num_replicas: wanted })
  } catch (error) {
    if (!(error instanceof JetStreamApiError)) throw error
    // A cluster of two servers has no place for three: that is as many as it allows.
    if (replicas !== null) onRefused?.(error.message)
  }
}

/**
 * Counts the messages of a subject, which may have wildcards, in a stream; 0 where there is no stream.
 * @throws Error when JetStream does not answer
 */
export async function countMessages(
  connection: NatsConnection,
  { stream }: Pick<StreamPlan, 'stream'>,
  subject: string,
): Promise<number> {
  const manager = await jetstreamManager(connection, { checkAPI: false })
  try {
    const { state } = await manager.streams.info(stream, { subjects_filter: subject })
    return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0)
  } catch (error) {
    if (isMissing(error, STREAM_NOT_FOUND)) return 0
    throw error
  }
}

async function ensureConsumer(manager: JetStreamManager, plan: StreamPlan): Promise<void> {
  const known = await manager.consumers.info(plan.stream, plan.consumer).catch((error) => {
    if (!isMissing(error, CONSUMER_NOT_FOUND)) throw error
    return null
  })
  if (known !== null) {
    if (!(await isStillAhead(manager, plan, known))) return
    await manager.consumers.delete(plan.stream, plan.consumer)
  }
  await manager.consumers.add(plan.stream, {
    durable_name: plan.consumer,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(plan.ackWaitMs),
    max_deliver: -1,
    max_ack_pending: plan.maxAckPending,
  })
}

/** Returns whether the consumer stays ahead. `known` was read before: the stream may have changed meanwhile. */
async function isStillAhead(
  manager: JetStreamManager,
  { stream }: StreamPlan,
  known: ConsumerInfo,
): Promise<boolean> {
  if (!isAhead(known, (await manager.streams.info(stream)).state)) return false
  await sleep(RECHECK_MS)
  return isAhead(known, (await manager.streams.info(stream)).state)
}

/**
 * Returns whether the consumer is ahead of its stream. A server that is killed when all messages of a stream are done
 * (2.9.10) may restart their numbers, while the consumer keeps its position: a message with an earlier number would
 * never be delivered, and publishing it again does not store it again as long as duplicates are known.
 */
const isAhead = (consumer: ConsumerInfo, { messages, first_seq, last_seq }: StreamState): boolean =>
  consumer.delivered.stream_seq > last_seq || (messages > 0 && consumer.ack_floor.stream_seq >= first_seq)
