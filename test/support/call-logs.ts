/** ClickHouse as it is once the call log's tables are made: making them costs more than all else of a start. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startEmbedded } from '../../src/embedded/start.ts'

const run = promisify(execFile)

const SOURCES = fileURLToPath(new URL('../../src/clickhouse', import.meta.url))

/** Puts a ClickHouse with an empty call log into `<dataDir>/clickhouse`, which may be a link to where it is to be. */
export async function copyCallLog(cache: string, dataDir: string): Promise<void> {
  const template = join(cache, templateName())
  if (!existsSync(template)) await makeTemplate(template, join(dataDir, 'template-log'))
  const folder = join(dataDir, 'clickhouse')
  await mkdir(folder, { recursive: true })
  await run('cp', ['-a', '--reflink=auto', `${template}/.`, folder])
}

/** For this version of ClickHouse and this code of the call log. */
function templateName(): string {
  const manifest: { version: string } = createRequire(import.meta.url)('chdb/package.json')
  const code = createHash('sha256')
  for (const path of readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).sort())
    if (/\.(ts|sql)$/.test(path)) code.update(`${path}\n${readFileSync(join(SOURCES, path), 'utf8')}`)
  return `call-log-${manifest.version}-${code.digest('hex').slice(0, 8)}-unsynced-${process.getuid?.() ?? 0}`
}

async function makeTemplate(template: string, aside: string): Promise<void> {
  await mkdir(aside, { recursive: true })
  const engines = await startEmbedded({ dataDir: aside, engines: ['clickhouse'] })
  try {
    const { openCallLog } = await import('../../src/clickhouse/call-log.ts')
    const callLog = openCallLog(engines.urls.clickhouseUrl ?? '')
    await callLog.migrate()
    await callLog.close()
    await waitForNoDisk(engines.urls.clickhouseUrl ?? '')
  } finally {
    await engines.stop()
  }
  // Fails when another test process was first; its template is as good as ours.
  await rename(join(aside, 'clickhouse'), template).catch(() => undefined)
  await rm(aside, { recursive: true })
}

/** What was inserted outlives a process that is killed all the same: only a machine that goes down loses it. */
async function waitForNoDisk(url: string): Promise<void> {
  const { createClient } = await import('@clickhouse/client')
  const client = createClient({ url })
  const tables = await client.query({
    query: `SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'`,
    format: 'JSONEachRow',
  })
  for (const { name } of await tables.json<{ name: string }>()) {
    const settings = 'fsync_after_insert = 0, fsync_part_directory = 0'
    await client.command({ query: `ALTER TABLE ${name} MODIFY SETTING ${settings}` })
  }
  await client.close()
}
