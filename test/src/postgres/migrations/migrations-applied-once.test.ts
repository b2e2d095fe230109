import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { migrate, readFunctions, readMigrations } from '../../../../src/postgres/migrate.ts'
import { connectTo } from '../../../support/connections.ts'
import { freshDatabase, startEngines } from '../../../support/engines.ts'

const { databaseUrl } = await startEngines(t, { only: ['postgres'] })
const migrations = readMigrations()
const functions = readFunctions()
const functionNames = functions.map(({ name }) => `functions/${name}`)
const names = [...migrations.map(({ name }) => name), ...functionNames]

t.test('six processes that start at once: one applies all, the others wait and find them done', async (t) => {
  const url = await freshDatabase(databaseUrl)
  const applied = await Promise.all(Array.from({ length: 6 }, () => migrate(url)))
  t.same(
    applied.filter((list) => list.length > 0),
    [names],
  )
  t.same(await migrate(url), [], 'a later start applies nothing')
})

t.test('only what is missing is applied', async (t) => {
  const url = await freshDatabase(databaseUrl)
  t.same(await migrate(url, migrations.slice(0, 2), []), names.slice(0, 2))
  t.same(await migrate(url), names.slice(2))
})

t.test('a migration that fails leaves nothing of itself and those before it', async (t) => {
  const url = await freshDatabase(databaseUrl)
  const broken = { version: 2, name: '0002_broken', text: 'CREATE TABLE half (); SELECT 1/0', checksum: 'x' }
  await t.rejects(migrate(url, [migrations[0]!, broken], []), { code: '22012' })
  const sql = connectTo(t, url)
  const [half] = await sql`SELECT to_regclass('half') AS name, to_regclass('accounts')::text AS accounts`
  t.same({ ...half }, { name: null, accounts: 'accounts' })
  t.same(await migrate(url), names.slice(1))
})

t.test('an edited migration and a newer database are refused', async (t) => {
  const url = await freshDatabase(databaseUrl)
  await migrate(url)
  const edited = migrations.map((migration, index) =>
    index === 1 ? { ...migration, checksum: 'other' } : migration,
  )
  await t.rejects(migrate(url, edited), { code: 'schema_mismatch', message: /0002_billing/ })
  await t.rejects(migrate(url, migrations.slice(0, -1)), {
    code: 'schema_mismatch',
    message: /newer version/,
  })
})

t.test('a file of functions is applied again when it has changed, whole or not at all', async (t) => {
  const url = await freshDatabase(databaseUrl)
  await migrate(url)
  const sql = connectTo(t, url)
  const reserved = async () => {
    const [row] = await sql<[{ amount: bigint }]>`SELECT reserved_in('acc_1') AS amount`
    return row.amount
  }
  const withBilling = (checksum: string, change: (text: string) => string) =>
    functions.map((file) => (file.name === 'billing' ? { ...file, checksum, text: change(file.text) } : file))
  const edited = withBilling('edited', (text) =>
    text.replace('sum(amount), 0)::bigint', 'sum(amount), 7)::bigint'),
  )
  t.same(await migrate(url, migrations, edited), ['functions/billing'])
  t.equal(await reserved(), 7n)
  t.same(await migrate(url, migrations, edited), [])
  const broken = withBilling('broken', (text) => `${text}; SELECT 1/0`)
  await t.rejects(migrate(url, migrations, broken), { code: '22012' })
  t.equal(await reserved(), 7n)
  t.same(await migrate(url), ['functions/billing'])
  t.equal(await reserved(), 0n)
})

t.test('no file is edited that databases have applied', (t) => {
  const applied = createHash('sha256')
  for (const { name, checksum } of migrations.slice(0, 10)) applied.update(`${name} ${checksum}\n`)
  // Where a file of these was edited, take the edit back and add a migration.
  t.equal(applied.digest('hex'), 'b02d18908a51d24563cd9d7314941128f72c78119b3720da852ef0eafa3715b2')
  t.end()
})

t.test('numbers have no gap and no double', (t) => {
  const folder = t.testdir()
  for (const [index, file] of ['0001_a.sql', '0003_c.sql'].entries()) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, file), `SELECT ${index}`)
  }
  t.throws(() => readMigrations(pathToFileURL(`${folder}/`)), /0003_c\.sql is out of order: number 2 is due/)
  t.end()
})
