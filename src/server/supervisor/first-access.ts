/** The access that a start gives to those who use the service first: a key, and the link of the first operator. */
import type { ConfigFile } from '../../../schemas/config/file.ts'
import type { Settings } from '../../../schemas/config/settings.ts'
import { printCredits } from '../../../schemas/money.ts'
import { openDatabase } from '../../postgres/database.ts'
import type { Boot } from '../messages.ts'
import { provideFirstKey } from './first-account.ts'
import { provideSignInToken } from './first-operator.ts'

interface FirstAccess {
  readonly key: string | null
  readonly credit: string | null
  readonly signInToken: string | null
}

/** Returns the key and the token of the link, null where there is none, and the balance of the key's account. */
export async function provideFirstAccess(
  { databaseUrl, keys, roles }: Settings,
  boot: Omit<Boot, 'role' | 'index'>,
  config: ConfigFile,
): Promise<FirstAccess> {
  const database = await openDatabase({
    url: boot.databaseUrl,
    masterKey: Buffer.from(boot.masterKey, 'base64'),
    keys,
    maxConnections: 1,
    name: 'tollgate start',
    actor: 'service',
  })
  try {
    // Operators with their own PostgreSQL make their own accounts.
    const isOurs = databaseUrl === null && database.masterKey.replacedAt === null
    const key = isOurs ? await provideFirstKey(database, config.trial_credit) : null
    // A service without a gateway has no console to lead to, and leaves the link to those that have.
    const signInToken = roles.includes('gateway') ? await provideSignInToken(database) : null
    if (key === null) return { key, credit: null, signInToken }
    const credential = await database.keys.findCredential(database.keys.lookupHash(key))
    return { key, credit: credential && printCredits(credential.wallet.balance), signInToken }
  } finally {
    await database.close()
  }
}
