/**
 * Notes which channel keeps a response, so that a later call can go on with it. The end of an answer waits for a note
 * for a moment at most; what PostgreSQL does not take now is tried again, and found in this process meanwhile. See
 * docs/api-rules.md, "Responses".
 */

import { countStoredTokens } from '../../../src/core/pricing/estimate.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type {
  ResponseToStore,
  StoredItem,
  StoredResponse,
} from '../../../src/postgres/requests/stored-responses.ts'
import type { Metered } from '../../../src/protocols/dialect.ts'
import { OutageLog, type PipelineLog } from '../../settlement/retrying.ts'
import type { AdmittedCall } from '../precharge.ts'
import type { CallRecord } from './call-record.ts'
import type { Forwarding } from './deps.ts'
import type { Answer } from './stream-answer.ts'

/** How long the end of an answer waits for the note, so that a call that follows at once finds it in any process. */
const MAX_WAIT_MS = 100
const RETRY_MS = 1_000
/** Beyond this the oldest note is dropped. */
const MAX_PENDING = 10_000

interface NotedResponses {
  readonly responses: {
    storeResponse(response: ResponseToStore): Promise<void>
    findStoredResponse(accountId: string, id: string): Promise<StoredResponse | null>
    findStoredItems(accountId: string, ids: readonly string[]): Promise<StoredItem[]>
    forgetStoredResponse(accountId: string, id: string): Promise<void>
  }
  readonly log: PipelineLog
  readonly pause: (ms: number) => Promise<unknown>
}

const makeKey = (accountId: string, id: string): string => `${accountId} ${id}`

/** A note that is only about a conversation is written under the name of its call. */
const makeNoteKey = ({ accountId, id, conversation }: ResponseToStore): string =>
  makeKey(accountId, id ?? conversation?.requestId ?? '')

/** One instance a process. */
export class ResponseNotes {
  readonly #deps: NotedResponses
  readonly #trouble: OutageLog
  /** Not yet in PostgreSQL, oldest first. */
  readonly #pending = new Map<string, ResponseToStore>()
  #isRetrying = false

  constructor(deps: NotedResponses) {
    this.#deps = deps
    this.#trouble = new OutageLog(deps.log, 'Noting responses')
  }

