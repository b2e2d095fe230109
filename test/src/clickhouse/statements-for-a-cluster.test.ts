/**
 * What the call log sends to a cluster, by rule: every statement reaches all servers, every table is replicated, and
 * inserts are deduplicated. No cluster can be run here, see docs/cluster.md, "A ClickHouse cluster".
 */
import type { ClickHouseClient } from '@clickhouse/client'
import t from 'tap'
import { openCallLog } from '../../../src/clickhouse/call-log.ts'
import { checkTables, commandOnCluster, onCluster } from '../../../src/clickhouse/cluster.ts'
import { connect } from '../../../src/clickhouse/connection.ts'
import { migrate } from '../../../src/clickhouse/migrate.ts'
import { FRESH_NAMES, LIVE_NAMES, tablesOf, viewsOf } from '../../../src/clickhouse/tables/names.ts'
import { createRebuildTables } from '../../../src/clickhouse/tables/rebuild.ts'
import { dropCallsBefore } from '../../../src/clickhouse/tables/retention.ts'
import { startEngines } from '../../support/engines.ts'

interface Sent {
  readonly query_params?: Readonly<Record<string, unknown>>
  readonly query: string
  readonly clickhouse_settings?: Readonly<Record<string, unknown>>
}

/** The position of the last row of a full statement, when calls are taken over. */
const POSITION = { account: 'acc_one', at: '1767225600000', id: '7' }

/** A client that keeps commands and inserts; its tables are empty but for the positions of calls that are taken over. */
function recorder() {
  const positions = [POSITION]
  const commands: Sent[] = []
  const inserts: Sent[] = []
  const client = {
    command: async (sent: Sent) => void commands.push(sent),
    insert: async (sent: Sent) => void inserts.push(sent),
    query: async ({ query }: Sent) => ({
      json: async () =>
        /count\(\) AS open/.test(query)
          ? [{ open: '0', trouble: '' }]
          : /DISTINCT _partition_id/.test(query)
            ? [
                { year: '2024', month: '202412' },
                { year: '2026', month: '202601' },
              ]
            : /AS (?:tables|value)/.test(query)
              ? [{ tables: '0', value: '0' }]
              : /merge_tree_settings/.test(query)
                ? [{ name: 'min_bytes_for_wide_part' }]
                : /OFFSET/.test(query)
                  ? positions.splice(0)
                  : /AS rows/.test(query)
                    ? [{ rows: 100_001 }]
                    : [],
    }),
  } as unknown as ClickHouseClient
  return { client, commands, inserts }
}

async function everything(cluster: string | null) {
  const { client, commands, inserts } = recorder()
  if (cluster !== null) commandOnCluster(client, cluster)
  await migrate(client)
  const tables = await createRebuildTables(client)
  await tables.insertCalls({ token: 'range', text: Buffer.from('2026-01-01 00:00:00.000\n') })
  await tables.keepCallsBefore(Date.UTC(2026, 0))
  await tables.swap()
  await dropCallsBefore(client, Date.UTC(2026, 5, 1))
  return { commands, inserts }
}

const withoutComments = (query: string): string =>
  query
    .replace(/--[^\n]*/g, '')
    .replace(/\s+/g, ' ')
    .trim()
const one = await everything(null)
const all = await everything("o'hare")

t.test('the same statements are sent, in the same order', async (t) => {
  const name = ({ query }: Sent) =>
    withoutComments(query)
      .replace(/ ON CLUSTER '[^ ]+'( SYNC)?/, '')
      .slice(0, 40)
  t.same(all.commands.map(name), one.commands.map(name))
  const named = all.commands.map(({ query }) => query).join('\n')
  for (const table of [...tablesOf(LIVE_NAMES), ...viewsOf(LIVE_NAMES), ...tablesOf(FRESH_NAMES)])
    t.match(named, new RegExp(`CREATE [A-Z ]+ ${table} ON CLUSTER `), table)
})

