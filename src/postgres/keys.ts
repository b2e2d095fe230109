import type { ApiKey, Credential, KeyKind } from '../../schemas/key.ts'
import type { Credits } from '../../schemas/money.ts'
import { newId } from '../core/ids.ts'
import { generateApiKey, type KeyMaterial, shownPrefix } from '../core/key-material.ts'
import { type AccountRow, accountNotFound, accountOfRow, showAccount } from './accounts.ts'
import { type AgentJson, agentDeleted, agentNotFound, agentOfJson, showAgent } from './agents.ts'
import type { Sql } from './connection.ts'
import { Refusal } from './refusal.ts'
import type { KeyChanges, NewKey } from './types.ts'
import { type WalletJson, walletOfJson } from './wallet-rows.ts'

interface KeyRow {
  id: string
  account_id: string
  name: string
  kind: KeyKind
  prefix: string
  sealed_key: Buffer | null
  allowed_models: string[] | null
  expires_at: Date | null
  enabled: boolean
  revoked_at: Date | null
  agent_id: string | null
  spend_cap: Credits | null
  account_logs: boolean
  created_at: Date
}

const keyOfRow = (row: KeyRow): ApiKey => ({
  id: row.id,
  accountId: row.account_id,
  name: row.name,
  kind: row.kind,
  prefix: row.prefix,
  allowedModels: row.allowed_models,
  expiresAt: row.expires_at,
  enabled: row.enabled,
  revokedAt: row.revoked_at,
  agentId: row.agent_id,
  spendCap: row.spend_cap,
  accountLogs: row.account_logs,
  revealable: row.sealed_key !== null,
  createdAt: row.created_at,
})

const keyNotFound = (keyId: string): Refusal => new Refusal('key_not_found', `There is no key ${keyId}`)

/** An agent of somebody else is not told from none. A key for one that is deleted meanwhile opens nothing. */
async function checkBindable(sql: Sql, agentId: string, accountId: string): Promise<void> {
  const agent = await showAgent(sql, agentId)
  if (agent.accountId !== accountId) throw agentNotFound(agentId)
  if (agent.state === 'deleted') throw agentDeleted(agentId)
}

/** Contract: `Database.createKey`. */
export async function createKey(
  sql: Sql,
  material: KeyMaterial,
  key: NewKey,
): Promise<{ key: ApiKey; raw: string }> {
  const agentId = key.agentId ?? null
  if ((key.kind === 'agent') !== (agentId !== null))
    throw new Refusal('agent_not_found', 'A key of kind agent is bound to an agent, and no other key is')
  if (agentId !== null) await checkBindable(sql, agentId, key.accountId)
  const id = newId('key')
  const raw = generateApiKey()
  const [row] = await sql<KeyRow[]>`
    INSERT INTO api_keys (
      id, account_id, name, kind, prefix, key_hash, sealed_key, allowed_models, expires_at, agent_id, spend_cap,
      account_logs)
    SELECT
      ${id}, id, ${key.name}, ${key.kind ?? 'console'}, ${shownPrefix(raw)}, ${material.lookupHash(raw)},
      ${material.seal(raw, id)}, ${(key.allowedModels ?? null) as string[] | null}::text[],
      ${key.expiresAt ?? null}::timestamptz, ${agentId}::text, ${key.spendCap ?? null}::bigint, ${key.accountLogs ?? false}
    FROM accounts WHERE id = ${key.accountId}
    RETURNING *`
  if (row === undefined) throw accountNotFound(key.accountId)
  return { key: keyOfRow(row), raw }
}

/** Contract: `Database.listKeys`. */
export async function listKeys(sql: Sql, accountId: string): Promise<ApiKey[]> {
  const rows = await sql<KeyRow[]>`SELECT * FROM api_keys WHERE account_id = ${accountId} ORDER BY id`
  if (rows.length === 0) await showAccount(sql, accountId)
  return rows.map(keyOfRow)
}

async function findKeyRow(sql: Sql, keyId: string): Promise<KeyRow> {
  const [row] = await sql<KeyRow[]>`SELECT * FROM api_keys WHERE id = ${keyId}`
  if (row === undefined) throw keyNotFound(keyId)
  return row
}

/** Contract: `Database.showKey`. */
export const showKey = async (sql: Sql, keyId: string): Promise<ApiKey> =>
  keyOfRow(await findKeyRow(sql, keyId))

/** Contract: `Database.revealKey`. */
export async function revealKey(
  sql: Sql,
  material: KeyMaterial,
  keyId: string,
): Promise<{ key: ApiKey; raw: string }> {
  const row = await findKeyRow(sql, keyId)
  if (row.sealed_key === null)
    throw new Refusal('key_not_revealable', `Key ${keyId} is kept only as a hash and cannot be revealed`)
  return { key: keyOfRow(row), raw: material.open(row.sealed_key, keyId) }
}

/** Contract: `Database.revokeKey`. */
export async function revokeKey(sql: Sql, keyId: string): Promise<ApiKey> {
  const [row] = await sql<KeyRow[]>`
    UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE id = ${keyId} RETURNING *`
  if (row === undefined) throw keyNotFound(keyId)
  return keyOfRow(row)
}

/** Contract: `Database.updateKey`. */
export async function updateKey(sql: Sql, keyId: string, changes: KeyChanges): Promise<ApiKey> {
  const { name, allowedModels, expiresAt, enabled, accountLogs } = changes
  const [row] = await sql<KeyRow[]>`
    UPDATE api_keys
    SET name = ${name === undefined ? sql`name` : name},
        allowed_models = ${allowedModels === undefined ? sql`allowed_models` : sql`${allowedModels as string[] | null}::text[]`},
        expires_at = ${expiresAt === undefined ? sql`expires_at` : expiresAt},
        enabled = ${enabled === undefined ? sql`enabled` : enabled},
        account_logs = ${accountLogs === undefined ? sql`account_logs` : accountLogs}
    WHERE id = ${keyId} AND revoked_at IS NULL
    RETURNING *`
  if (row !== undefined) return keyOfRow(row)
  await findKeyRow(sql, keyId)
  throw new Refusal('key_revoked', `Key ${keyId} has been revoked and cannot be changed`)
}

interface CredentialRow extends KeyRow {
  account: Omit<AccountRow, 'created_at'> & { created_at: string }
  wallet: WalletJson
  agent: AgentJson | null
}

/** Contract: `Database.findCredential`. */
export async function findCredential(sql: Sql, lookupHash: Buffer): Promise<Credential | null> {
  const [row] = await sql<CredentialRow[]>`
    SELECT k.*, to_json(a) AS account, to_json(g) AS agent,
      (SELECT to_json(totals) FROM (
        SELECT w.account_id, w.balance::text, w.held::text, w.used::text, w.version::text
      ) AS totals) AS wallet
    FROM api_keys AS k
    JOIN accounts AS a ON a.id = k.account_id
    JOIN wallets AS w ON w.account_id = k.account_id
    LEFT JOIN agents AS g ON g.id = k.agent_id
    WHERE k.key_hash = ${lookupHash}`
  if (row === undefined) return null
  return {
    key: keyOfRow(row),
    account: accountOfRow({ ...row.account, created_at: new Date(row.account.created_at) }),
    wallet: walletOfJson(row.wallet),
    agent: row.agent === null ? null : agentOfJson(row.agent),
  }
}
