/** `tollgate master-key rotate`: in the database, then in the data directory where the key is kept there. */
import type { Settings } from '../../schemas/config/settings.ts'
import { readNextMasterKey, takeNextMasterKey } from '../postgres/accounts/master-key.ts'
import type { MasterKey } from '../postgres/accounts/repository.ts'
import { answerRecord, type Command, type Context } from './context.ts'

export function addMasterKeyCommands(program: Command, { wiring }: Context): void {
  program
    .group('master-key')
    .command('rotate')
    .description('Encrypt everything with a new master key; the service keeps running')
    .option('--end-links', 'Also sign links to files and log cursors with new keys: those handed out end')
    .example('master-key rotate')
    .answers(async ({ endLinks = false }: { endLinks?: boolean }) => {
      const keys = await rotate(await wiring.database(), wiring.settings(), { endLinks })
      const next = 'restart each service with the new master key'
      return answerRecord({ rotated: keys !== null, keys: keys ?? 0, next })
    })
}

/** Returns how many keys were encrypted again; null where the database has the new master key already. */
export async function rotate(
  database: { readonly masterKey: Pick<MasterKey, 'rotate'> },
  { masterKey, newMasterKey, dataDir }: Pick<Settings, 'masterKey' | 'newMasterKey' | 'dataDir'>,
  options: { readonly endLinks: boolean },
): Promise<number | null> {
  if (masterKey !== null) {
    if (newMasterKey === null)
      throw new Error(
        'TOLLGATE_NEW_MASTER_KEY is required because TOLLGATE_MASTER_KEY is set. Make one with: openssl rand -hex 32',
      )
    return database.masterKey.rotate(newMasterKey, options)
  }
  if (newMasterKey !== null)
    throw new Error(
      `TOLLGATE_NEW_MASTER_KEY does not apply: the master key is kept in ${dataDir}, and a new one is made there. Unset it, or set TOLLGATE_MASTER_KEY to the current one as well`,
    )
  // On disk before the database needs it.
  const keys = await database.masterKey.rotate(readNextMasterKey(dataDir), options)
  takeNextMasterKey(dataDir)
  return keys
}
