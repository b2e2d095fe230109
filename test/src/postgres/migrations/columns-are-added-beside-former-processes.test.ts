/**
 * During a rolling upgrade processes of the former version go on with statements that they have planned. A planned
 * statement that reads every column of a table fails once the table has another column.
 */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { readMigrations } from '../../../../src/postgres/migrate.ts'

const SOURCES = new URL('../../../../src/postgres/', import.meta.url)
/** Migrations up to this one are those of the first release: no process of an earlier version runs beside them. */
const FIRST_RELEASE = 10

const COMMENTS = /\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm
/** A template without another in it. */
const TEMPLATE = /`((?:[^`$]|\$(?!\{)|\$\{(?:[^`{}]|\{[^`{}]*\})*\})*)`/g
/** Parentheses without others in them. */
const PARENTHESES = /\(([^()]*)\)/g

/** Returns what the pattern finds, the innermost first, each without what is found inside it; and the rest. */
function peeled(text: string, pattern: RegExp): { readonly parts: readonly string[]; readonly rest: string } {
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
  const names = [...part.matchAll(new RegExp(`\\b(?:FROM|JOIN|INTO|UPDATE) ${table}\\b(?: AS (\\w+))?`, 'g'))]
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
  for (const change of ['ADD COLUMN x int', 'ADD x int', 'DROP y,\n  ADD COLUMN x int', 'DROP y, ADD  x int'])
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
