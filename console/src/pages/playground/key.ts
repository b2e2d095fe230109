/** The key of the playground: made when it is first needed, kept in the tab, expired after an hour. */
import { request } from '../../api/client.ts'

const LIFETIME_MS = 60 * 60 * 1000
const RENEWED_BEFORE_MS = 5 * 60 * 1000

interface KeptKey {
  readonly key: string
  /** Epoch milliseconds. */
  readonly until: number
}

/** What the playground calls: the models of an account, or the draft of one of its agents. */
export interface Callee {
  readonly accountId: string
  readonly agentId?: string
}

const nameKey = ({ accountId, agentId }: Callee) => `playground key of ${agentId ?? accountId}`

function readKeptKey(callee: Callee): KeptKey | null {
  const kept = sessionStorage.getItem(nameKey(callee))
  return kept === null ? null : JSON.parse(kept)
}

/** Forgets a refused key. */
export const forgetPlaygroundKey = (callee: Callee): void => sessionStorage.removeItem(nameKey(callee))

/** Returns the key. @throws ApiError */
export async function findOrCreateKey(callee: Callee): Promise<string> {
  const { accountId, agentId } = callee
  const kept = readKeptKey(callee)
  if (kept !== null && Date.now() < kept.until) return kept.key
  const ends = Date.now() + LIFETIME_MS
  const { key } = await request('createKey', {
    account_id: accountId,
    name: 'Playground',
    expires_at: new Date(ends).toISOString(),
    ...(agentId !== undefined && { kind: 'agent', agent_id: agentId, opens_draft: true }),
  })
  const made: KeptKey = { key, until: ends - RENEWED_BEFORE_MS }
  sessionStorage.setItem(nameKey(callee), JSON.stringify(made))
  return key
}
