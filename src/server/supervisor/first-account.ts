/** The account and key that a fresh service is born with, so that the first call needs no set-up. */
import type { Credits } from '../../../schemas/money.ts'
import type { Accounts, Keys } from '../../postgres/accounts/repository.ts'

export const FIRST_ACCOUNT_NAME = 'first account'
const FIRST_KEY_NAME = 'first key'
/** The first key is among the oldest of its account. */
const FIRST_KEYS = 100

/**
 * Returns the raw first key: creates it when there is no account at all, decrypts it when an earlier start created it.
 * Returns null when the operator has taken over: the first account or its key is deleted, off or renamed.
 */
export async function provideFirstKey(
  database: { readonly accounts: Accounts; readonly keys: Keys },
  trialCredit: Credits,
): Promise<string | null> {
  const accounts = await database.accounts.list()
  if (accounts.length === 0) {
    const { account } = await database.accounts.create({ name: FIRST_ACCOUNT_NAME, credit: trialCredit })
    const { raw } = await database.keys.create({ accountId: account.id, name: FIRST_KEY_NAME })
    return raw
  }
  const first = accounts.find(({ account }) => account.name === FIRST_ACCOUNT_NAME && account.enabled)
  if (first === undefined) return null
  const keys = await database.keys.list(first.account.id, { limit: FIRST_KEYS })
  const key = keys.find((k) => k.name === FIRST_KEY_NAME && k.enabled && k.revokedAt === null && k.revealable)
  return key === undefined ? null : (await database.keys.reveal(key.id)).raw
}
