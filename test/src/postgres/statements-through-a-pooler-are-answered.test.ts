/**
 * Through a pooler in transaction mode every statement is answered, whatever statements share its connection.
 * See docs/cluster.md, "A pooler in transaction mode".
 */
import t from 'tap'
import { connect } from '../../../src/postgres/connection.ts'
import { inTransaction } from '../../../src/postgres/transaction.ts'
import { startEngines } from '../../support/engines.ts'
import { startPgBouncer } from '../../support/pgbouncer.ts'

const CONNECTIONS = 4
const AT_ONCE = 24
const STATEMENTS = 60

const engines = await startEngines(t, { only: ['postgres'] })
const pooler = await startPgBouncer(t, engines.databaseUrl)
const sql = connect(pooler.url, { max: CONNECTIONS, name: 'test', isPooled: true })
t.teardown(() => sql.end({ timeout: 1 }))

const KINDS = [
  async () => (await sql<{ n: number }[]>`SELECT 1 AS n`)[0]!.n,
  async (at: number) => (await sql<{ n: number }[]>`SELECT ${at}::integer - ${at - 1}::integer AS n`)[0]!.n,
  async () => (await sql.unsafe<{ n: number }[]>('SELECT 1 AS n'))[0]!.n,
  async (at: number) => {
    const ids = Array.from({ length: at % 50 }, (_, n) => `id ${n}`)
    const [row] = await sql<
      { n: number }[]
    >`SELECT count(*)::integer AS n FROM wallets WHERE account_id = ANY (${ids})`
    return row!.n + 1
  },
  (at: number) =>
    inTransaction(sql, async (transaction) => {
      const [[first], [second]] = await Promise.all([
        transaction<{ n: number }[]>`SELECT 1 AS n`,
        transaction<{ n: number }[]>`SELECT ${at}::integer - ${at}::integer AS n`,
      ])
      return first!.n + second!.n
    }),
]

await t.test('statements of every kind, many at once', async (t) => {
  const answers = Array.from({ length: AT_ONCE }, async (_, worker) => {
    let sum = 0
    for (let at = 0; at < STATEMENTS; at++) sum += await KINDS[(worker + at) % KINDS.length]!(at)
    return sum
  })
  const sums = await Promise.all(answers)
  t.same(new Set(sums), new Set([STATEMENTS]))
})
