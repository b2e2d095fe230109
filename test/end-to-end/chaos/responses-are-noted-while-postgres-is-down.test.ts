/**
 * While PostgreSQL is away, answers that an upstream keeps end as usual and are charged; calls can go on with them in
 * the process that noted them, and in every process once PostgreSQL is back.
 * See docs/failure-modes.md, "Engines", row 69.
 */
import t from 'tap'
import { parseCredits, printCredits } from '../../../schemas/money.ts'
import { connectTo } from '../../support/connections.ts'
import { startService, until } from '../../support/service.ts'
import { configOf, simulated } from '../protocols/support.ts'
import { balanceOf, post, rowsOf, traceOf } from '../support.ts'

const CREDIT = '1000000'
const CONFIG = configOf({ kept: {} }, [
  simulated('responses', { kept: 'sim-one@tokens=8' }, { keeps_responses_days: 30 }),
])
const CALLS = 6

t.test('the note of a response never holds up or fails its call', async (t) => {
  const service = await startService(t, { config: CONFIG, env: { TOLLGATE_WORKERS: '1' } })
  const sql = connectTo(t, service.engines.databaseUrl)
  const { key } = await service.newKey(CREDIT)
  const ask = (more: object) => post(service, key, '/v1/responses', { model: 'kept', input: 'hi', ...more })
  t.equal((await ask({})).status, 200, 'the key is known')

  await service.engines.stopEngine('postgres')
  const ids: string[] = []
  const traces: string[] = []
  for (let n = 0; n < CALLS; n++) {
    const stream = n % 2 === 0
    const answer = await ask({ stream, input: `hi ${n}` })
    const text = await answer.text()
    t.equal(answer.status, 200)
    if (stream) t.match(text, /event: response\.completed/)
    ids.push(/"id":"(resp_[^"]+)"/.exec(text)?.[1] ?? '')
    traces.push(traceOf(answer))
  }
  const next = await ask({ previous_response_id: ids[0] })
  t.equal(next.status, 200, 'goes on before PostgreSQL is back')
  t.match(await next.json(), { previous_response_id: ids[0] })

  await service.engines.startEngine('postgres')
  await until('PostgreSQL has the notes', async () => {
    const rows = await sql<{ id: string }[]>`SELECT id FROM stored_responses`.catch(() => [])
    const noted = new Set(rows.map(({ id }) => id))
    return ids.every((id) => noted.has(id))
  })
  const rows = await rowsOf(service, key, [...traces, traceOf(next)])
  for (const row of rows) t.match(row, { status: 'success', cost: /[1-9]/ })
  const all = await service.logs(key, (found) => found.length === CALLS + 2)
  const spent = all.reduce((sum, { cost }) => sum + parseCredits(cost), 0n)
  t.equal((await balanceOf(service, key)).remaining, printCredits(parseCredits(CREDIT) - spent))
})
