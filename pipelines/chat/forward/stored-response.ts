/** Notes which channel keeps a response, before the end of the answer leaves: the next call may go on with it. */
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { AdmittedCall } from '../../stages/billing/precharge.ts'
import type { Answer } from './answers.ts'
import type { ForwardDeps } from './deps.ts'

/** Returns null where the upstream keeps nothing: no promise is made. The promise never rejects. */
export function noteStored(
  { storeResponse }: Pick<ForwardDeps, 'storeResponse'>,
  { call, known }: AdmittedCall,
  { channel }: Route,
  answer: Answer,
): Promise<void> | null {
  const days = channel.keeps_responses_days
  const { state } = call
  if (state === undefined) return null
  const { conversation } = state
  const isKept = state.isStored && days > 0
  if (!isKept && conversation === null) return null
  const { responseId = '', usage, isUsageWhole } = answer.metered()
  const id = isKept && responseId !== '' ? responseId : null
  // Without a report nothing is known of how long the conversation is by now.
  const isMeasured = conversation !== null && isUsageWhole
  if (id === null && !isMeasured) return null
  const tokens = (usage?.prompt ?? 0) + (usage?.output ?? 0)
  return storeResponse({
    accountId: known.account.id,
    id,
    channelId: channel.id,
    tokens,
    days,
    conversation: isMeasured ? conversation : null,
  })
}

/** Calls `end` once the note is made; at once where there is none. */
export function afterwards(stored: Promise<void> | null, end: () => void): void {
  if (stored === null) end()
  else void stored.then(end)
}
