/** Collections that customers fill have a most number of entries, which holds for many that add at the same time. */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { COLLECTION_LIMITS, type CollectionLimit } from '../../../schemas/collection-limits.ts'
import type { Transaction } from '../../../src/postgres/transaction.ts'
import { startDatabase } from './support.ts'

const { database, sql, openAnother } = await startDatabase(t)
/** Another process. */
const other = await openAnother()
const organization = await database.accounts.create({ name: 'company', kind: 'organization', credit: 0n })
const accountId = organization.account.id
const user = await database.users.create({ email: 'o@example.com', name: 'O', credit: 0n })
await database.organizations.putMember(accountId, user.accountId, 'owner')
/** Of whom there may be budgets. */
const members: string[] = []
for (let at = 0; at < 8; at++) {
  const { account } = await database.accounts.create({ name: 'member', credit: 0n })
  await database.organizations.putMember(accountId, account.id, 'member')
  members.push(account.id)
}
const base = await database.knowledge.createBase(accountId, 'base')

const hash = () => randomBytes(32)
let count = 0
const another = () => `n${++count}`

interface Collection {
  /** Entries that the other tests have made. */
  readonly present?: number
  /** Writes so many entries at once, past triggers and references. */
  readonly fill: (sql: Transaction, entries: number) => PromiseLike<unknown>
  readonly add: (by: typeof database) => Promise<unknown>
  /** Replaces an entry, where one may be: the number stays. */
  readonly replace?: (by: typeof database) => Promise<unknown>
}

