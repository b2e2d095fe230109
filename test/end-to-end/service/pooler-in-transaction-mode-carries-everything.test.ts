/**
 * The service connects to PostgreSQL through PgBouncer in transaction mode: calls, tasks, key changes, jobs and commands
 * work, and each process has at most one direct session. See docs/cluster.md, "A pooler in transaction mode".
 */
import t from 'tap'
import { answerOf } from '../../src/cli/support.ts'
import { connectTo } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { signIn } from '../../support/manage.ts'
import { startPgBouncer } from '../../support/pgbouncer.ts'
import { commandEnv, eventually, startService, until } from '../../support/service.ts'
import { GENERATIONS, withQueuedImages } from '../media/image-support.ts'
import { say, traceOf } from '../support.ts'

const CALLS = 30
/** More than a start needs. */
const MANY_TRANSACTIONS = 100

const engines = await startEngines(t)
const pooler = await startPgBouncer(t, engines.databaseUrl)
const env = { DATABASE_URL: pooler.url, DATABASE_SESSION_URL: engines.databaseUrl }
const service = await startService(t, { engines, config: withQueuedImages(), env })
const sql = connectTo(t, engines.databaseUrl)
const operator = await signIn(service, { role: 'operator' })
const chatModel = async (key: string): Promise<string> => {
  const { data } = (await (await service.get(key, '/v1/models')).json()) as { data: { id: string }[] }
  const id = data.find((model) => !model.id.includes('image') && /sonata|chat|sim/.test(model.id))?.id
  return id ?? data[0]!.id
}

await t.test('calls of plain, capped and poor keys are settled', async (t) => {
  const { accountId, key } = await service.newKey('1000')
  const capped = await service.database.keys.create({
    accountId,
    name: 'capped',
    kind: 'employee',
    spendCap: 10_000_000_000n,
  })
  const model = await chatModel(key)
  const call = async (by: string, stream: boolean) => {
    const body = { model, stream, max_tokens: 20, messages: say('hello') }
    const response = await service.chat(by, body)
    t.equal(response.status, 200)
    await response.text()
    return traceOf(response)
  }
  const ids: string[] = []
  for (let i = 0; i < CALLS / 3; i++)
    ids.push(...(await Promise.all([call(key, true), call(capped.raw, false), call(capped.raw, true)])))
  await until('all are booked', async () => {
    const rows = await sql`SELECT FROM usage_rows WHERE request_id = ANY (${ids}) AND status = 'success'`
    return rows.length === ids.length
  })
  const { key: poor } = await service.newKey('0')
  t.equal((await service.chat(poor, { model, max_tokens: 20, messages: say('hello') })).status, 402)
  const rows = await service.logs(key, (found) => found.length >= CALLS / 3)
  t.ok(rows.every(({ status }) => status === 'success'))
})

await t.test('a task is made and charged', async (t) => {
  const { key } = await service.newKey('1000')
  const send = (path: string, init: RequestInit = {}) =>
    fetch(service.baseUrl + path, { ...init, headers: { authorization: `Bearer ${key}` } })
  const body = JSON.stringify({ model: 'queued-image', prompt: 'a lighthouse', async: true })
  const submitted = await send(GENERATIONS, { method: 'POST', body })
  t.equal(submitted.status, 200)
  const { id } = (await submitted.json()) as { id: string }
  const ended = await eventually('the task ends', async () => {
    const task = (await (await send(`${GENERATIONS}/${id}`)).json()) as { status: string }
    return ['queued', 'running'].includes(task.status) ? undefined : task
  })
  t.match(ended, { status: 'succeeded' })
})

await t.test('a revoked key is refused within a second or so, on notification', async (t) => {
  const { key, keyId } = await service.newKey('1000')
  const model = await chatModel(key)
  const call = () => service.chat(key, { model, max_tokens: 20, messages: say('hello') })
  t.equal((await call()).status, 200)
  t.match(await operator.send('POST', `/keys/${keyId}/revoke`, {}), { status: 200 })
  await until('it is refused', async () => (await call()).status === 401)
})

await t.test('acts are in the audit record with their actor', async (t) => {
  const { accountId, keyId } = await service.newKey('10')
  t.match(await operator.send('PATCH', `/keys/${keyId}`, { name: 'renamed' }), { status: 200 })
  const acts = await service.database.auditRecord.list({ accountId, action: 'key.update', limit: 5 })
  t.match(acts, [{ actor: `user:${operator.user.id}` }])
})

await t.test('commands and jobs run', async (t) => {
  const tollgate = (...words: string[]) => answerOf(words, { ...commandEnv(service), ...env })
  const { id } = await tollgate('account', 'create', '--name', 'pooled', '--credit', '500')
  const { key } = await tollgate('key', 'create', '--account', id, '--name', 'pooled')
  t.equal((await service.get(key, '/v1/key/balance')).status, 200)
  const [act] = await service.database.auditRecord.list({ accountId: id, action: 'key.create', limit: 1 })
  t.match(act, { actor: /^operator:/ })
  t.same((await tollgate('wallet', 'verify')).differences, [])
  const { body: job } = await operator.send('POST', '/jobs', { kind: 'verify' })
  const ended = await eventually('the job ends', async () => {
    const { body } = await operator.send('GET', `/jobs/${job.id}`)
    return body.ended_at === null ? undefined : body
  })
  t.match(ended, { state: 'done', verified: { ok: true } })
})

await t.test('each process has one session beside the pooler at most', async (t) => {
  const rows = await sql<{ name: string; sessions: number }[]>`
    SELECT application_name AS name, count(*)::integer AS sessions FROM pg_stat_activity
    WHERE application_name ~ '(session|copying)$' GROUP BY 1 ORDER BY 1`
  t.same(rows, [
    { name: 'tollgate gateway 0 session', sessions: 1 },
    { name: 'tollgate settler+tasks copying', sessions: 1 },
    { name: 'tollgate settler+tasks session', sessions: 1 },
  ])
  t.ok((await pooler.transactions()) > MANY_TRANSACTIONS, 'the rest went through the pooler')
  t.equal(await service.stop(), 0)
})
