/**
 * The statements of the call log for a cluster: the same definitions, with replicated tables on each of its servers. The
 * cluster has one shard, so that every server has all rows. What changes tables that are there (ALTER, DELETE, INSERT)
 * Keeper passes on by itself, except for settings of a table.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import { readRows } from './connection.ts'

/** Days for which a range that is sent again is known; beside the number of ranges. The server's default may be an hour. */
const DEDUPLICATION_SECONDS = 7 * 24 * 60 * 60

/** Comments and the space before a statement. */
const START = /^(?:\s*--[^\n]*(?:\n|$))*\s*/
const WINDOW = 'non_replicated_deduplication_window'
/** Each form ends where ON CLUSTER follows. */
const FORMS = [
  /^CREATE TABLE (?:IF NOT EXISTS )?\w+/,
  /^CREATE MATERIALIZED VIEW (?:IF NOT EXISTS )?\w+/,
  /^DROP TABLE IF EXISTS \w+$/,
  /^EXCHANGE TABLES \w+ AND \w+$/,
  /^ALTER TABLE \w+(?= MODIFY SETTING )/,
] as const
const PASSED_ON = /^(?:ALTER TABLE \w+ (?!MODIFY SETTING )|DELETE FROM \w+ |INSERT INTO \w+ )/

/** Settings of each query on a cluster. */
const CLUSTER_SETTINGS = {
  /** An insert ends when most replicas have it: the loss of a server loses no row. */
  insert_quorum: 'auto',
  /** An ALTER ends when all replicas have it: views of the next statement read the new column. */
  alter_sync: '2',
  /** ON CLUSTER fails where a server does. */
  distributed_ddl_output_mode: 'throw',
} as const

/**
 * Returns a statement for a cluster.
 * @throws Error for a statement of another form than those above: it would reach only one server
 */
export function onCluster(statement: string, cluster: string): string {
  const start = START.exec(statement)![0]
  const body = statement.slice(start.length).trimEnd()
  if (PASSED_ON.test(body)) return statement
  const head = FORMS.map((form) => form.exec(body)?.[0]).find((found) => found !== undefined)
  if (head === undefined)
    throw new Error(`This statement cannot be run on a cluster of ClickHouse: ${body.slice(0, 60)}`)
  const clause = `${head} ON CLUSTER ${quote(cluster)}`
  if (head.startsWith('DROP')) return `${start}${clause} SYNC`
  return `${start}${clause}${replicate(body.slice(head.length))}`
}

const quote = (name: string): string => `'${name.replace(/[\\']/g, '\\$&')}'`

/** The servers' own default path has the id of the table, so that tables can change places. */
const replicate = (definition: string): string =>
  definition
    .replace(/(\nENGINE = |\s+ENGINE = )(\w*MergeTree)/, '$1Replicated$2')
    .replace(
      new RegExp(`\\b${WINDOW} = (\\d+)`),
      `replicated_deduplication_window = $1, replicated_deduplication_window_seconds = ${DEDUPLICATION_SECONDS}`,
    )

/** From now on the client's commands are for this cluster. */
export function commandOnCluster(client: ClickHouseClient, cluster: string): void {
  const command = client.command.bind(client)
  client.command = (params) =>
    command({
      ...params,
      query: onCluster(params.query, cluster),
      clickhouse_settings: { ...CLUSTER_SETTINGS, ...params.clickhouse_settings },
    })
  const insert = client.insert.bind(client)
  client.insert = (params) =>
    insert({
      ...params,
      clickhouse_settings: { insert_quorum: CLUSTER_SETTINGS.insert_quorum, ...params.clickhouse_settings },
    })
}

/**
 * Checks that the tables that are there are those of this setting.
 * @param cluster null: a single server
 * @throws Error that says what to do
 */
export async function checkTables(client: ClickHouseClient, cluster: string | null): Promise<void> {
  const rows = await readRows<{ name: string }>(client, {
    query: `SELECT name FROM system.tables
      WHERE database = currentDatabase() AND (name LIKE 'calls%' OR name LIKE 'tollgate_%') AND engine LIKE '%MergeTree'
        AND startsWith(engine, 'Replicated') != {isReplicated:Bool}`,
    query_params: { isReplicated: cluster !== null },
  })
  const others = rows.map(({ name }) => name)
  if (others.length === 0) return
  throw new Error(
    cluster === null
      ? `The tables of the call log are replicated (${others.join(', ')}), and clickhouse.cluster of the configuration is not set. Set it to the name of their cluster`
      : `The tables of the call log are those of a single server (${others.join(', ')}), and clickhouse.cluster is set. Name an empty database in CLICKHOUSE_URL, and run \`tollgate logs rebuild\``,
  )
}
