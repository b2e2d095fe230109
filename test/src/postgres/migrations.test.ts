/** Migrations: applied once, and beside processes of the version before. */

import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { migrate, readFunctions, readMigrations } from '../../../src/postgres/migrate.ts'
import { connectTo } from '../../support/connections.ts'
import { freshDatabase } from '../../support/engines.ts'
import { sharePostgres } from './support.ts'

t.test('columns are added beside former processes', async (t) => {
  // * During a rolling upgrade processes of the former version go on with statements that they have planned. A planned
  // statement that reads every column of a table fails once the table has another column.
  const SOURCES = new URL('../../../src/postgres/', import.meta.url)
  /** Migrations up to this one are those of the first release: no process of an earlier version runs beside them. */
  const FIRST_RELEASE = 10

  const COMMENTS = /\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm
  /** A template without another in it. */
  const TEMPLATE = /`((?:[^`$]|\$(?!\{)|\$\{(?:[^`{}]|\{[^`{}]*\})*\})*)`/g
  /** Parentheses without others in them. */
  const PARENTHESES = /\(([^()]*)\)/g

  /** Returns what the pattern finds, the innermost first, each without what is found inside it; and the rest. */
  function peeled(
    text: string,
    pattern: RegExp,
  ): { readonly parts: readonly string[]; readonly rest: string } {
    const parts: string[] = []
    for (let before = text; ; ) {
      const rest = before.replace(pattern, (_, part: string) => {
        parts.push(part)
        return '?'
      })
      if (rest === before) return { parts, rest }
      before = rest
    }
  }

  const sources = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => readFileSync(new URL(path, SOURCES), 'utf8'))
  const statementsOf = (source: string) => peeled(source.replace(COMMENTS, ''), TEMPLATE).parts

  /** Returns whether a part of a statement reads every column of the table, by its own name or another. */
  function readsWhole(part: string, table: string): boolean {
    const names = [
      ...part.matchAll(new RegExp(`\\b(?:FROM|JOIN|INTO|UPDATE) ${table}\\b(?: AS (\\w+))?`, 'g')),
    ]
    return names.some(([, alias = table]) =>
      new RegExp(`(?:SELECT|RETURNING) (?:DISTINCT )?\\*|\\b${alias}\\.\\*`).test(part),
    )
  }

  const isReadWhole = (table: string, from: readonly string[] = sources): boolean =>
    from
      .flatMap(statementsOf)
      .flatMap((statement) => {
        const { parts, rest } = peeled(statement, PARENTHESES)
        return [...parts, rest]
      })
      .some((part) => readsWhole(part, table))

  /** Returns the tables to which a migration adds a column. */
  function tablesWithMore(migration: string): readonly string[] {
    const changes = migration
      .replace(/--.*/g, '')
      .matchAll(/\bALTER TABLE (?:IF EXISTS )?(?:ONLY )?(\w+)\s([^;]*)/g)
    return [...changes].flatMap(([, table = '', change = '']) =>
      /\bADD (?!CONSTRAINT|PRIMARY|UNIQUE|FOREIGN|CHECK|EXCLUDE|GENERATED)/.test(change.replace(/\s+/g, ' '))
        ? [table]
        : [],
    )
  }

  t.test('every form of a statement is found', async (t) => {
    for (const statement of [
      'SELECT * FROM a WHERE x',
      'SELECT b.*, ARRAY(SELECT id FROM c WHERE c.b = b.id) AS ids FROM a AS b',
      'SELECT (SELECT 1), b.* FROM c JOIN a AS b ON b.id = c.id',
      'SELECT n FROM (SELECT * FROM a) AS all_of_it',
      'SELECT ${x ? sql`1` : sql`b.id`}, b.* FROM a AS b',
      'UPDATE a SET x = f(1) RETURNING *',
      'INSERT INTO a AS b (x) VALUES (1) RETURNING b.*',
    ])
      t.ok(isReadWhole('a', [`/* A \` in a comment. */\nsql\`${statement}\``]), statement)
    for (const statement of [
      'SELECT b.id, count(*) FROM a AS b',
      'SELECT c.* FROM c JOIN a AS b ON b.id = c.id',
      'SELECT id FROM a WHERE EXISTS (SELECT * FROM c)',
    ])
      t.notOk(isReadWhole('a', [`sql\`${statement}\``]), statement)
  })

  t.test('every form of a new column is found', async (t) => {
    for (const change of [
      'ADD COLUMN x int',
      'ADD x int',
      'DROP y,\n  ADD COLUMN x int',
      'DROP y, ADD  x int',
    ])
      t.same(tablesWithMore(`CREATE TABLE b (x int);\nALTER TABLE a\n  ${change};`), ['a'], change)
    for (const change of ['ADD CONSTRAINT x CHECK (y > 0)', 'ADD PRIMARY KEY (x)', 'DROP COLUMN x -- ADD z'])
      t.same(tablesWithMore(`ALTER TABLE a ${change};`), [], change)
  })

  t.test('no statement reads every column of a table that gets another', async (t) => {
    t.ok(isReadWhole('users'), 'a table that is read whole is found')
    for (const table of ['jobs', 'knowledge_bases']) t.notOk(isReadWhole(table), table)
    for (const { name, version, text } of readMigrations())
      if (version > FIRST_RELEASE)
        for (const table of tablesWithMore(text))
          t.notOk(isReadWhole(table), `${name} adds a column to ${table}, which no statement reads whole`)
  })
})

t.test('migrations applied once', async (t) => {
  const { databaseUrl } = await sharePostgres()
  const migrations = readMigrations()
  const functions = readFunctions()
  const functionNames = functions.map(({ name }) => `functions/${name}`)
  const names = [...migrations.map(({ name }) => name), ...functionNames]

  t.test(
    'six processes that start at once: one applies all, the others wait and find them done',
    async (t) => {
      const url = await freshDatabase(databaseUrl)
      const applied = await Promise.all(Array.from({ length: 6 }, () => migrate(url)))
      t.same(
        applied.filter((list) => list.length > 0),
        [names],
      )
      t.same(await migrate(url), [], 'a later start applies nothing')
    },
  )

  t.test('only what is missing is applied', async (t) => {
    const url = await freshDatabase(databaseUrl)
    t.same(await migrate(url, migrations.slice(0, 2), []), names.slice(0, 2))
    t.same(await migrate(url), names.slice(2))
  })

  t.test('a migration that fails leaves nothing of itself and those before it', async (t) => {
    const url = await freshDatabase(databaseUrl)
    const broken = {
      version: 2,
      name: '0002_broken',
      text: 'CREATE TABLE half (); SELECT 1/0',
      checksum: 'x',
    }
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
      functions.map((file) =>
        file.name === 'billing' ? { ...file, checksum, text: change(file.text) } : file,
      )
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
    t.throws(
      () => readMigrations(pathToFileURL(`${folder}/`)),
      /0003_c\.sql is out of order: number 2 is due/,
    )
    t.end()
  })
})
