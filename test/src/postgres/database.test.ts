/** The database as a whole: values, roles, limits of collections, and news of changes. */
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { agentFile } from '../../../schemas/accounts/agent.ts'
import { COLLECTION_LIMITS, type CollectionLimit } from '../../../schemas/collection-limits.ts'
import { connect } from '../../../src/postgres/connection.ts'
import { migrate } from '../../../src/postgres/migrate.ts'
import { grantService, listExcess, makeServiceRole, migrateAsOwner } from '../../../src/postgres/roles.ts'
import type { Transaction } from '../../../src/postgres/transaction.ts'
import { freshDatabase, startEngines } from '../../support/engines.ts'
import { readText } from '../../support/source-files.ts'
import { newAccount, openFresh, settlement, sharePostgres } from './support.ts'
import { created, newVideo, settle } from './tasks/support.ts'

const engines = await sharePostgres()

t.test('arrays come back', async (t) => {
  // What is written as an array is read as it was, whatever its elements.
  const { sql } = await openFresh(t, engines)

  const RUNS = { numRuns: 100 }
  // PostgreSQL's text has no NUL.
  const texts = fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\0', '').toWellFormed())
  const awkward = fc.constantFrom('NULL', 'null', '', ' ', '{}', '"', '\\', ',', '\\"', '\n', '{"a,b"}')
  const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })

  t.test('text', async (t) => {
    const arrays = fc.array(fc.option(fc.oneof(texts, awkward)))
    const check = fc.asyncProperty(arrays, async (values) => {
      const [row] = await sql`SELECT ${values}::text[] AS values, cardinality(${values}::text[]) AS count`
      t.same(row, { values, count: values.length })
    })
    await fc.assert(check, RUNS)
  })

  t.test('text of megabytes', async (t) => {
    const values = ['x'.repeat(10_000_000), '"']
    const [row] = await sql`SELECT ${values}::text[] AS values`
    t.ok(row?.values[0] === values[0] && row?.values[1] === values[1])
  })

  t.test('numbers', async (t) => {
    const arrays = fc.tuple(
      fc.array(fc.option(int64)),
      fc.array(fc.integer()),
      fc.array(fc.integer({ min: -32_768, max: 32_767 })),
      fc.array(fc.double({ noNaN: true }).map((value) => value + 0)),
    )
    const check = fc.asyncProperty(arrays, async ([bigints, integers, smallints, doubles]) => {
      const [row] = await sql`
      SELECT ${bigints.map((value) => (value === null ? null : String(value)))}::bigint[] AS bigints, ${integers}::integer[] AS integers,
        ${smallints}::smallint[] AS smallints, ${doubles}::float8[] AS doubles`
      t.same(row, { bigints, integers, smallints, doubles })
    })
    await fc.assert(check, RUNS)
  })
})

