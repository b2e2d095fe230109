/**
 * Counts a call that goes on with a conversation among what is stored there, from before its estimate until its end tells
 * what it added: no other call reads it uncounted, whatever becomes of this one. Any other call passes at once. See
 * docs/api-rules.md, "Conversations".
 */
import { storedTokens } from '../../../src/core/pricing/estimate.ts'
import type { StoredResponses } from '../../../src/postgres/requests/repository.ts'
import { fromAbortable, type Stage } from '../../calls/pipeline.ts'
import type { PricedCall } from '../select-model.ts'
import { found, noSuchConversation, withKept } from './follow-state.ts'

export interface ConversationCallDeps {
  readonly conversations: Pick<StoredResponses, 'beginConversationCall'>
  /** Notes the end of the call in its conversation. Never rejects. */
  readonly storeResponse: StoredResponses['storeResponse']
}

/** A call whose process was killed counts for so long: longer than one can last. */
const LIVE_HOURS = 2
const BACKGROUND_HOURS = 48

/** A call among those of its conversation. */
class ConversationCall {
  #isHandedOver = false

  /** It goes to an upstream: what becomes of it there is noted at its end. */
  handOver(): void {
    this.#isHandedOver = true
  }

  get isHandedOver(): boolean {
    return this.#isHandedOver
  }
}

export interface CountedCall extends PricedCall {
  readonly inConversation?: ConversationCall
}

/** @throws Failure `not_found`, `service_unavailable` */
export const countInConversation =
  <C extends PricedCall>(deps: ConversationCallDeps): Stage<C, C & CountedCall> =>
  (call: C) => {
    const id = call.call.state?.conversation ?? null
    return id === null ? call : fromAbortable(() => begun(deps, call, id))
  }

async function begun<C extends PricedCall>(
  { conversations, storeResponse }: ConversationCallDeps,
  call: C,
  id: string,
): Promise<C & CountedCall> {
  const { known, request, model } = call
  const accountId = known.account.id
  const { requestId } = request
  const inConversation = new ConversationCall()
  const beginning = conversations.beginConversationCall({
    ...{ accountId, id, requestId },
    tokens: storedTokens(model.entry, call.call),
    hours: call.call.state?.isBackground === true ? BACKGROUND_HOURS : LIVE_HOURS,
  })
  // A call that is refused, or whose client leaves before it goes upstream, adds nothing.
  const withdraw = () => {
    if (inConversation.isHandedOver) return
    const conversation = { id, requestId, reported: null, isStored: false }
    void storeResponse({ accountId, id: null, channelId: '', tokens: null, days: 0, conversation })
  }
  call.ends.add(() => void beginning.then(withdraw, () => {}))
  const kept = await found(beginning)
  if (kept === null) throw noSuchConversation(id)
  return { ...withKept(call, kept.tokens), inConversation }
}
