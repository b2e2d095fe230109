import type { AgentFile } from '../../../schemas/accounts/agent.ts'
import type { ApiKey, Credential, KeyKind, KeyLimits } from '../../../schemas/accounts/key.ts'
import type { Grant } from '../../../schemas/accounts/organization.ts'
import type { Credits } from '../../../schemas/money.ts'
import { newId } from '../../core/keys/ids.ts'
import { generateApiKey, type KeyMaterial, shownPrefix } from '../../core/keys/material.ts'
import { type BudgetPeriodsJson, parseBudgetPeriods } from '../billing/budget-rows.ts'
import { Refusal } from '../billing/refusal.ts'
import { parseWallet, type WalletJson } from '../billing/wallet-rows.ts'
import { addWithin } from '../collections.ts'
import type { Queryable, Sql } from '../connection.ts'
import type { Listing } from '../listing.ts'
import { inTransaction, type Transaction } from '../transaction.ts'
import { type AccountRow, accountNotFound, showAccount, toAccount } from './accounts.ts'
import { type AgentJson, agentDeleted, agentNotFound, parseAgent, showAgent } from './agents.ts'
import { recordOperation } from './audit-record.ts'
import { type FormerSecretJson, formerSecret, toFormerSecret, toRotatedSecret } from './former-secrets.ts'
import { notGrantable, setMaxPrice, setSpendCap } from './key-money.ts'
import { assertCurrent, keepsHashesOnly } from './master-key.ts'

export interface NewKey {
  readonly accountId: string
  readonly name: string
  /** Default: console. */
  readonly kind?: KeyKind
  /** The agent of an agent key: one of the same account that is not deleted. Other kinds have none. */
  readonly agentId?: string | null
  /** Default null: every model. */
  readonly allowedModels?: readonly string[] | null
  readonly expiresAt?: Date | null
  /** Of an employee or agent key. Default null: limited only by the wallet. */
  readonly spendCap?: Credits | null
  /** Only of a console key. */
  readonly accountLogs?: boolean
  /** Default null: no limit besides the account's. */
  readonly requestsPerMinute?: number | null
  readonly concurrency?: number | null
  /** Default null: from anywhere. */
  readonly allowedAddresses?: readonly string[] | null
  /** Default null: a call may cost anything. */
  readonly maxPrice?: Credits | null
  /** Of an agent key: calls the draft of its agent where there is one. Default: false. */
  readonly opensDraft?: boolean
}

/** An absent field stays unchanged. */
export interface KeyChanges {
  readonly name?: string
  readonly allowedModels?: readonly string[] | null
  readonly expiresAt?: Date | null
  readonly enabled?: boolean
  readonly accountLogs?: boolean
  readonly spendCap?: Credits | null
  readonly requestsPerMinute?: number | null
  readonly concurrency?: number | null
  readonly allowedAddresses?: readonly string[] | null
  readonly maxPrice?: Credits | null
}

interface KeyRow {
  id: string
  account_id: string
  name: string
  kind: KeyKind
  prefix: string
  sealed_key: Buffer | null
  allowed_models: string[] | null
  expires_at: Date | null
  requests_per_minute: number | null
  concurrency: number | null
  allowed_addresses: string[] | null
  enabled: boolean
  revoked_at: Date | null
  agent_id: string | null
  account_logs: boolean
  opens_draft: boolean
  created_at: Date
  granted: GrantJson | null
  max_price?: string | null
  former?: FormerSecretJson | null
  hash_only?: boolean
}

/** Amounts as text, because JSON numbers lose digits. */
interface GrantJson {
  member_id: string | null
  approved_by: string | null
  spend_cap: string | null
  spent: string
  version: string
}

/**
 * Returns the grant, the former secret and the highest price of the key `k` of a statement, and whether keys may be
 * revealed at all.
 */
const selectGrant = (sql: Queryable) => sql`(
  SELECT to_json(fields) FROM (
    SELECT member_id, approved_by, spend_cap::text, spent::text, version::text FROM grants WHERE key_id = k.id
  ) AS fields) AS granted, (SELECT max_price::text FROM key_max_prices WHERE key_id = k.id) AS max_price,
  ${formerSecret(sql)}, (SELECT hash_only FROM key_storage) AS hash_only`

const toGrant = ({ id, account_id, granted: found }: KeyRow): Grant | null =>
  found && {
    keyId: id,
    accountId: account_id,
    memberId: found.member_id,
    approvedBy: found.approved_by,
    spendCap: found.spend_cap === null ? null : BigInt(found.spend_cap),
    spent: BigInt(found.spent),
    version: BigInt(found.version),
  }

const toLimits = ({ requests_per_minute: requestsPerMinute, concurrency }: KeyRow): KeyLimits | null =>
  requestsPerMinute === null && concurrency === null ? null : { requestsPerMinute, concurrency }

