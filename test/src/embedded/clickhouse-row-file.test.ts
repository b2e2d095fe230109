import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ChdbEngine, type Statement } from '../../../src/embedded/clickhouse/engine.ts'

const statement = (sql: string, data: Buffer | null = null): Statement => ({
  sql,
  data,
  parameters: new Map(),
  settings: new Map(),
  database: 'd',
  format: 'TabSeparated',
  readOnly: false,
})

t.test('rows arrive wherever the folder is, and leave no file', async (t) => {
  const folder = join(t.testdir(), "a{b,c}*? 'd\\e")
  const engine = await ChdbEngine.open(folder, 'd')
  t.teardown(() => engine.close())
  await engine.run(statement('CREATE TABLE rows (id UInt64) ENGINE = MergeTree ORDER BY id'))
  const insert = (rows: string) => engine.run(statement('INSERT INTO rows FORMAT TSV', Buffer.from(rows)))
  const inserted = await Promise.all([insert('1\n2\n'), insert('3\n'), insert('4\n5\n6\n')])
  t.strictSame(
    inserted.map(({ writtenRows }) => writtenRows),
    [2, 1, 3],
  )
  await t.rejects(insert('7\nno number\n'), { code: 27 })
  const { bytes } = await engine.run(statement('SELECT count(), sum(id) FROM rows'))
  t.equal(Buffer.from(bytes).toString(), '6\t21\n')
  t.strictSame(
    readdirSync(folder).filter((name) => name.startsWith('rows')),
    [],
  )
})
