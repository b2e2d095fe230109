/**
 * What an administrative operation writes leaves an entry of the audit record: by a trigger of the table, or by the function
 * that performs the operation. A new table is one of them, or says here why it needs none.
 */
import t from 'tap'
import { readText } from '../../../support/source-files.ts'
import { startDatabase } from '../support.ts'

/** Tables whose operations are recorded by a function, and where. A row alone does not say what was done. */
const BY_FUNCTION: Readonly<Record<string, string>> = {
  agent_drafts: 'accounts/agent-drafts.ts',
  deliveries: 'notifications/records.ts',
  former_secrets: 'accounts/key-rotation.ts',
  jobs: 'operation/jobs.ts',
  journals: 'operation/journals.ts',
  key_storage: 'accounts/master-key.ts',
  ledger_entries: 'billing/wallets.ts',
  lost_submits: 'tasks/lost-submits.ts',
  master_keys: 'accounts/rotate-master-key.ts',
  payment_events: 'payments/refused-events.ts',
  recovery_codes: 'people/totp.ts',
  tasks: 'tasks/tasks.ts',
  wiki_pages: 'knowledge/import.ts',
}

/** Tables that no operation writes as its subject, by why they need no entry. */
const EXEMPT: Readonly<Record<string, readonly string[]>> = {
  'is the record itself': ['audit_entries'],
  'calls and their bookings write it': [
    ...['usage_rows', 'usage_copy', 'settlements_refused', 'idempotency_records'],
    ...['holds', 'wallet_reservations', 'cap_reservations', 'budget_periods'],
    ...['stored_responses', 'stored_conversations', 'conversation_calls', 'stored_objects'],
  ],
  'follows the pages of an import': [
    ...['wiki_staging', 'wiki_links', 'wiki_names', 'wiki_tags', 'wiki_tag_counts'],
    ...['wiki_terms', 'wiki_postings', 'wiki_page_terms'],
  ],
  'follows a payment, whose states are recorded, or what the provider reports of it': [
    ...['payment_customers', 'payment_reconciliation', 'payment_reversals', 'receipts', 'receipt_numbers'],
  ],
  'signing in, which changes no right': [
    ...['sessions', 'sign_in_attempts', 'sign_in_tickets', 'unproven_emails'],
  ],
  'is what one user keeps for their own pages': ['saved_views'],
  'the service writes it while it runs': ['channel_breakers', 'events'],
  'the audit, which is a job, writes it': ['verified', 'verified_grants', 'verified_wallets'],
  'the schema and its partitions': [
    ...['partitions', 'closing_balances', 'closing_usage', 'schema_migrations', 'schema_functions'],
  ],
}

const { sql } = await startDatabase(t)
const tables = async (): Promise<string[]> => {
  const rows = await sql<{ name: string }[]>`
    SELECT relname AS name FROM pg_class
    WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace`
  return rows.map(({ name }) => name)
}
const audited = new Set(
  (
    await sql<{ name: string }[]>`
      SELECT DISTINCT c.relname AS name FROM pg_trigger AS g
      JOIN pg_class AS c ON c.oid = g.tgrelid JOIN pg_proc AS p ON p.oid = g.tgfoid
      WHERE p.prosrc LIKE '%record_act(%'`
  ).map(({ name }) => name),
)
const excepted = new Set([...Object.keys(BY_FUNCTION), ...Object.values(EXEMPT).flat()])

t.test('every table has a trigger of the audit record, or says why it needs none', async (t) => {
  t.ok(audited.has('api_keys') && audited.has('channel_holds'), 'triggers are found, whatever their names')
  const silent = async () => (await tables()).filter((name) => !audited.has(name) && !excepted.has(name))
  t.same(await silent(), [])
  await sql`CREATE TABLE quiet (id int)`
  t.same(await silent(), ['quiet'], 'a new table is found')
  await sql`DROP TABLE quiet`
})

t.test('an exemption is of a table without a trigger', async (t) => {
  const known = await tables()
  t.same(
    [...excepted].filter((name) => audited.has(name) || !known.includes(name)),
    [],
  )
})

for (const [table, path] of Object.entries(BY_FUNCTION))
  t.test(`${table}: ${path} records the operation in its transaction`, async (t) => {
    const text = readText(`src/postgres/${path}`)
    t.match(text, /\brecord(Operation|Credit)\((sql|transaction),/)
    t.match(text, new RegExp(`(INTO|UPDATE|FROM) ${table}\\b`))
  })