const COLLECTIONS: Partial<Record<CollectionLimit, Collection>> = {
  keys_per_account: {
    fill: (sql, entries) => sql`
      INSERT INTO api_keys (id, account_id, name, kind, prefix, key_hash)
      SELECT 'key_' || n, ${accountId}, 'k', 'console', 'sk-tollgate-00000000', sha256(n::text::bytea)
      FROM generate_series(1, ${entries}::integer) AS n`,
    add: (by) => by.keys.create({ accountId, name: another() }),
  },
  key_requests_per_member: {
    fill: (sql, entries) => sql`
      INSERT INTO key_requests (id, organization_id, member_id, name)
      SELECT 'kreq_' || n, ${accountId}, ${user.accountId}, 'r' FROM generate_series(1, ${entries}::integer) AS n`,
    add: (by) =>
      by.keyRequests.create({ organizationId: accountId, memberId: user.accountId, name: another() }),
  },
  members_per_organization: {
    present: 9,
    fill: (sql, entries) => sql`
      INSERT INTO members (organization_id, account_id, role)
      SELECT ${accountId}, 'acc_' || n, 'member' FROM generate_series(1, ${entries}::integer) AS n`,
    add: async (by) => {
      const { account } = await by.accounts.create({ name: another(), credit: 0n })
      return by.organizations.putMember(accountId, account.id, 'member')
    },
    replace: (by) => by.organizations.putMember(accountId, user.accountId, 'owner'),
  },
  organizations_per_user: {
    present: 1,
    fill: (sql, entries) => sql`
      INSERT INTO members (organization_id, account_id, role)
      SELECT 'org_' || n, ${user.accountId}, 'owner' FROM generate_series(1, ${entries}::integer) AS n`,
    add: (by) => by.organizations.create(user.accountId, another()),
  },
  invitations_per_organization: {
    fill: (sql, entries) => sql`
      INSERT INTO invitations (id, token_hash, email, account_id, role, created_by, expires_at)
      SELECT 'inv_' || n, sha256(n::text::bytea), 'a@example.com', ${accountId}, 'member', 'test', now() + interval '1 day'
      FROM generate_series(1, ${entries}::integer) AS n`,
    add: (by) =>
      by.invitations.create({
        tokenHash: hash(),
        email: `${another()}@example.com`,
        accountId,
        role: 'member',
        installationRole: null,
      }),
  },
  tokens_per_account: {
    fill: (sql, entries) => sql`
      INSERT INTO management_tokens (id, token_hash, prefix, name, account_id, scopes, created_by)
      SELECT 'mtk_' || n, sha256(n::text::bytea), 'p', 'n', ${accountId}, '{}', 'test'
      FROM generate_series(1, ${entries}::integer) AS n`,
    add: (by) =>
      by.managementTokens.create({
        tokenHash: hash(),
        prefix: 'p',
        name: another(),
        accountId,
        scopes: ['read'],
        expiresAt: null,
      }),
  },
  agents_per_account: {
    fill: (sql, entries) => sql`
      INSERT INTO agents (id, account_id, file)
      SELECT 'agt_' || n, ${accountId}, '{}' FROM generate_series(1, ${entries}::integer) AS n`,
    add: (by) =>
      by.agents.create(accountId, {
        name: another(),
        model: 'm',
        persona: '',
        knowledge: [],
        temperature: null,
        web_search: false,
        image_generation: false,
      }),
  },
  webhook_endpoints_per_account: {
    fill: (sql, entries) => sql`
      INSERT INTO webhook_endpoints (id, kind, account_id, url, sealed_secret)
      SELECT 'whe_' || n, 'webhook', ${accountId}, 'https://example.com', ''
      FROM generate_series(1, ${entries}::integer) AS n`,
    add: (by) =>
      by.webhooks.create({
        kind: 'webhook',
        accountId,
        url: 'https://example.com',
        description: '',
        events: null,
      }),
  },
  knowledge_bases_per_account: {
    present: 1,
    fill: (sql, entries) => sql`
      INSERT INTO knowledge_bases (id, account_id, name)
      SELECT 'kb_' || n, ${accountId}, 'n' FROM generate_series(1, ${entries}::integer) AS n`,
    add: (by) => by.knowledge.createBase(accountId, another()),
  },
  readers_per_knowledge_base: {
    fill: (sql, entries) => sql`
      INSERT INTO knowledge_readers (base_id, reader_id)
      SELECT ${base.id}, 'acc_' || n FROM generate_series(1, ${entries}::integer) AS n`,
    add: async (by) => {
      const { account } = await by.accounts.create({ name: another(), credit: 0n })
      return by.knowledge.grantBase(base.id, account.id)
    },
  },
  imports_per_account: {
    fill: (sql, entries) => sql`
      INSERT INTO jobs (id, kind, account_id, subject_id, created_by)
      SELECT 'job_' || n, 'import', ${accountId}, 'kb_' || n, 'test' FROM generate_series(1, ${entries}::integer) AS n`,
    add: (by) => by.jobs.start({ kind: 'import', accountId, subjectId: another() }),
  },
  saved_views_per_page: {
    fill: (sql, entries) => sql`
      INSERT INTO saved_views (user_id, page, name, query)
      SELECT ${user.id}, 'calls', 'v' || n, '' FROM generate_series(1, ${entries}::integer) AS n`,
    add: (by) => by.savedViews.save(user.id, { page: 'calls', name: another(), query: '' }),
    replace: (by) => by.savedViews.save(user.id, { page: 'calls', name: 'v1', query: 'a=1' }),
  },
  passkeys_per_user: {
    fill: (sql, entries) => sql`
      INSERT INTO passkeys (id, user_id, name, credential_id, public_key, counter, transports)
      SELECT 'pky_' || n, ${user.id}, 'n', n::text, '', 0, '{}' FROM generate_series(1, ${entries}::integer) AS n`,
    add: (by) =>
      by.signIn.addPasskey({
        userId: user.id,
        name: 'n',
        credentialId: another(),
        publicKey: new Uint8Array(),
        counter: 0,
        transports: [],
      }),
  },
  budgets_per_account: {
    fill: (sql, entries) => sql`
      INSERT INTO budgets (id, account_id, scope, subject_id, amount, period, timezone, counts_from)
      SELECT 'bud_' || n, ${accountId}, 'key', 'key_' || n, 1, 'day', 'UTC', 0
      FROM generate_series(1, ${entries}::integer) AS n`,
    add: (by) => {
      const subjectId = members.pop()!
      return by.budgets.put({
        accountId,
        scope: 'member',
        subjectId,
        amount: 1n,
        period: 'day',
        timezone: 'UTC',
      })
    },
  },
  open_payments_per_account: {
    fill: (sql, entries) => sql`
      INSERT INTO payments (id, account_id, kind, credits, amount, currency, saves_method, created_by, state)
      SELECT 'pay_' || n, ${accountId}, 'checkout', 1, 1, 'usd', false, 'test', 'open'
      FROM generate_series(1, ${entries}::integer) AS n`,
    add: (by) =>
      by.payments.create({ accountId, kind: 'checkout', credits: 1n, amount: 1n, currency: 'usd' }),
  },
  conversations_per_account: {
    fill: (sql, entries) => sql`
      INSERT INTO stored_conversations (account_id, id, channel_id, tokens)
      SELECT ${accountId}, 'conv_' || n, 'c', 0 FROM generate_series(1, ${entries}::integer) AS n`,
    add: (by) =>
      by.storedResponses.storeConversation({ accountId, id: another(), channelId: 'c', tokens: 0 }),
    replace: (by) =>
      by.storedResponses.storeConversation({ accountId, id: 'conv_1', channelId: 'c', tokens: 1 }),
  },
}

