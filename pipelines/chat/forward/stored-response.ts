/** Notes which channel keeps a response, before the end of the answer leaves: the next call may go on with it. */
import { storedTokens } from '../../../src/core/pricing/estimate.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { Metered } from '../../../src/protocols/dialect.ts'
import type { AdmittedCall } from '../precharge.ts'
import type { Answer } from './answers.ts'
import type { CallRecord } from './call-record.ts'
import type { ForwardDeps } from './deps.ts'

type NotesDeps = Pick<ForwardDeps, 'storeResponse'>

/** Returns null where the upstream keeps nothing: no promise is made. The promise never rejects. */
export function noteStored(
  { storeResponse }: NotesDeps,
  { call, known, request, model }: AdmittedCall,
  { channel }: Route,
  answer: Answer,
): Promise<void> | null {
  const days = channel.keeps_responses_days
  const { state } = call
  if (state === undefined) return null
  const { conversation } = state
  const isKept = state.isStored && days > 0
  if (!isKept && conversation === null) return null
  const { responseId = '' } = answer.metered()
  const id = isKept && responseId !== '' ? responseId : null
  if (id === null && conversation === null) return null
  const reported = reportedTokens(answer.metered())
  return storeResponse({
    accountId: known.account.id,
    id,
    channelId: channel.id,
    tokens: reported ?? storedTokens(model.entry, call),
    days,
    conversation:
      conversation === null
        ? null
        : { id: conversation, requestId: request.requestId, reported, isStored: true },
  })
}

/** Returns what the next call reads of this one, by its report; null without a whole one. No prompt has no tokens. */
const reportedTokens = ({ usage, isUsageWhole }: Metered): number | null =>
  isUsageWhole && usage !== null && usage.prompt > 0 ? usage.prompt + usage.output : null

/**
 * Notes the end of a call that did not succeed in its conversation: what its upstream may have kept of it counts in full.
 */
export function noteUnfinished(
  { storeResponse }: NotesDeps,
  { call, known, request }: AdmittedCall,
  { ending, attempt, metered }: Pick<CallRecord, 'ending' | 'attempt' | 'metered'>,
): void {
  const id = call.state?.conversation ?? null
  if (id === null || ending.kind === 'success') return
  const status = attempt?.status ?? 0
  const isRefused = ending.kind === 'failed' && status >= 400 && status < 500
  const isStored = attempt !== null && ending.kind !== 'refused' && !isRefused
  const reported = reportedTokens(metered)
  const conversation = { id, requestId: request.requestId, reported, isStored }
  void storeResponse({
    ...{ accountId: known.account.id, id: null, channelId: '', tokens: null, days: 0, conversation },
  })
}

/** Calls `end` once the note is made; at once where there is none. */
export function afterwards(stored: Promise<void> | null, end: () => void): void {
  if (stored === null) end()
  else void stored.then(end)
}
