/**
 * A gateway is killed and its disk is gone: a copy of its journal is booked once, however often and by whatever way,
 * and what is left is closed. See docs/cluster.md, "A machine that never comes back".
 */
import { cpSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { answerOf } from '../../src/cli/support.ts'
import { connectTo, verifyWallets } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { signIn } from '../../support/manage.ts'
import { commandEnv, eventually, startService, testConfig, until } from '../../support/service.ts'
import { say, traceOf } from '../support.ts'

const RESERVED_BALANCE = 'wallet: { exact_below: "1000000" }'
const configWith = (extra: string) =>
  testConfig({ fast: { simulate: 'tokens=2' }, slow: { simulate: 'tokens=2000,tps=1' } }, extra)
const COPIED_CALLS = 5

const engines = await startEngines(t)
const lost = await startService(t, {
  engines,
  config: configWith(RESERVED_BALANCE),
  env: { TOLLGATE_ROLES: 'gateway' },
})
const roots = `journals: { import_roots: [${JSON.stringify(lost.dataDir)}] }`
const left = await startService(t, { engines, config: configWith(`${RESERVED_BALANCE}\n${roots}`) })
const sql = connectTo(t, engines.databaseUrl)
const operator = await signIn(left, { role: 'operator' })

const listed = async () => (await operator.send('GET', '/journals')).body.data
const journalOf = async (service: typeof lost) => {
  const directory = join(service.dataDir, 'journal', 'gateway-0')
  const found = (await listed()).find((journal: { directory: string }) => journal.directory === directory)
  return { ...found, directory }
}
const rowsOf = (ids: readonly string[]) => sql<{ request_id: string; status: string; cost: bigint }[]>`
  SELECT request_id, status, cost FROM usage_rows WHERE request_id = ANY (${ids as string[]}) ORDER BY request_id`
const makeSilent = (id: string) =>
  sql`UPDATE journals SET seen_at = now() - interval '6 minutes' WHERE id = ${id}`

async function assertBooksAgree(t: Test): Promise<void> {
  t.same((await verifyWallets(left)).differences, [])
}

async function call(key: string): Promise<string> {
  const response = await lost.chat(key, { model: 'fast', max_tokens: 100, messages: say('hello') })
  t.equal(response.status, 200)
  await response.text()
  return traceOf(response)
}

async function openStream(key: string): Promise<string> {
  const body = { model: 'slow', stream: true, max_tokens: 100, messages: say('hello') }
  const response = await lost.chat(key, body)
  t.equal(response.status, 200)
  void response.text().catch(() => {})
  return traceOf(response)
}

/** Runs a command beside the service that is left. */
const tollgate = (...words: string[]) => answerOf(words, commandEnv(left))

await t.test('a journal in use is live, and is neither imported nor abandoned', async (t) => {
  const { id, state, directory } = await journalOf(lost)
  t.equal(state, 'live')
  t.match(await operator.send('POST', `/journals/${id}/abandon`, {}), { status: 409 })
  t.match(await operator.send('POST', '/journals/import', { directory }), { status: 409 })
  t.match(await operator.send('POST', '/journals/none/abandon', {}), { status: 404 })
  t.match(await operator.send('POST', '/journals/import', { directory: left.dataDir }), { status: 400 })
  const auditor = await signIn(left, { role: 'auditor' })
  t.match(await auditor.send('GET', '/journals'), { status: 200 })
  t.match(await auditor.send('POST', `/journals/${id}/abandon`, {}), { status: 403 })
  const customer = await signIn(left)
  t.match(await customer.send('GET', '/journals'), { status: 403 })
})

await t.test('a directory is named in bounds, and lies below a configured folder', async (t) => {
  const outside = t.testdir({ 'gateway-0': { id: 'sNk3v8ZqPbTr\n' } })
  const link = join(left.dataDir, 'link')
  symlinkSync(outside, link)
  for (const directory of [
    'x'.repeat(1_024),
    `/${'x'.repeat(300)}/y`,
    '/x'.repeat(512),
    join(outside, 'gateway-0'),
    join(link, 'gateway-0'),
    join(left.dataDir, '..', '..', '..', outside, 'gateway-0'),
    '/proc/self',
  ]) {
    const { status, body } = await operator.send('POST', '/journals/import', { directory })
    t.match(
      { status, code: body.error?.code },
      { status: 400, code: 'invalid_request' },
      directory.slice(0, 80),
    )
    t.match(body.error.message, /journals\.import_roots/)
  }
  const tooLong = await operator.send('POST', '/journals/import', { directory: 'x'.repeat(1_025) })
  t.match(tooLong, { status: 400, body: { error: { message: /^directory: / } } })
})

await t.test('a lost machine', async (t) => {
  const { key } = await left.newKey('100000')
  const journal = await journalOf(lost)
  await engines.stopEngine('nats')
  const copied: string[] = []
  for (let i = 0; i < COPIED_CALLS; i++) copied.push(await call(key))
  copied.push(await openStream(key))
  const held = await eventually('a heartbeat tells what it holds', async () => {
    const [row] =
      await sql`SELECT * FROM journals WHERE id = ${journal.id} AND unbooked_calls >= ${COPIED_CALLS}`
    return row
  })
  t.match(held, { open_calls: 1, unbooked_calls: COPIED_CALLS })
  t.ok(held.unbooked_cost > 0n)
  const copy = join(left.dataDir, 'copy')
  cpSync(journal.directory, copy, { recursive: true })
  const notCopied = await openStream(key)
  await lost.kill()
  rmSync(lost.dataDir, { recursive: true })
  t.match(
    await operator.send('POST', '/journals/import', { directory: copy }),
    { status: 409 },
    'nor without NATS',
  )
  await engines.startEngine('nats')
  await until('the service is ready again', async () => (await fetch(`${left.baseUrl}/readyz`)).ok)
  await makeSilent(journal.id)
  t.same(await rowsOf(copied), [], 'only the disk had them')

  await t.test('operators are notified once', async (t) => {
    await left.database.journals.recordSilent()
    t.equal(await left.database.journals.recordSilent(), 0)
    const events = await sql`SELECT subject_id, data FROM events WHERE type = 'journal.silent'`
    t.match(events, [{ subject_id: journal.id, data: { open_calls: 1, unbooked_calls: COPIED_CALLS } }])
    t.match(await journalOf(lost), { state: 'silent' })
  })

  await t.test('imports at the same time, and repeated ones, book each call once', async (t) => {
    // JetStream may take some seconds after its start to answer.
    const send = () =>
      eventually('JetStream answers', async () => {
        const answer = await operator.send('POST', '/journals/import', { directory: copy })
        return answer.status === 409 ? undefined : answer
      })
    const answers = await Promise.all([send(), send()])
    t.same(
      answers.map(({ status }) => status),
      [200, 200],
    )
    const booked = answers.map(({ body }) => body.booked_calls).reduce((sum, count) => sum + count)
    t.equal(booked, COPIED_CALLS + 1)
    const again = await tollgate('journal', 'import', copy)
    t.match(again, {
      booked_calls: 0,
      known_calls: COPIED_CALLS + 1,
      refused_calls: 0,
      damaged_bytes: 0,
      rest_calls: 1,
    })
    const rows = await rowsOf(copied)
    t.equal(rows.filter(({ status, cost }) => status === 'success' && cost > 0n).length, COPIED_CALLS)
    t.equal(rows.filter(({ status, cost }) => status === 'interrupted' && cost === 0n).length, 1)
    t.match(await journalOf(lost), { state: 'silent' }, 'a call is left')
    await assertBooksAgree(t)
  })

  await t.test('abandon closes the rest', async (t) => {
    t.match(await tollgate('journal', 'abandon', journal.id, '--yes'), { interrupted_calls: 1 })
    t.match(await rowsOf([notCopied]), [{ status: 'interrupted', cost: 0n }])
    t.same(await sql`SELECT ref FROM wallet_reservations WHERE journal_id = ${journal.id}`, [])
    t.notOk((await listed()).some(({ id }: { id: string }) => id === journal.id))
    t.match(await operator.send('POST', `/journals/${journal.id}/abandon`, {}), {
      body: { interrupted_calls: 0 },
    })
    t.match(await operator.send('POST', '/journals/import', { directory: copy }), {
      body: { booked_calls: 0 },
    })
    await assertBooksAgree(t)
    const acts = await left.database.auditRecord.list({ subjectId: journal.id, limit: 10 })
    t.match(
      acts.map(({ action }) => action),
      [
        'journal.import',
        'journal.abandon',
        'journal.abandon',
        'journal.import',
        'journal.import',
        'journal.import',
      ],
    )
  })
})

await t.test('a service that stops with everything booked leaves no journal behind', async (t) => {
  const { id } = await journalOf(left)
  t.equal(await left.stop(), 0)
  t.match(await sql`SELECT outcome FROM journals WHERE id = ${id}`, [{ outcome: 'drained' }])
})