const codeOf = (outcome: PromiseSettledResult<unknown>): string =>
  outcome.status === 'fulfilled' ? 'added' : (outcome.reason.code ?? outcome.reason.message)

async function holds(t: Test, limit: CollectionLimit, { present = 0, fill, add, replace }: Collection) {
  const most = COLLECTION_LIMITS[limit]
  await sql.begin(async (transaction) => {
    await transaction`SET LOCAL session_replication_role = replica`
    await fill(transaction as Transaction, most - 1 - present)
  })
  const outcomes = await Promise.allSettled([database, other, database, other].map((by) => add(by)))
  t.same(outcomes.map(codeOf).sort(), ['added', 'limit_reached', 'limit_reached', 'limit_reached'])
  await t.rejects(add(database), { message: new RegExp(`^The limit ${limit} is ${most}, `) })
  if (replace !== undefined) await t.resolves(replace(database), 'what is there may be replaced')
}

for (const [limit, collection] of Object.entries(COLLECTIONS))
  t.test(`${limit}: of many at the same time, as many are added as there is room for`, async (t) => {
    await holds(t, limit as CollectionLimit, collection)
  })

t.test('imports of accounts take turns, however many one of them has begun', async (t) => {
  await sql`UPDATE jobs SET ended_at = now()`
  const owners: string[] = []
  for (const name of ['busy', 'calm']) {
    const { account } = await database.accounts.create({ name, credit: 0n })
    owners.push(account.id)
  }
  const [busy, calm] = owners as [string, string]
  const start = (owner: string) =>
    database.jobs.start({ kind: 'import', accountId: owner, subjectId: another() })
  for (let at = 0; at < 3; at++) await start(busy)
  await start(calm)
  const turns: (string | null)[] = []
  for (let at = 0; at < 4; at++) turns.push((await database.jobs.claim(['import']))!.accountId)
  t.same(turns, [busy, calm, busy, busy])
})

t.test('a further sign-in ends the session that was not seen for longest', async (t) => {
  const most = COLLECTION_LIMITS.sessions_per_user
  const first = hash()
  await database.sessions.create({ tokenHash: first, userId: user.id, userAgent: '', address: '' })
  await sql`UPDATE sessions SET last_seen_at = now() - interval '1 hour'`
  const signIn = (by: typeof database) =>
    by.sessions.create({ tokenHash: hash(), userId: user.id, userAgent: '', address: '' })
  for (let at = 1; at < most; at++) await signIn(database)
  await Promise.all([database, other, database].map(signIn))
  const [row] = await sql<[{ count: bigint }]>`SELECT count(*) FROM sessions WHERE user_id = ${user.id}`
  t.equal(Number(row.count), most)
  t.equal(await database.sessions.find(first), null)
})

t.test('every limit is tested here or where it is kept', async (t) => {
  const elsewhere = [
    'sessions_per_user',
    'pages_per_account',
    'pages_per_knowledge_base',
    'live_streams_per_session',
    'live_streams_per_account',
  ]
  t.same([...Object.keys(COLLECTIONS), ...elsewhere].sort(), Object.keys(COLLECTION_LIMITS).sort())
})
