import { createHash } from 'node:crypto'
import t from 'tap'
import type { CallStats, RequestView } from '../../simulator/calls.ts'
import { call, callsOf, chatBody, chatRequest, lastCallThat, open, simulatorFor } from './support.ts'

const statsOf = async (url: string) => (await (await fetch(`${url}/simulator/stats`)).json()) as CallStats

t.test('a call is recorded with what it was and how it ended', async (t) => {
  const { url } = await simulatorFor(t)
  const body = chatBody('sim-large@tokens=6', { stream: true })
  const answer = await call(url, body, { 'x-request-id': 'req_1' })
  t.match(answer.head, /x-simulator-call: 1/)
  await call(url, chatBody('sim'), { 'x-request-id': 'req_2' })
  const [record, ...others] = await callsOf(url, 'req_1')
  t.same(others, [])
  t.match(record, {
    ...{
      id: 1,
      path: '/v1/chat/completions',
      model: 'sim-large@tokens=6',
      request_id: 'req_1',
      stream: true,
    },
    ...{ body_bytes: Buffer.byteLength(body), state: 'completed', output_tokens: 6 },
  })
  t.ok(Date.parse(record?.at ?? '') <= Date.parse(record?.closed_at ?? ''))
  t.equal((await callsOf(url)).length, 2)
  t.same(await callsOf(url, 'req_3'), [])
})

t.test('the numbers add up, and clearing keeps what still runs', async (t) => {
  const { url } = await simulatorFor(t)
  await call(url, chatBody('sim'))
  await call(url, chatBody('sim@fault=reset:9'))
  const left = open(url, chatRequest(chatBody('sim@ttft=600000')))
  await lastCallThat(url, (record) => record.model === 'sim@ttft=600000')
  left.destroy()
  await lastCallThat(url, (record) => record.state === 'client_closed')
  const staying = open(url, chatRequest(chatBody('sim@fault=hang')))
  await lastCallThat(url, (record) => record.model === 'sim@fault=hang')
  t.same(await statsOf(url), { calls: 4, running: 1, completed: 1, client_closed: 1, faulted: 1 })
  t.equal((await fetch(`${url}/simulator/calls`, { method: 'DELETE' })).status, 204)
  t.same(await statsOf(url), { calls: 1, running: 1, completed: 0, client_closed: 0, faulted: 0 })
  t.match(await callsOf(url), [{ model: 'sim@fault=hang', state: 'running' }])
  staying.destroy()
  await lastCallThat(url, (record) => record.state === 'client_closed')
  t.same(await statsOf(url), { calls: 1, running: 0, completed: 0, client_closed: 1, faulted: 0 })
})

t.test('a request is kept as it was on the wire, its credentials as digests', async (t) => {
  const { url } = await simulatorFor(t)
  const body = `${chatBody('sim', { unknown_field: '你好' })}\n `
  await call(url, body, { authorization: 'Bearer secret-1', 'X-Custom': 'Kept', 'x-api-key': 'secret-2' })
  const response = await fetch(`${url}/simulator/calls/1/request`)
  const text = await response.text()
  const kept = JSON.parse(text) as RequestView
  t.equal(Buffer.from(kept.body_base64, 'base64').toString('utf8'), body)
  t.match(kept, { id: 1, method: 'POST', path: '/v1/chat/completions' })
  const headers = new Map(kept.headers)
  const digest = (key: string) => `sha256:${createHash('sha256').update(key).digest('hex')}`
  t.equal(headers.get('authorization'), `Bearer ${digest('secret-1')}`)
  t.equal(headers.get('x-api-key'), digest('secret-2'))
  t.equal(headers.get('X-Custom'), 'Kept')
  t.notMatch(text, 'secret')
  t.equal((await fetch(`${url}/simulator/calls/2/request`)).status, 404)
  t.equal((await fetch(`${url}/simulator/elsewhere`)).status, 404)
})

t.test('the last hundred requests are kept', async (t) => {
  const { url } = await simulatorFor(t)
  const post = () => fetch(`${url}/v1/chat/completions`, { method: 'POST', body: chatBody('sim@tokens=1') })
  for (let count = 0; count < 101; count += 1) await (await post()).arrayBuffer()
  t.equal((await fetch(`${url}/simulator/calls/1/request`)).status, 404)
  t.equal((await fetch(`${url}/simulator/calls/2/request`)).status, 200)
  t.equal((await callsOf(url)).length, 101)
})
