/** Answers kept for requests with an idempotency key, and responses that upstreams keep. */
import type { KnownMasterKey } from '../accounts/master-key.ts'
import { waitWithin } from '../errors.ts'
import { onPool, type Pools, READ_DEADLINE_MS } from '../repository.ts'
import {
  type ClaimOutcome,
  claimKey,
  freeKey,
  type IdempotencyClaim,
  type IdempotencyScope,
  isAnswered,
  purgeRecords,
  type StoredAnswer,
  storeAnswer,
} from './idempotency.ts'
import {
  addToConversation,
  type BegunConversationCall,
  beginConversationCall,
  type ConversationTokens,
  type ConversationToStore,
  findStoredConversation,
  forgetConversation,
  purgeConversationCalls,
  type StoredConversation,
  storeConversation,
} from './stored-conversations.ts'
import {
  findStoredItems,
  findStoredResponse,
  forgetStoredResponse,
  purgeStoredResponses,
  type ResponseToStore,
  type StoredItem,
  type StoredResponse,
  storeResponse,
} from './stored-responses.ts'

export interface IdempotencyRecords {
  claim(claim: IdempotencyClaim): Promise<ClaimOutcome>
  isAnswered(scope: IdempotencyScope, key: string): Promise<boolean>
  store(claim: IdempotencyClaim, answer: StoredAnswer | null, originalRequestId?: string): Promise<void>
  free(claim: IdempotencyClaim): Promise<void>
  purge(): Promise<number>
}

export interface StoredResponses {
  storeResponse(responseToStore: ResponseToStore): Promise<void>
  findStoredResponse(accountId: string, id: string): Promise<StoredResponse | null>
  findStoredItems(accountId: string, ids: readonly string[]): Promise<StoredItem[]>
  storeConversation(conversationToStore: ConversationToStore): Promise<void>
  findStoredConversation(accountId: string, id: string): Promise<StoredConversation | null>
  addToConversation(accountId: string, id: string, tokens: number): Promise<void>
  beginConversationCall(begunConversationCall: BegunConversationCall): Promise<ConversationTokens | null>
  forgetStoredResponse(accountId: string, id: string): Promise<void>
  forgetConversation(accountId: string, id: string): Promise<void>
  purgeStoredResponses(): Promise<number>
  purgeConversationCalls(): Promise<number>
}

export const openStoredResponses = ({ main, rounds }: Pools): StoredResponses => ({
  ...onPool(
    main,
    {
      ...{ storeResponse, findStoredResponse, findStoredItems, storeConversation, findStoredConversation },
      ...{ addToConversation, beginConversationCall },
    },
    READ_DEADLINE_MS,
  ),
  ...onPool(main, { forgetStoredResponse, forgetConversation }),
  ...onPool(rounds, { purgeStoredResponses, purgeConversationCalls }),
})

export const openIdempotencyRecords = (
  { main, rounds }: Pools,
  { material }: KnownMasterKey,
): IdempotencyRecords => ({
  ...onPool(main, { isAnswered }, READ_DEADLINE_MS),
  ...onPool(main, { free: freeKey }),
  ...onPool(rounds, { purge: purgeRecords }),
  claim: (claim) => waitWithin(READ_DEADLINE_MS, claimKey(main, material, claim)),
  store: (...stored) => storeAnswer(main, material, ...stored),
})