const toKey = (row: KeyRow): ApiKey => ({
  id: row.id,
  accountId: row.account_id,
  name: row.name,
  kind: row.kind,
  prefix: row.prefix,
  allowedModels: row.allowed_models,
  expiresAt: row.expires_at,
  limits: toLimits(row),
  maxPrice: row.max_price == null ? null : BigInt(row.max_price),
  allowedAddresses: row.allowed_addresses,
  enabled: row.enabled,
  revokedAt: row.revoked_at,
  agentId: row.agent_id,
  grant: toGrant(row),
  accountLogs: row.account_logs,
  opensDraft: row.opens_draft,
  revealable: row.sealed_key !== null && !row.hash_only,
  formerSecret: toFormerSecret(row.former),
  createdAt: row.created_at,
})

export const keyNotFound = (keyId: string): Refusal =>
  new Refusal('key_not_found', `There is no key ${keyId}`)

/** Returns whether a kind has a grant: the account's own keys spend from the wallet without one. */
const isGranted = (kind: KeyKind): boolean => kind === 'employee' || kind === 'agent'

/** Refuses a kind that may not read the account's log. See docs/api-rules.md, "Call log list". */
function assertMayReadAccount(kind: KeyKind): void {
  if (kind !== 'console')
    throw new Refusal(
      'account_logs_not_allowed',
      `A key of kind ${kind} cannot read the logs of the whole account: only console keys may`,
    )
}

export interface CreatedKey {
  readonly key: ApiKey
  readonly raw: string
}

/**
 * Checks the agent of a new key. One of another account counts as missing. A key for one that is deleted meanwhile
 * opens nothing.
 */
export async function checkBindable(sql: Queryable, agentId: string, accountId: string): Promise<void> {
  const agent = await showAgent(sql, agentId)
  if (agent.accountId !== accountId) throw agentNotFound(agentId)
  if (agent.state === 'deleted') throw agentDeleted(agentId)
}

/** The member of a key that was requested. */
interface Grantee {
  readonly memberId: string
  readonly approvedBy: string
}

/**
 * Creates a key. `raw` is the key itself: later only `revealKey` returns it.
 * @throws Refusal `agent_not_found`, `agent_deleted`, `not_grantable`, `account_logs_not_allowed`, `draft_not_allowed`,
 *   `limit_reached`, `wrong_master_key` where the master key was replaced meanwhile.
 */
export const createKey = (sql: Sql, material: KeyMaterial, key: NewKey): Promise<CreatedKey> =>
  inTransaction(sql, (transaction) => createKeyIn(transaction, material, key, null))

/** Creates a key as part of the caller's transaction. @throws Refusal as `createKey` does */
export const createKeyIn = (
  sql: Queryable,
  material: KeyMaterial,
  key: NewKey,
  grantee: Grantee | null,
): Promise<CreatedKey> => {
  const { accountId } = key
  const entries = (present: Transaction) =>
    present`SELECT FROM api_keys WHERE account_id = ${accountId} AND revoked_at IS NULL`
  return addWithin(sql, { limit: 'keys_per_account', ownerId: accountId, entries }, (transaction) =>
    insertKey(transaction, material, key, grantee),
  )
}

async function insertKey(sql: Queryable, material: KeyMaterial, key: NewKey, grantee: Grantee | null) {
  const { kind = 'console', agentId = null, spendCap = null, accountLogs = false, opensDraft = false } = key
  if ((kind === 'agent') !== (agentId !== null))
    throw new Refusal('agent_not_found', 'A key of kind agent is bound to an agent, and no other key is')
  if (spendCap !== null && !isGranted(kind)) throw notGrantable(`A key of kind ${kind}`)
  if (accountLogs) assertMayReadAccount(kind)
  if (opensDraft && agentId === null)
    throw new Refusal('draft_not_allowed', `A key of kind ${kind} has no agent whose draft it could call`)
  if (agentId !== null) await checkBindable(sql, agentId, key.accountId)
  const isHashOnly = await keepsHashesOnly(sql)
  if (!isHashOnly) await assertCurrent(sql, material)
  const id = newId('key')
  const raw = generateApiKey()
  const [row] = await sql<KeyRow[]>`
    INSERT INTO api_keys (
      id, account_id, name, kind, prefix, key_hash, sealed_key, allowed_models, expires_at, agent_id, account_logs,
      opens_draft, requests_per_minute, concurrency, allowed_addresses)
    SELECT
      ${id}, id, ${key.name}, ${kind}, ${shownPrefix(raw)}, ${material.lookupHash(raw)},
      ${isHashOnly ? null : material.seal(raw, id)}, ${(key.allowedModels ?? null) as string[] | null}::text[],
      ${key.expiresAt ?? null}::timestamptz, ${agentId}::text, ${accountLogs},
      ${opensDraft}, ${key.requestsPerMinute ?? null}::integer, ${key.concurrency ?? null}::integer,
      ${(key.allowedAddresses ?? null) as string[] | null}::text[]
    FROM accounts WHERE id = ${key.accountId}
    RETURNING *, NULL AS granted`
  if (row === undefined) throw accountNotFound(key.accountId)
  if (isGranted(kind))
    await sql`
      INSERT INTO grants (key_id, account_id, member_id, approved_by, spend_cap)
      VALUES (${id}, ${key.accountId}, ${grantee?.memberId ?? null}, ${grantee?.approvedBy ?? null}, ${spendCap})`
  const { maxPrice = null } = key
  if (maxPrice !== null) await setMaxPrice(sql, row, maxPrice)
  const isPlain = !isGranted(kind) && maxPrice === null
  return { key: toKey(isPlain ? row : await findKeyRow(sql, id)), raw }
}

