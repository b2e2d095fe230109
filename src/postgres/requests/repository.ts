/** Answers kept for requests with an idempotency key, and responses that upstreams keep. */
import type { KnownMasterKey } from '../accounts/master-key.ts'
import { waitWithin } from '../errors.ts'
import { onPool, type Pools, READ_DEADLINE_MS } from '../repository.ts'
import * as idempotency from './idempotency.ts'
import * as storedConversations from './stored-conversations.ts'
import * as storedResponses from './stored-responses.ts'

export interface IdempotencyRecords {
  claim(claim: idempotency.IdempotencyClaim): Promise<idempotency.ClaimOutcome>
  isAnswered(scope: idempotency.IdempotencyScope, key: string): Promise<boolean>
  store(
    claim: idempotency.IdempotencyClaim,
    answer: idempotency.StoredAnswer | null,
    originalRequestId?: string,
  ): Promise<void>
  free(claim: idempotency.IdempotencyClaim): Promise<void>
  purge(): Promise<number>
}

export interface StoredResponses {
  storeResponse(responseToStore: storedResponses.ResponseToStore): Promise<void>
  findStoredResponse(accountId: string, id: string): Promise<storedResponses.StoredResponse | null>
  findStoredItems(accountId: string, ids: readonly string[]): Promise<storedResponses.StoredItem[]>
  storeConversation(conversationToStore: storedConversations.ConversationToStore): Promise<void>
  findStoredConversation(
    accountId: string,
    id: string,
  ): Promise<storedConversations.StoredConversation | null>
  addToConversation(accountId: string, id: string, tokens: number): Promise<void>
  beginConversationCall(
    begunConversationCall: storedConversations.BegunConversationCall,
  ): Promise<storedConversations.ConversationTokens | null>
  forgetStoredResponse(accountId: string, id: string): Promise<void>
  forgetConversation(accountId: string, id: string): Promise<void>
  purgeStoredResponses(): Promise<number>
  purgeConversationCalls(): Promise<number>
}

export const openStoredResponses = ({ main, rounds }: Pools): StoredResponses => ({
  ...onPool(
    main,
    {
      storeResponse: storedResponses.storeResponse,
      findStoredResponse: storedResponses.findStoredResponse,
      findStoredItems: storedResponses.findStoredItems,
      storeConversation: storedConversations.storeConversation,
      findStoredConversation: storedConversations.findStoredConversation,
      addToConversation: storedConversations.addToConversation,
      beginConversationCall: storedConversations.beginConversationCall,
    },
    READ_DEADLINE_MS,
  ),
  ...onPool(main, {
    forgetStoredResponse: storedResponses.forgetStoredResponse,
    forgetConversation: storedConversations.forgetConversation,
  }),
  ...onPool(rounds, {
    purgeStoredResponses: storedResponses.purgeStoredResponses,
    purgeConversationCalls: storedConversations.purgeConversationCalls,
  }),
})

export const openIdempotencyRecords = (
  { main, rounds }: Pools,
  { material }: KnownMasterKey,
): IdempotencyRecords => ({
  ...onPool(main, { isAnswered: idempotency.isAnswered }, READ_DEADLINE_MS),
  ...onPool(main, { free: idempotency.freeKey }),
  ...onPool(rounds, { purge: idempotency.purgeRecords }),
  claim: (claim) => waitWithin(READ_DEADLINE_MS, idempotency.claimKey(main, material, claim)),
  store: (...stored) => idempotency.storeAnswer(main, material, ...stored),
})
