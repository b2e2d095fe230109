/**
 * During a rolling upgrade processes of the former version go on with statements that they have planned. A planned
 * statement that reads every column of a table fails once the table has another column.
 */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { readMigrations } from '../../../../src/postgres/migrate.ts'

const SOURCES = new URL('../../../../src/postgres/', import.meta.url)
/** Migrations up to this one were applied before the rule was known. */
const BEFORE_THE_RULE = 29

const ADDS = /ALTER TABLE (\w+)\s+ADD COLUMN/g
const source = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => readFileSync(new URL(path, SOURCES), 'utf8'))
  .join('\n')

/** Returns whether a statement reads every column of the table: one is a template from quote to quote. */
const isReadWhole = (table: string): boolean =>
  [...source.matchAll(/`[^`]*`/g)].some(
    ([statement]) =>
      new RegExp(`SELECT (\\w+\\.)?\\*[^()]*FROM ${table}\\b`).test(statement) ||
      (new RegExp(`(INTO|UPDATE|DELETE FROM) ${table}\\b`).test(statement) && /RETURNING \*/.test(statement)),
  )

t.ok(isReadWhole('users'), 'a table that is read whole is found')
t.notOk(isReadWhole('jobs'))
for (const { name, version, text } of readMigrations())
  if (version > BEFORE_THE_RULE)
    for (const [, table = ''] of text.matchAll(ADDS))
      t.notOk(isReadWhole(table), `${name} adds a column to ${table}, which no statement reads whole`)
t.end()
