import postgres from 'postgres'
import t from 'tap'
import { openDatabase } from '../../../src/postgres/database.ts'
import { migrate } from '../../../src/postgres/migrate.ts'
import type { IdempotencyScope } from '../../../src/postgres/requests/idempotency.ts'
import { newAccount } from '../../src/postgres/support.ts'
import { startEngines } from '../../support/engines.ts'
import { TEST_MASTER_KEY } from '../../support/service.ts'

t.test('a key belongs to one request at a time, and its answer to seven days', async (t) => {
  const { databaseUrl } = await startEngines(t, { only: ['postgres'] })
  await migrate(databaseUrl)
  const database = await openDatabase({ url: databaseUrl, masterKey: TEST_MASTER_KEY })
  const sql = postgres(databaseUrl, { max: 1 })
  t.teardown(() => Promise.all([database.close(), sql.end()]))
  const claim = (requestId: string, key = 'k', scope: IdempotencyScope = 'account:a') => ({
    scope,
    key,
    requestId,
    requestHash: Buffer.from('hash of what is asked'),
  })
  const answer = { status: 200, headers: [['content-type', 'x/y']] as const, body: Buffer.from([0, 255, 10]) }

  const outcomes = await Promise.all(
    Array.from({ length: 20 }, (_, i) => database.idempotency.claim(claim(`req_${i}`))),
  )
  const won = outcomes.flatMap(({ outcome }, i) => (outcome === 'claimed' ? [i] : []))
  t.equal(won.length, 1, 'one of twenty at once has it')
  t.equal(outcomes.filter(({ outcome }) => outcome === 'running').length, 19)
  t.match(
    await database.idempotency.claim(claim('req_x', 'k', 'account:b')),
    { outcome: 'claimed' },
    'by account',
  )

  await database.idempotency.store(claim('req_other'), answer)
  t.match(await database.idempotency.claim(claim('req_y')), { outcome: 'running' }, 'only its owner stores')
  await database.idempotency.store(claim(`req_${won[0]}`), answer)
  t.match(await database.idempotency.claim(claim('req_z')), {
    outcome: 'stored',
    requestId: `req_${won[0]}`,
    status: 200,
    headers: [['content-type', 'x/y']],
    body: answer.body,
  })

  await database.idempotency.claim(claim('req_1', 'freed'))
  await database.idempotency.free(claim('req_1', 'freed'))
  t.match(await database.idempotency.claim(claim('req_2', 'freed')), { outcome: 'claimed' })
  await database.idempotency.free(claim('req_1', 'freed'))
  t.match(
    await database.idempotency.claim(claim('req_3', 'freed')),
    { outcome: 'running' },
    'a late free is none',
  )
  await sql`UPDATE idempotency_records SET frees_at = now() WHERE key = 'freed'`
  t.match(
    await database.idempotency.claim(claim('req_4', 'freed')),
    { outcome: 'claimed' },
    'after ten minutes',
  )
  await database.idempotency.claim(claim('req_7', 'found again'))
  await database.idempotency.store(claim('req_7', 'found again'), answer, 'req_first')
  t.match(await database.idempotency.claim(claim('req_8', 'found again')), {
    outcome: 'stored',
    requestId: 'req_first',
  })
  await database.idempotency.store(claim('req_4', 'freed'), null)
  t.match(await database.idempotency.claim(claim('req_5', 'freed')), { outcome: 'too_large' })

  await sql`UPDATE idempotency_records SET expires_at = now() WHERE key = 'k'`
  t.match(await database.idempotency.claim(claim('req_6')), { outcome: 'claimed' }, 'after seven days')
  await sql`UPDATE idempotency_records SET expires_at = now()`
  t.equal(await database.idempotency.purge(), 4)
  t.equal(await database.idempotency.purge(), 0)
  await t.test(
    'an act keeps its answer with what it does: who repeats it meanwhile waits for its end',
    async (t) => {
      const repeat = () =>
        database.transactAs('user:a', async ({ idempotency }) => {
          const { outcome } = await idempotency.claim(claim('req_act', 'act', 'actor:user:a'))
          if (outcome === 'claimed') await idempotency.store(claim('req_act', 'act', 'actor:user:a'), answer)
          return outcome
        })
      const undone = database.transactAs('user:a', async ({ idempotency }) => {
        await idempotency.claim(claim('req_undone', 'act', 'actor:user:a'))
        throw new Error('undone')
      })
      await t.rejects(undone, { message: 'undone' })
      t.same((await Promise.all([repeat(), repeat(), repeat()])).sort(), ['claimed', 'stored', 'stored'])
    },
  )

  await t.test('a payment keeps its key for ever', async (t) => {
    const accountId = await newAccount(database)
    const idempotency = claim('req_pay', 'pay', 'payments:user:a')
    const pay = () =>
      database.payments.create({
        ...{ accountId, kind: 'checkout', credits: 1n, amount: 1n, currency: 'usd' },
        idempotency,
      })
    const { id } = await pay()
    await database.idempotency.purge()
    t.equal((await pay()).id, id)
    t.match(
      await sql`SELECT subject, expires_at = 'infinity' AS stays FROM idempotency_records WHERE key = 'pay'`,
      [{ subject: id, stays: true }],
    )
  })
})