/** An account may have a million keys. */
export interface KeyListing extends Listing {
  /** Only those of this member. */
  readonly memberId?: string | null
}

/** Returns keys of an account in the order of their ids. */
export async function listKeys(
  sql: Sql,
  accountId: string,
  { after = null, limit = null, memberId = null }: KeyListing = {},
): Promise<ApiKey[]> {
  const rows = await sql<KeyRow[]>`
    SELECT k.*, ${selectGrant(sql)} FROM api_keys AS k
    WHERE k.account_id = ${accountId}
      ${after === null ? sql`` : sql`AND k.id > ${after}`}
      ${memberId === null ? sql`` : sql`AND k.id IN (SELECT key_id FROM grants WHERE account_id = ${accountId} AND member_id = ${memberId})`}
    ORDER BY k.id LIMIT ${limit}`
  if (rows.length === 0) await showAccount(sql, accountId)
  return rows.map(toKey)
}

/** Returns the keys that have spent this part of their cap or more, and are not revoked, in the order of their ids. */
export async function listKeysNearCap(
  sql: Sql,
  accountId: string,
  { percent, limit = null, memberId = null }: KeyListing & { readonly percent: bigint },
): Promise<ApiKey[]> {
  const rows = await sql<KeyRow[]>`
    SELECT k.*, ${selectGrant(sql)} FROM api_keys AS k
    WHERE k.revoked_at IS NULL AND k.id IN (
      SELECT key_id FROM grants
      WHERE account_id = ${accountId} AND spend_cap IS NOT NULL AND spent::numeric * 100 >= spend_cap::numeric * ${percent}
        ${memberId === null ? sql`` : sql`AND member_id = ${memberId}`})
    ORDER BY k.id LIMIT ${limit}`
  return rows.map(toKey)
}

/** The name of a key, for reports. */
export interface NamedKey {
  readonly name: string
  /** The member who holds it; null without one. */
  readonly memberId: string | null
}

/** Returns names and members by id, of those keys that exist; revoked ones too. */
export async function readNamedKeys(
  sql: Queryable,
  keyIds: readonly string[],
): Promise<ReadonlyMap<string, NamedKey>> {
  const rows = await sql<{ id: string; name: string; memberId: string | null }[]>`
    SELECT k.id, k.name, g.member_id AS "memberId" FROM api_keys AS k LEFT JOIN grants AS g ON g.key_id = k.id
    WHERE k.id = ANY (${keyIds as string[]}::text[])`
  return new Map(rows.map(({ id, ...named }) => [id, named]))
}

async function findKeyRow(sql: Queryable, keyId: string): Promise<KeyRow> {
  const [row] = await sql<KeyRow[]>`SELECT k.*, ${selectGrant(sql)} FROM api_keys AS k WHERE k.id = ${keyId}`
  if (row === undefined) throw keyNotFound(keyId)
  return row
}

/** @throws Refusal `key_not_found` */
export const showKey = async (sql: Queryable, keyId: string): Promise<ApiKey> =>
  toKey(await findKeyRow(sql, keyId))

const notRevealable = ({ id, hash_only }: KeyRow): Refusal =>
  new Refusal(
    'key_not_revealable',
    `Key ${id} cannot be revealed: ${hash_only ? 'keys are kept only as hashes here (TOLLGATE_KEYS=hash)' : 'it is kept only as a hash'}. Create a new key, and revoke this one`,
  )

/**
 * Reveals a key and records that.
 * @throws Refusal `key_not_revealable` for a key kept only as a hash, `wrong_master_key` where the master key was
 *   replaced meanwhile.
 */
export const revealKey = (sql: Sql, material: KeyMaterial, keyId: string): Promise<CreatedKey> =>
  inTransaction(sql, async (transaction) => {
    const row = await findKeyRow(transaction, keyId)
    if (row.hash_only || row.sealed_key === null) throw notRevealable(row)
    await assertCurrent(transaction, material)
    await recordOperation(transaction, { action: 'key.reveal', accountId: row.account_id, subjectId: keyId })
    return { key: toKey(row), raw: material.open(row.sealed_key, keyId) }
  })

