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
  if (call.state === undefined || !call.state.isStored || days === 0) return null
  const { responseId = '', usage } = answer.metered()
  if (responseId === '') return null
  const tokens = (usage?.prompt ?? 0) + (usage?.output ?? 0)
  return storeResponse({ accountId: known.account.id, id: responseId, channelId: channel.id, tokens, days })
}

/** Calls `end` once the note is made; at once where there is none. */
export function afterwards(stored: Promise<void> | null, end: () => void): void {
  if (stored === null) end()
  else void stored.then(end)
}
