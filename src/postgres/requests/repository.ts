/** Answers kept for requests with an idempotency key, and responses that upstreams keep. */
import { onPool, type Pools, READ_DEADLINE_MS } from '../repository.ts'
import {
  claimIdempotencyKey,
  freeIdempotencyKey,
  isIntentAnswered,
  purgeIdempotencyRecords,
  storeIdempotentAnswer,
} from './idempotency.ts'
import {
  addToConversation,
  beginConversationCall,
  findStoredConversation,
  forgetConversation,
  purgeConversationCalls,
  storeConversation,
} from './stored-conversations.ts'
import {
  findStoredResponse,
  forgetStoredResponse,
  purgeStoredResponses,
  storeResponse,
} from './stored-responses.ts'

export type StoredResponses = ReturnType<typeof openStoredResponses>

export const openStoredResponses = ({ main }: Pools) => ({
  ...onPool(
    main,
    {
      ...{ storeResponse, findStoredResponse, storeConversation, findStoredConversation },
      ...{ addToConversation, beginConversationCall },
    },
    READ_DEADLINE_MS,
  ),
  ...onPool(main, { forgetStoredResponse, forgetConversation, purgeStoredResponses, purgeConversationCalls }),
})

export type IdempotencyRecords = ReturnType<typeof openIdempotencyRecords>

export const openIdempotencyRecords = ({ main }: Pools) => ({
  ...onPool(main, { claimIdempotencyKey, isIntentAnswered }, READ_DEADLINE_MS),
  ...onPool(main, { storeIdempotentAnswer, freeIdempotencyKey, purgeIdempotencyRecords }),
})
