/** The session that a client names: in the rows of its calls, and summed up. */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { signIn } from '../../support/manage.ts'
import { type LogJson, testConfig, until } from '../../support/service.ts'
import { say } from '../support.ts'

interface Row extends LogJson {
  readonly session_id: string | null
}

t.test('calls of a session', async (t) => {
  const service = await borrowService(t, testConfig({ fast: { simulate: 'tokens=2' } }))
  const { accountId, key } = await service.newKey('1000')
  const call = async (model: string, headers: Record<string, string>) => {
    const response = await service.chat(key, { model, messages: say('hi'), max_tokens: 2 }, { headers })
    await response.arrayBuffer()
    return response.status
  }
  t.equal(await call('fast', { 'x-session-id': 'run 7', 'session-id': 'run 8' }), 200)
  t.equal(await call('fast', { 'x-claude-code-session-id': 'run 7' }), 200)
  t.equal(await call('nothing', { session_id: 'run 7' }), 400)
  t.equal(await call('fast', { session_id: 'x'.repeat(129) }), 200)
  t.equal(await call('fast', {}), 200)
  const rows = async (query: string) => {
    const answer = await service.get(key, `/v1/logs?${query}`)
    return ((await answer.json()) as { data: Row[] }).data
  }
  await until('all calls are logged', async () => (await rows('')).length === 5)
  t.same((await rows('')).map((row) => row.session_id).sort(), [null, null, 'run 7', 'run 7', 'run 8'].sort())
  t.same(
    (await rows('session_id=run%207')).map(({ status }) => status),
    ['rejected', 'success'],
  )
  t.equal((await service.get(key, '/v1/logs/summary?session_id=run%207')).status, 400)
  const operator = await signIn(service, { role: 'operator' })
  const sums = await operator.send('GET', `/usage/sessions?account_id=${accountId}&period=7d`)
  t.equal(sums.status, 200)
  t.match(sums.body, {
    has_more: false,
    data: [
      { session_id: 'run 7', requests: 2 },
      { session_id: 'run 8', requests: 1 },
    ],
  })
  const first = await operator.send('GET', `/usage/sessions?account_id=${accountId}&limit=1`)
  t.match(first.body, { has_more: true, data: [{ session_id: 'run 7' }] })
})
