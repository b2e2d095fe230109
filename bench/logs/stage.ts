/** Everything a run uses: engines, connections and the service, from the first row to the last query. */
import { join } from 'node:path'
import { type CallLog, openCallLog } from '../../src/clickhouse/call-log.ts'
import type { EmbeddedEngines } from '../../src/embedded/start.ts'
import { connect, type Sql } from '../../src/postgres/connection.ts'
import { type Statements, statementsTo } from './engines/clickhouse-statements.ts'
import { httpEngine } from './engines/http.ts'
import { postgresCensus, postgresEngine } from './engines/postgres.ts'
import { tuneServer } from './engines/postgres-server.ts'
import { type RunningService, startService } from './engines/service.ts'
import { clickhouseCensus, tollgateEngine } from './engines/tollgate.ts'
import type { Asked } from './queries/rounds.ts'
import type { Account } from './rows/population.ts'

export interface Stage {
  readonly sql: Sql
  readonly log: CallLog
  readonly statements: Statements
  /** Starts the service on the built rows. */
  openService(folder: string): Promise<RunningService>
  /** Returns the engines to query about the account. */
  askedAbout(account: Account, service: RunningService, wanted: AskedWanted): Promise<Asked[]>
  /** Closes everything in reverse order. */
  close(): Promise<void>
}

interface AskedWanted {
  /** The most requests to the service. */
  readonly requests: number
  readonly hasTable: boolean
}

export const openStage = async (engines: EmbeddedEngines): Promise<Stage> => {
  const { clickhouseUrl, databaseUrl } = engines.urls
  if (clickhouseUrl === null || databaseUrl === null) throw new Error('ClickHouse and PostgreSQL are needed')
  await tuneServer(engines)
  const sql = connect(databaseUrl, { max: 2, name: 'bench' })
  const log = openCallLog(clickhouseUrl)
  const statements = statementsTo(clickhouseUrl)
  const closing = [() => sql.end({ timeout: 1 }), () => log.close()]
  return {
    sql,
    log,
    statements,
    openService: async (folder) => {
      const service = await startService({ folder: join(folder, 'service'), databaseUrl, clickhouseUrl }, sql)
      closing.push(() => service.stop())
      return service
    },
    askedAbout: async (account, service, { requests, hasTable }) => [
      { engine: tollgateEngine(log), census: clickhouseCensus(statements), counting: statements },
      {
        engine: await httpEngine(service, account.id, requests),
        census: clickhouseCensus(statements),
        counting: null,
      },
      ...(hasTable ? [{ engine: postgresEngine(sql), census: postgresCensus(sql), counting: null }] : []),
    ],
    close: async () => {
      for (const close of closing.reverse()) await close()
    },
  }
}
