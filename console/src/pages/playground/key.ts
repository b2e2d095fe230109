/** The key with which the playground calls: made when first needed, kept by the tab, ended after an hour. */
import type { createKey } from '../../../../schemas/management/accounts/keys.ts'
import { request } from '../../api/client.ts'

const LIFETIME_MS = 60 * 60 * 1000
const RENEWED_BEFORE_MS = 5 * 60 * 1000

interface KeptKey {
  readonly key: string
  /** Epoch milliseconds. */
  readonly until: number
}

const nameOf = (accountId: string) => `playground key of ${accountId}`

function keptKey(accountId: string): KeptKey | null {
  const kept = sessionStorage.getItem(nameOf(accountId))
  return kept === null ? null : JSON.parse(kept)
}

/** Forgets the key: it was refused. */
export const forgetPlaygroundKey = (accountId: string): void => sessionStorage.removeItem(nameOf(accountId))

/** Returns the key for an account. @throws ApiError */
export async function playgroundKey(accountId: string): Promise<string> {
  const kept = keptKey(accountId)
  if (kept !== null && Date.now() < kept.until) return kept.key
  const ends = Date.now() + LIFETIME_MS
  const { key } = await request<typeof createKey>('POST', '/keys', {
    account_id: accountId,
    name: 'Playground',
    expires_at: new Date(ends).toISOString(),
  })
  const made: KeptKey = { key, until: ends - RENEWED_BEFORE_MS }
  sessionStorage.setItem(nameOf(accountId), JSON.stringify(made))
  return key
}