t.test('service role has least privilege', async (t) => {
  // The role of the service: it can do its work (all tests beside this one use it), and nothing beyond.
  const { database, url, serviceUrl } = await openFresh(t, engines)
  const service = connect(serviceUrl, { max: 1, name: 'test of the role' })
  t.teardown(() => service.end({ timeout: 1 }))

  /** SQLSTATE insufficient_privilege: before any trigger has a say. */
  const DENIED = { code: '42501' }

  t.test('booked rows and the audit record can be added to and read, not changed', async (t) => {
    const accountId = await newAccount(database)
    await database.bookings.book([settlement(accountId)])
    for (const table of ['ledger_entries', 'usage_rows', 'audit_entries']) {
      const [{ count }] = await service<[{ count: bigint }]>`SELECT count(*) FROM ${service(table)}`
      t.ok(count > 0n, table)
      await t.rejects(service`UPDATE ${service(table)} SET account_id = account_id`, DENIED)
      await t.rejects(service`DELETE FROM ${service(table)}`, DENIED)
      await t.rejects(service`TRUNCATE ${service(table)}`, DENIED)
    }
    for (const table of ['schema_migrations', 'schema_functions'])
      await t.rejects(service`DELETE FROM ${service(table)}`, DENIED)
  })

  t.test('no DDL', async (t) => {
    for (const statement of [
      'CREATE TABLE more (x int)',
      'ALTER TABLE wallets DISABLE TRIGGER ALL',
      'DROP TRIGGER ledger_entries_stay ON ledger_entries',
      'DROP TABLE audit_entries',
      'CREATE FUNCTION more() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$',
      'CREATE ROLE more SUPERUSER',
      'GRANT UPDATE ON ledger_entries TO tollgate_service',
      `SET session_replication_role = 'replica'`,
    ]) {
      if (statement.startsWith('GRANT')) {
        // Without a grant option nothing is granted, with a warning or an error.
        await service.unsafe(statement).catch(() => undefined)
        await t.rejects(service`UPDATE ledger_entries SET amount = 0`, DENIED, statement)
      } else await t.rejects(service.unsafe(statement), DENIED, statement)
    }
  })

  t.test('what a role may do beyond is named, and taken from it by the owner', async (t) => {
    t.same(await listExcess(serviceUrl), [])
    t.same(await listExcess(url), ['is a superuser'])
    const owner = connect(url, { max: 1, name: 'test owner' })
    t.teardown(() => owner.end({ timeout: 1 }))
    await owner`GRANT UPDATE ON ledger_entries TO tollgate_service`
    await owner`GRANT CREATE ON SCHEMA public TO tollgate_service`
    t.same(await listExcess(serviceUrl), ['may create tables', 'may UPDATE ledger_entries'])
    await migrateAsOwner(serviceUrl, url)
    t.same(await listExcess(serviceUrl), [])
    t.same(await migrate(serviceUrl), [], 'without the owner it sees that nothing is missing')
  })

  t.test('one role for both does, and says what it may beyond', async (t) => {
    const admin = await freshDatabase(engines.databaseUrl)
    const sql = connect(admin, { max: 1, name: 'test admin' })
    t.teardown(() => sql.end({ timeout: 1 }))
    const plain = await makeServiceRole(admin, 'test')
    await sql`ALTER SCHEMA public OWNER TO tollgate_service`
    await migrateAsOwner(plain, null)
    const excess = await listExcess(plain)
    t.match(excess, ['may create tables', 'owns tables'])
    await grantService(plain, plain)
    t.same(await listExcess(plain), excess, 'it keeps what it has')
  })

  t.test('the roles of the compose file: one migrates, the other has no more than it needs', async (t) => {
    const made = /<<'SQL'\n(.+?)\n\s*SQL\n/s.exec(readText('docker-compose.yml'))![1]!
    const admin = connect(url, { max: 1, name: 'test admin' })
    t.teardown(async () => {
      await admin`DROP DATABASE tollgate_of_compose WITH (FORCE)`
      await admin`DROP ROLE tollgate_owner, tollgate_of_compose`
      await admin.end({ timeout: 1 })
    })
    // The embedded cluster has a role and a database of the plain name.
    const statements = made
      .replaceAll(/:'(owner|service)'/g, `'secret'`)
      .replaceAll(/\btollgate\b/g, 'tollgate_of_compose')
    for (const statement of statements.trim().split('\n')) await admin.unsafe(statement)
    // The embedded server lets no other role log in: the administrator takes the role on.
    const as = (role: string): string => {
      const address = new URL(url)
      Object.assign(address, { pathname: '/tollgate_of_compose', search: `?role=${role}` })
      return address.href
    }
    await migrateAsOwner(as('tollgate_of_compose'), as('tollgate_owner'))
    t.same(await listExcess(as('tollgate_of_compose')), [])
    t.match(await listExcess(as('tollgate_owner')), ['may create tables', 'owns tables'])
  })
})

t.test('collections have limits', async (t) => {
  // Collections that customers fill have a most number of entries, which holds for many that add at the same time.
  const { database, sql, openAnother } = await openFresh(t, engines)
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
})

