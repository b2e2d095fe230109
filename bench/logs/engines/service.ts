/** The whole service on the built rows, and keys of the queried accounts. */
import { generateToken, hashToken } from '../../../src/core/keys/bearer-token.ts'
import type { Sql } from '../../../src/postgres/connection.ts'
import { openDatabase } from '../../../src/postgres/database.ts'
import { MASTER_KEY, startTollgate } from '../../harness/service.ts'

const LINK_MINUTES = 15
/** The bench makes no calls; a configuration must have a channel. */
const CONFIGURATION = {
  models: [{ id: 'none', pricing: { unit: '1M_tokens', input: '1', output: '1' } }],
  channels: [
    {
      id: 'nowhere',
      protocol: 'chat-completions',
      base_url: 'http://127.0.0.1:9/v1',
      api_key: 'none',
      models: { none: 'none' },
    },
  ],
}

interface ServiceWanted {
  /** For its data. */
  readonly folder: string
  readonly databaseUrl: string
  readonly clickhouseUrl: string
}

export interface RunningService {
  readonly baseUrl: string
  /** Returns a key that may read all calls of the account. Creates the account on first use. */
  makeKey(accountId: string): Promise<string>
  /** Returns a link that signs in an owner of the account. */
  makeSignInLink(accountId: string): Promise<string>
  stop(): Promise<void>
}

const ensureAccount = async (sql: Sql, id: string): Promise<void> => {
  await sql`INSERT INTO accounts (id, name, kind) VALUES (${id}, 'bench', 'organization') ON CONFLICT DO NOTHING`
  await sql`INSERT INTO wallets (account_id) VALUES (${id}) ON CONFLICT DO NOTHING`
}

/** Starts the service. It ends with the bench. */
export const startService = async (wanted: ServiceWanted, sql: Sql): Promise<RunningService> => {
  const { folder, databaseUrl, clickhouseUrl } = wanted
  const { child, record } = await startTollgate({
    folder,
    configuration: CONFIGURATION,
    env: { DATABASE_URL: databaseUrl, CLICKHOUSE_URL: clickhouseUrl },
  })
  const database = await openDatabase({
    url: databaseUrl,
    masterKey: MASTER_KEY,
    maxConnections: 1,
    name: 'bench',
  })
  return {
    baseUrl: record.base_url!,
    makeKey: async (accountId) => {
      await ensureAccount(sql, accountId)
      return (await database.keys.create({ accountId, name: 'bench', accountLogs: true })).raw
    },
    makeSignInLink: async (accountId) => {
      await ensureAccount(sql, accountId)
      const email = `bench-${Date.now()}@example.com`
      const user = await database.users.create({ email, name: 'bench', installationRole: null, credit: 0n })
      await database.organizations.putMember(accountId, user.accountId, 'owner')
      const token = generateToken()
      await database.sessions.createLink({
        tokenHash: hashToken(token),
        userId: user.id,
        minutes: LINK_MINUTES,
      })
      return `${record.base_url}/console/sign-in#link=${token}`
    },
    stop: async () => {
      await database.close()
      await child.stop()
    },
  }
}
