/** A call is in the log as soon as its answer has ended: in the first page, by its id, and in the management API. */
import t from 'tap'
import { signIn } from '../../support/manage.ts'
import { type LogJson, startService, testConfig } from '../../support/service.ts'
import { say, traceOf } from '../support.ts'

const CALLS = 12

t.test('own calls', async (t) => {
  const config = testConfig({ fast: { simulate: 'tokens=3' }, broken: { simulate: 'fault=status:500' } })
  const service = await startService(t, { config, env: { TOLLGATE_WORKERS: '2' } })
  const { accountId, key } = await service.newKey('1000')
  const operator = await signIn(service, { role: 'operator' })
  const read = async (path: string) => {
    const response = await service.get(key, path)
    t.equal(response.status, 200)
    return response
  }
  const readData = async (path: string) => ((await (await read(path)).json()) as { data: LogJson[] }).data

  await t.test('each call is in the first answer, whichever process reads', async (t) => {
    for (let made = 1; made <= CALLS; made += 1) {
      const model = made % 4 === 0 ? 'broken' : made % 4 === 1 ? 'nothing' : 'fast'
      const body = { model, messages: say('hi'), stream: made % 2 === 0 }
      const response = await service.chat(key, body)
      await response.arrayBuffer()
      const rows = await readData('/v1/logs?limit=100')
      t.equal(rows.length, made)
      t.equal(new Set(rows.map(({ id }) => id)).size, made, 'no row comes twice')
      t.equal(rows[0]?.request_id, traceOf(response))
      t.same(await readData(`/v1/logs?ref=${traceOf(response)}`), [rows[0]])
      t.match(await (await read(`/v1/logs/${rows[0]?.id}`)).text(), traceOf(response))
      const csv = await (await read('/v1/logs?format=csv')).text()
      t.equal(csv.trim().split('\r\n').length, made + 1)
      const managed = await operator.send('GET', `/calls?account_id=${accountId}`)
      t.same(
        managed.body.data.map(({ id }: LogJson) => id),
        rows.map(({ id }) => id),
      )
    }
  })

  await t.test('bounds and what calls are not filter alike, whichever database has the calls', async (t) => {
    const find = async (query: string) => {
      const { status, body } = await operator.send('GET', `/calls?account_id=${accountId}&limit=100&${query}`)
      t.equal(status, 200, query)
      return body.data as LogJson[]
    }
    const all = await find('')
    const costs = all.map(({ cost }) => Number(cost))
    const check = async (state: string) => {
      for (const [query, isFound] of [
        ['not_model=broken', ({ model }: LogJson) => model !== 'broken'],
        ['not_model=broken,nothing', ({ model }: LogJson) => model === 'fast'],
        ['not_error_code=upstream_error', ({ error_code }: LogJson) => error_code !== 'upstream_error'],
        ['cost_above=0', ({ cost }: LogJson) => Number(cost) > 0],
        [`cost_above=${Math.max(...costs)}`, () => false],
        ['latency_above_ms=0', ({ latency_ms }: LogJson) => Number(latency_ms) > 0],
        ['latency_above_ms=3600000', () => false],
      ] as const) {
        const wanted = all.filter(isFound).map(({ id }) => id)
        t.same(
          (await find(query)).map(({ id }) => id),
          wanted,
          `${query}, ${state}`,
        )
        const series = await operator.send('GET', `/calls/series?account_id=${accountId}&${query}`)
        t.equal(series.status, 200)
      }
    }
    await check('some only in PostgreSQL')
    await service.logs(key, (found) => found.length === CALLS)
    await check('all in ClickHouse')
    t.match(await operator.send('GET', `/calls?account_id=${accountId}&cost_above=much`), { status: 400 })
  })

  await t.test('while PostgreSQL is away, the log has what ClickHouse has', async (t) => {
    await service.logs(key, (found) => found.length === CALLS)
    await service.engines.stopEngine('postgres')
    const rows = await readData('/v1/logs?limit=100')
    t.ok(rows.length > 0)
  })
})