t.test('conversations count what is stored', async (t) => {
  // What PostgreSQL counts in a conversation: what was reported, what was added since, and what calls under way may add.
  const { database, sql } = await openFresh(t, engines)

  interface End {
    readonly reported?: number
    readonly isStored?: boolean
  }

  async function newConversation(tokens: number) {
    const accountId = await newAccount(database)
    const id = `conv_${accountId}`
    await database.storedResponses.storeConversation({ accountId, id, channelId: 'c', tokens })
    let serial = 0
    return {
      accountId,
      id,
      add: (count: number) => database.storedResponses.addToConversation(accountId, id, count),
      /** Begins a call; returns what it reads, and its end. */
      async call(own: number) {
        const requestId = `r${serial++}`
        const begun = await database.storedResponses.beginConversationCall({
          accountId,
          id,
          requestId,
          tokens: own,
          hours: 2,
        })
        const end = ({ reported, isStored = true }: End = {}) =>
          database.storedResponses.storeResponse({
            ...{ accountId, id: null, channelId: 'c', tokens: null, days: 0 },
            conversation: { id, requestId, reported: reported ?? null, isStored },
          })
        return { reads: begun?.tokens, end, requestId }
      },
      async held(): Promise<number | null> {
        const [row] = await sql<{ tokens: bigint | null }[]>`
        SELECT tokens FROM stored_conversations WHERE account_id = ${accountId} AND id = ${id}`
        return row!.tokens === null ? null : Number(row!.tokens)
      },
    }
  }

  t.test('a report replaces the estimate, and what was added since stays', async (t) => {
    const conversation = await newConversation(1000)
    const call = await conversation.call(500)
    t.equal(call.reads, 1000)
    await conversation.add(70)
    await call.end({ reported: 300 })
    t.equal(await conversation.held(), 370)
    await call.end({ reported: 5 })
    t.equal(await conversation.held(), 370, 'an end that comes twice changes nothing')
  })

  t.test('without a report the estimate of the call counts', async (t) => {
    const conversation = await newConversation(1000)
    const left = await conversation.call(500)
    await left.end()
    t.equal(await conversation.held(), 1500)
    t.equal((await conversation.call(1)).reads, 1500)
  })

  t.test('a refused call has added nothing', async (t) => {
    const conversation = await newConversation(1000)
    const refused = await conversation.call(500)
    await refused.end({ isStored: false })
    t.equal(await conversation.held(), 1000)
    t.equal((await conversation.call(1)).reads, 1000)
  })

  t.test(
    'calls under way count for those that begin meanwhile, and after the report of another',
    async (t) => {
      const conversation = await newConversation(1000)
      const slow = await conversation.call(500)
      const quick = await conversation.call(30)
      t.equal(quick.reads, 1500)
      await quick.end({ reported: 1020 })
      const third = await conversation.call(1)
      t.equal(third.reads, 1520, 'the slow one still counts')
      await slow.end({ reported: 1400 })
      t.equal(await conversation.held(), 1430, 'its report, and what the quick one added since it began')
      await third.end({ reported: 1427 })
      t.equal(await conversation.held(), 1427 + 500)
    },
  )

  t.test('many calls at once never count less than one of them reported', async (t) => {
    const conversation = await newConversation(100_000)
    const calls = await Promise.all(Array.from({ length: 8 }, () => conversation.call(10)))
    for (const call of calls) await call.end({ reported: 2000 })
    t.ok((await conversation.held())! >= 2000)
  })

  t.test('an unknown count stays unknown until a report', async (t) => {
    const conversation = await newConversation(0)
    await sql`UPDATE stored_conversations SET tokens = NULL WHERE id = ${conversation.id}`
    const first = await conversation.call(500)
    t.equal(first.reads, null)
    await first.end()
    t.equal(await conversation.held(), null)
    const second = await conversation.call(5)
    await second.end({ reported: 900 })
    t.equal(await conversation.held(), 900)
  })

  t.test('a call that never ends counts for its hours, and is removed then', async (t) => {
    const conversation = await newConversation(10)
    const killed = await conversation.call(500)
    t.equal((await conversation.call(0)).reads, 510)
    await sql`UPDATE conversation_calls SET expires_at = now() WHERE request_id = ${killed.requestId}
    AND account_id = ${conversation.accountId}`
    t.equal((await conversation.call(0)).reads, 10)
    t.ok((await database.storedResponses.purgeConversationCalls()) >= 1)
  })

  t.test('items that were refused are taken out again, and none is negative', async (t) => {
    const conversation = await newConversation(10)
    await conversation.add(5)
    await conversation.add(-5)
    t.equal(await conversation.held(), 10)
    await conversation.add(-50)
    t.equal(await conversation.held(), 0)
  })

  t.test('a conversation of nobody begins no call, and a deleted one leaves none', async (t) => {
    const { accountId, id, call } = await newConversation(10)
    const unknown = { accountId, id: 'conv_none', requestId: 'r', tokens: 1, hours: 2 }
    t.equal(await database.storedResponses.beginConversationCall(unknown), null)
    await call(5)
    await database.storedResponses.forgetConversation(accountId, id)
    t.same(await sql`SELECT 1 FROM conversation_calls WHERE account_id = ${accountId}`, [])
  })
})

