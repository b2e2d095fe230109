/** An upstream that closes kept connections just as calls go out on them. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { sendJson, serveHttp } from '../../support/http-server.ts'
import { borrowService } from '../../support/lend-services.ts'
import { balanceOf, rowsOf, say, traceOf, UPSTREAM_KEY } from '../support.ts'

/** More than may be retried at a time, and more failures than a channel may have in a row. */
const CALLS = 12
const COMPLETION = {
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
}

/** Answers the first request of each connection, `together` of them at once; the second one ends the connection. */
async function startForgetfulUpstream(t: Test) {
  const seen = new WeakSet<object>()
  const waiting: ServerResponse[] = []
  const state = { together: CALLS, broken: 0 }
  const url = await serveHttp(t, (request, response) => {
    request.resume().on('end', () => {
      if (seen.has(request.socket)) {
        state.broken++
        request.socket.destroy()
        return
      }
      seen.add(request.socket)
      waiting.push(response)
      if (waiting.length < state.together) return
      const body = request.url?.endsWith('count_tokens') ? { input_tokens: 7 } : COMPLETION
      for (const one of waiting.splice(0)) sendJson(one, 200, body)
    })
  })
  return { state, url }
}

const configOf = (url: string): string =>
  JSON.stringify({
    models: [{ id: 'kept', pricing: { unit: '1M_tokens', input: '1', output: '1' } }],
    channels: (['chat-completions', 'messages'] as const).map((protocol) => ({
      id: protocol,
      protocol,
      base_url: protocol === 'messages' ? url : `${url}/v1`,
      api_key: UPSTREAM_KEY,
      models: { kept: 'm' },
    })),
  })

t.test('kept connections that the upstream had closed', async (t) => {
  const { state, url } = await startForgetfulUpstream(t)
  const service = await borrowService(t, configOf(url))
  const { key } = await service.newKey('1000')
  const callAll = () =>
    Promise.all(
      Array.from({ length: CALLS }, () => service.chat(key, { model: 'kept', messages: say('hi') })),
    )

  const opened = await callAll()
  t.same(
    opened.map(({ status }) => status),
    Array(CALLS).fill(200),
  )
  state.together = 1
  const again = await callAll()
  t.same(
    again.map(({ status }) => status),
    Array(CALLS).fill(200),
  )
  t.equal(state.broken, CALLS, 'each went out on a connection that had ended')
  const rows = await rowsOf(service, key, again.map(traceOf))
  for (const row of rows) {
    t.match(row, { status: 'success', cost: '0.000012', attempts_count: 2 })
    t.match(row.attempts, [
      { seq: 1, error_code: 'upstream_unreachable' },
      { seq: 2, error_code: null },
    ])
  }
  const { used } = await balanceOf(service, key)
  t.equal(used, '0.000288', 'charged once each')

  const counted = await Promise.all(
    Array.from({ length: CALLS }, () =>
      fetch(`${service.baseUrl}/v1/messages/count_tokens`, {
        method: 'POST',
        headers: { 'x-api-key': key },
        body: JSON.stringify({ model: 'kept', messages: say('hi') }),
      }),
    ),
  )
  for (const response of counted) t.match(await response.json(), { input_tokens: 7 })
  t.equal(state.broken, 2 * CALLS)
})
