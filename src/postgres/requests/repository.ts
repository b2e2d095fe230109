/** Answers kept for requests with an idempotency key. */
import { onPool, type Pools, READ_DEADLINE_MS } from '../repository.ts'
import {
  claimIdempotencyKey,
  freeIdempotencyKey,
  purgeIdempotencyRecords,
  storeIdempotentAnswer,
} from './idempotency.ts'

export type IdempotencyRecords = ReturnType<typeof openIdempotencyRecords>

export const openIdempotencyRecords = ({ main }: Pools) => ({
  ...onPool(main, { claimIdempotencyKey }, READ_DEADLINE_MS),
  ...onPool(main, { storeIdempotentAnswer, freeIdempotencyKey, purgeIdempotencyRecords }),
})