/** Revokes a key permanently; a second call changes nothing. */
export async function revokeKey(sql: Sql, keyId: string): Promise<ApiKey> {
  const [row] = await sql<KeyRow[]>`
    UPDATE api_keys AS k SET revoked_at = coalesce(revoked_at, now()) WHERE k.id = ${keyId}
    RETURNING k.*, ${selectGrant(sql)}`
  if (row === undefined) throw keyNotFound(keyId)
  return toKey(row)
}

export const keyRevoked = (keyId: string): Refusal =>
  new Refusal('key_revoked', `Key ${keyId} has been revoked and cannot be changed`)

/** @throws Refusal `key_revoked`, `not_grantable`, `spend_cap_required`, `account_logs_not_allowed` */
export const updateKey = (sql: Sql, keyId: string, changes: KeyChanges): Promise<ApiKey> =>
  inTransaction(sql, async (transaction) => {
    const { name, allowedModels, expiresAt, enabled, accountLogs, spendCap } = changes
    const { requestsPerMinute, concurrency, allowedAddresses, maxPrice } = changes
    const [row] = await transaction<KeyRow[]>`
      UPDATE api_keys
      SET name = ${name === undefined ? sql`name` : name},
          allowed_models = ${allowedModels === undefined ? sql`allowed_models` : sql`${allowedModels as string[] | null}::text[]`},
          expires_at = ${expiresAt === undefined ? sql`expires_at` : expiresAt},
          enabled = ${enabled === undefined ? sql`enabled` : enabled},
          account_logs = ${accountLogs === undefined ? sql`account_logs` : accountLogs},
          requests_per_minute = ${requestsPerMinute === undefined ? sql`requests_per_minute` : requestsPerMinute},
          concurrency = ${concurrency === undefined ? sql`concurrency` : concurrency},
          allowed_addresses = ${allowedAddresses === undefined ? sql`allowed_addresses` : sql`${allowedAddresses as string[] | null}::text[]`}
      WHERE id = ${keyId} AND revoked_at IS NULL
      RETURNING *, NULL AS granted`
    if (row === undefined) {
      await findKeyRow(transaction, keyId)
      throw keyRevoked(keyId)
    }
    if (accountLogs === true) assertMayReadAccount(row.kind)
    if (spendCap !== undefined) await setSpendCap(transaction, keyId, spendCap)
    if (maxPrice !== undefined) await setMaxPrice(transaction, row, maxPrice)
    return toKey(await findKeyRow(transaction, keyId))
  })

interface CredentialRow extends KeyRow {
  account: Omit<AccountRow, 'created_at'> & { created_at: string }
  wallet: WalletJson
  agent: AgentJson | null
  draft: AgentFile | null
  budgets: BudgetPeriodsJson[] | null
  /** Of the secret that was looked up, where it is a former one. */
  secret_ends_at: Date | null
}

export async function findCredential(sql: Sql, lookupHash: Buffer): Promise<Credential | null> {
  const [row] = await sql<CredentialRow[]>`
    SELECT k.*, ${selectGrant(sql)}, to_json(a) AS account, to_json(g) AS agent, d.file AS draft, s.ends_at AS secret_ends_at,
      budgets_of(k.account_id, (SELECT member_id FROM grants WHERE key_id = k.id), k.id) AS budgets,
      (SELECT to_json(totals) FROM (
        SELECT w.account_id, w.balance::text, w.held::text, w.used::text, w.version::text,
          reserved_in(w.account_id)::text AS reserved
      ) AS totals) AS wallet
    FROM (
      SELECT id AS key_id, NULL::timestamptz AS ends_at FROM api_keys WHERE key_hash = ${lookupHash}
      UNION ALL SELECT key_id, ends_at FROM former_secrets WHERE key_hash = ${lookupHash}
    ) AS s
    JOIN api_keys AS k ON k.id = s.key_id
    JOIN accounts AS a ON a.id = k.account_id
    JOIN wallets AS w ON w.account_id = k.account_id
    LEFT JOIN agents AS g ON g.id = k.agent_id
    LEFT JOIN agent_drafts AS d ON k.opens_draft AND d.agent_id = k.agent_id`
  if (row === undefined) return null
  const key = toKey(row)
  return {
    key,
    account: toAccount({ ...row.account, created_at: new Date(row.account.created_at) }),
    wallet: parseWallet(row.wallet),
    agent: row.agent && parseAgent({ ...row.agent, file: row.draft ?? row.agent.file }),
    budgets: (row.budgets ?? []).map(parseBudgetPeriods),
    secret: toRotatedSecret(lookupHash, key.formerSecret, row.secret_ends_at),
  }
}