  /** Resolves once the note is made, or after a moment without it. Never rejects. */
  readonly storeResponse = (response: ResponseToStore): Promise<void> => {
    this.#pending.set(makeNoteKey(response), response)
    if (this.#pending.size > MAX_PENDING) this.#drop()
    if (this.#isRetrying) return Promise.resolve()
    const written = this.#write(response).then((isWritten) => {
      if (!isWritten) void this.#retry()
    })
    return Promise.race([written, this.#deps.pause(MAX_WAIT_MS).then(() => {})])
  }

  readonly findStoredResponse = async (accountId: string, id: string): Promise<StoredResponse | null> =>
    this.#findPending(accountId, id) ?? this.#deps.responses.findStoredResponse(accountId, id)

  readonly findStoredItems = async (accountId: string, ids: readonly string[]): Promise<StoredItem[]> => {
    const stored = new Map(
      (await this.#deps.responses.findStoredItems(accountId, ids)).map((item) => [item.id, item]),
    )
    for (const { accountId: owner, id: responseId, channelId, items } of this.#pending.values())
      if (owner === accountId && responseId !== null && items !== undefined)
        for (const id of items.ids)
          if (ids.includes(id)) stored.set(id, { id, responseId, channelId, tokens: items.tokens })
    return [...stored.values()]
  }

  readonly forgetStoredResponse = async (accountId: string, id: string): Promise<void> => {
    this.#pending.delete(makeKey(accountId, id))
    await this.#deps.responses.forgetStoredResponse(accountId, id)
  }

  /** Tries once more to write what is pending. */
  async close(): Promise<void> {
    await Promise.all([...this.#pending.values()].map((response) => this.#write(response)))
    if (this.#pending.size > 0)
      this.#deps.log.warn(
        { responses: this.#pending.size },
        'Lost notes of responses: no call can go on with them',
      )
  }

  #findPending(accountId: string, id: string): StoredResponse | null {
    const note = this.#pending.get(makeKey(accountId, id))
    return note?.id === id ? { channelId: note.channelId, upstreamId: id, tokens: note.tokens } : null
  }

  async #write(response: ResponseToStore): Promise<boolean> {
    try {
      await this.#deps.responses.storeResponse(response)
    } catch (error) {
      this.#trouble.noteFailure(error)
      return false
    }
    this.#trouble.noteSuccess()
    const key = makeNoteKey(response)
    if (this.#pending.get(key) === response) this.#pending.delete(key)
    return true
  }

  /** Writes what is pending, one after the other, until nothing is. */
  async #retry(): Promise<void> {
    if (this.#isRetrying) return
    this.#isRetrying = true
    for (let [next] = this.#pending.values(); next !== undefined; [next] = this.#pending.values())
      if (!(await this.#write(next))) await this.#deps.pause(RETRY_MS)
    this.#isRetrying = false
  }

  #drop(): void {
    const [oldest] = this.#pending
    if (oldest === undefined) return
    this.#pending.delete(oldest[0])
    this.#deps.log.warn(
      { channel: oldest[1].channelId },
      'Dropped the note of a response: no call can go on with it',
    )
  }
}

/**
 * Notes which channel keeps a response, before the end of the answer leaves: the next call may go on with it.
 * Returns null where the upstream keeps nothing: no promise is made. The promise never rejects.
 */
export function noteStoredResponse(
  { storeResponse }: Forwarding,
  { call, known, request, model }: AdmittedCall,
  { channel }: Route,
  answer: Answer,
): Promise<void> | null {
  const days = channel.keeps_responses_days
  const { state } = call
  if (state === undefined) return null
  const { conversation } = state
  const isKept = state.isStored && days > 0
  const { responseId = '', itemIds = [], usage, isUsageWhole } = answer.readMeter()
  const id = isKept && responseId !== '' ? responseId : null
  if (id === null && conversation === null) return null
  const reported = countReportedTokens(answer.readMeter())
  return storeResponse({
    accountId: known.account.id,
    id,
    channelId: channel.id,
    tokens: reported ?? countStoredTokens(model.entry, call),
    items: { ids: itemIds, tokens: isUsageWhole && usage !== null ? usage.output : null },
    days,
    conversation:
      conversation === null
        ? null
        : { id: conversation, requestId: request.requestId, reported, isStored: true },
  })
}

/** Returns what the next call reads of this one, by its report; null without a whole one. No prompt has no tokens. */
const countReportedTokens = ({ usage, isUsageWhole }: Metered): number | null =>
  isUsageWhole && usage !== null && usage.prompt > 0 ? usage.prompt + usage.output : null

/**
 * Notes the end of a call that did not succeed in its conversation: what its upstream may have kept of it counts in full.
 */
export function noteUnfinishedCall(
  { storeResponse }: Forwarding,
  { call, known, request }: AdmittedCall,
  { ending, attempt, metered }: CallRecord,
): void {
  const id = call.state?.conversation ?? null
  if (id === null || ending.kind === 'success') return
  const status = attempt?.status ?? 0
  const isRefused = ending.kind === 'failed' && status >= 400 && status < 500
  const isStored = attempt !== null && ending.kind !== 'refused' && !isRefused
  const reported = countReportedTokens(metered)
  const conversation = { id, requestId: request.requestId, reported, isStored }
  void storeResponse({
    ...{ accountId: known.account.id, id: null, channelId: '', tokens: null, days: 0, conversation },
  })
}

/** Calls `end` once the note is made; at once where there is none. */
export function runAfter(stored: Promise<void> | null, end: () => void): void {
  if (stored === null) end()
  else void stored.then(end)
}