t.test('change reaches every process', async (t) => {
  const engines = await startEngines(t, { only: ['postgres'] })
  const AGENT = agentFile.parse({ name: 'Support', model: 'sonata', persona: 'Be polite.' })

  const { database, sql, openAnother } = await openFresh(t, engines)

  /** What a listening process hears; `next` waits for it. */
  async function listening() {
    const heard: string[] = []
    let wake = () => {}
    const hear = (what: string) => {
      heard.push(what)
      wake()
    }
    const other = await openAnother()
    const stop = await other.changes.listen({
      onChange: (kind, id) => hear(`${kind} ${id}`),
      onReset: () => hear('reset'),
    })
    const until = async (what: string) => {
      while (!heard.includes(what)) await new Promise<void>((resolve) => (wake = resolve))
    }
    return { heard, until, stop }
  }

  t.test('each administrative change is heard by another process', async (t) => {
    const { heard, until, stop } = await listening()
    const accountId = await newAccount(database)
    const { key } = await database.keys.create({ accountId, name: 'one' })
    const organization = await database.accounts.create({ name: 'Acme', kind: 'organization', credit: 0n })
    const agent = await database.agents.create(organization.account.id, AGENT)
    await until(`key ${key.id}`)
    const changes: [string, () => Promise<unknown>][] = [
      [`key ${key.id}`, () => database.keys.update(key.id, { enabled: false })],
      [`key ${key.id}`, () => database.keys.revoke(key.id)],
      [`account ${accountId}`, () => database.accounts.setEnabled(accountId, false)],
      [`account ${accountId}`, () => database.accounts.setLimits(accountId, { requestsPerMinute: 5 })],
      [`agent ${agent.id}`, () => database.agents.update(agent.id, { ...AGENT, persona: 'Be brief.' })],
      [`agent ${agent.id}`, () => database.agents.setState(agent.id, 'published')],
      [`agent ${agent.id}`, () => database.agents.setState(agent.id, 'deleted')],
      [`wallet ${accountId}`, () => database.wallets.topUp(accountId, 100_000_000_000n)],
      [`key ${key.id}`, () => sql`UPDATE api_keys SET name = 'by hand' WHERE id = ${key.id}`],
      [`account ${accountId}`, () => sql`UPDATE accounts SET enabled = true WHERE id = ${accountId}`],
      [`key ${key.id}`, () => sql`DELETE FROM api_keys WHERE id = ${key.id}`],
    ]
    for (const [expected, change] of changes) {
      heard.length = 0
      await change()
      await until(expected)
      t.same(heard, [expected])
    }
    await stop()
  })

  t.test('what a task cost a capped key', async (t) => {
    const { heard, until, stop } = await listening()
    const accountId = await newAccount(database)
    const cap = { kind: 'employee', spendCap: 1_000n } as const
    const { key } = await database.keys.create({ accountId, name: 'capped', ...cap })
    const task = await created(database, newVideo(accountId, { keyId: key.id, hold: 600n }))
    t.notOk(heard.includes(`wallet ${key.id}`))
    await settle(database, task, 450n)
    await until(`wallet ${key.id}`)
    t.match(await database.wallets.read([key.id]), [{ balance: 550n, used: 450n }])
    await stop()
  })

  t.test('a settlement is not announced here', async (t) => {
    const { heard, until, stop } = await listening()
    const accountId = await newAccount(database)
    await database.bookings.book([settlement(accountId)])
    await database.accounts.setEnabled(accountId, true)
    await until(`account ${accountId}`)
    t.same(heard, [`account ${accountId}`])
    await stop()
  })

  t.test('a change that is rolled back is not heard', async (t) => {
    const { heard, until, stop } = await listening()
    const accountId = await newAccount(database)
    await t.rejects(
      sql.begin(async (transaction) => {
        await transaction`UPDATE accounts SET name = 'never' WHERE id = ${accountId}`
        throw new Error('rolled back')
      }),
      { message: 'rolled back' },
    )
    await database.wallets.topUp(accountId, 100_000_000_000n)
    await until(`wallet ${accountId}`)
    t.same(heard, [`wallet ${accountId}`])
    await stop()
  })

  t.test('a listener whose connection was lost says so and hears again', async (t) => {
    const { heard, until, stop } = await listening()
    const accountId = await newAccount(database)
    t.same(heard, [], 'the first connection is no reset')
    await engines.stopEngine('postgres')
    await engines.startEngine('postgres')
    await until('reset')
    const again = await openAnother()
    await again.accounts.setEnabled(accountId, false)
    await until(`account ${accountId}`)
    t.equal(heard.filter((what) => what === 'reset').length, 1)
    await stop()
  })
})