t.test('each reaches every server', async (t) => {
  for (const { query, clickhouse_settings } of all.commands) {
    const text = withoutComments(query)
    const isPassedOn = /^(ALTER TABLE|DELETE FROM|INSERT INTO) /.test(text) && !/ MODIFY SETTING /.test(text)
    t.equal(/ ON CLUSTER 'o\\'hare'/.test(text), !isPassedOn, text.slice(0, 80))
    t.match(clickhouse_settings, { alter_sync: '2', distributed_ddl_output_mode: 'throw' })
    if (text.startsWith('DROP')) t.match(text, / SYNC$/)
    if (/^EXCHANGE/.test(text)) t.match(text, / AND \w+ ON CLUSTER '[^ ]+'$/)
  }
  for (const { query } of one.commands) t.notMatch(query, /CLUSTER|Replicated|SYNC$/)
})

t.test('every table with rows is replicated, and knows the ranges that it has', async (t) => {
  const created = all.commands
    .map(({ query }) => withoutComments(query))
    .filter((text) => / ENGINE = /.test(text))
  t.ok(created.length >= 7)
  for (const text of created) {
    t.match(text, / ENGINE = Replicated(Summing|Replacing)?MergeTree[ (]/)
    t.notMatch(
      text,
      /non_replicated|ReplicatedMergeTree\(/,
      'the path is the one of the server, by the id of the table',
    )
    if (/ (calls|costs)\w* ON| tollgate_marks ON/.test(text))
      t.match(
        text,
        /replicated_deduplication_window = 10?000+, replicated_deduplication_window_seconds = 604800/,
      )
  }
  const engines = (commands: readonly Sent[]) =>
    commands.flatMap(({ query }) => /ENGINE = (?:Replicated)?(\S+)/.exec(query)?.[1] ?? [])
  t.same(engines(all.commands), engines(one.commands))
})

t.test('inserts have tokens, also for the views, and wait for most replicas', async (t) => {
  const [range] = all.inserts.filter(
    ({ clickhouse_settings: set }) => set?.deduplicate_blocks_in_dependent_materialized_views,
  )
  t.match(range?.clickhouse_settings, {
    insert_quorum: 'auto',
    insert_deduplicate: 1,
    insert_deduplication_token: 'range:2026-01',
    deduplicate_blocks_in_dependent_materialized_views: 1,
  })
  for (const { clickhouse_settings } of all.inserts) t.match(clickhouse_settings, { insert_quorum: 'auto' })
  for (const { clickhouse_settings } of one.inserts) t.notOk(clickhouse_settings?.insert_quorum)
})

t.test('calls are taken over by statements of few rows, in turn, which wait for most replicas', async (t) => {
  const taken = ({ commands }: { commands: readonly Sent[] }) =>
    commands.filter(({ query }) => query.startsWith('INSERT INTO'))
  t.match(
    taken(all).map(({ query_params }) => query_params),
    [{ account: '', at: '0', id: '0' }, POSITION],
  )
  for (const { query, clickhouse_settings } of taken(all)) {
    t.match(query, /^INSERT INTO calls_rebuilt SELECT .* LIMIT \{rows:UInt32\}$/s)
    t.match(clickhouse_settings, { insert_quorum: 'auto' })
  }
  t.equal(taken(one).length, 2)
})

t.test('a statement of an unknown form is refused: it would reach one server', async (t) => {
  for (const query of [
    'RENAME TABLE a TO b',
    'TRUNCATE TABLE a',
    'CREATE DICTIONARY a (b UInt8)',
    'SELECT 1',
  ])
    t.throws(() => onCluster(query, 'c'), /cannot be run on a cluster/)
})

t.test('tables of another setting are refused, before anything is changed', async (t) => {
  const { clickhouseUrl } = await startEngines(t, { only: ['clickhouse'], withCallLog: true })
  const client = connect(clickhouseUrl)
  t.teardown(() => client.close())
  await checkTables(client, null)
  await t.rejects(checkTables(client, 'c'), /are those of a single server .*calls.*logs rebuild/)
  const log = openCallLog(clickhouseUrl, 'c')
  t.teardown(() => log.close())
  await t.rejects(log.migrate(), /are those of a single server/)
})
