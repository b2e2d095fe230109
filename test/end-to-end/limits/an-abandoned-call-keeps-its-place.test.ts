/**
 * A call whose client leaves, and that is read on, counts in the concurrency limit and keeps its Idempotency-Key until it
 * is settled; then it costs what its upstream reports. See docs/failure-modes.md, "Streams", row 81.
 */
import t from 'tap'
import { sendJson, serveHttp, textOf } from '../../support/http-server.ts'
import { borrowService } from '../../support/lend-services.ts'
import { until } from '../../support/service.ts'
import { configOf } from '../protocols/support.ts'
import { balanceOf, errorOf, rowOf, say } from '../support.ts'

const USAGE = { prompt_tokens: 900, completion_tokens: 4000 }
const CREDIT = 1_000_000
const COST = USAGE.prompt_tokens + 2 * USAGE.completion_tokens

t.test('a call that its client has left', async (t) => {
  /** Ends the thinking of every open call. */
  const open: (() => void)[] = []
  const url = await serveHttp(t, async (request, response) => {
    const { stream } = JSON.parse(await textOf(request)) as { stream?: boolean }
    const event = (value: object) => response.write(`data: ${JSON.stringify(value)}\n\n`)
    if (stream === true) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      event({ choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] })
    }
    open.push(() => {
      const message = { role: 'assistant', content: 'yes' }
      if (stream !== true) {
        const whole = { choices: [{ index: 0, message, finish_reason: 'stop' }], usage: USAGE }
        return sendJson(response, 200, whole)
      }
      event({ choices: [{ index: 0, delta: { content: 'yes' }, finish_reason: 'stop' }] })
      event({ choices: [], usage: USAGE })
      return response.end('data: [DONE]\n\n')
    })
  })
  const thinker = { capabilities: { reasoning: true }, default_max_tokens: 10_000 }
  const channel = { id: 'line', protocol: 'chat-completions' as const, base_url: `${url}/v1`, api_key: 'k' }
  const service = await borrowService(
    t,
    configOf({ thinker }, [{ ...channel, models: { thinker: 'thinker' } }], {
      profile: 'public',
      limits: { requests_per_minute: 1000, concurrency: 1 },
    }),
  )

  for (const stream of [true, false])
    await t.test(stream ? 'streamed' : 'in one piece', async (t) => {
      const { key } = await service.newKey(String(CREDIT))
      const intent = { 'idempotency-key': `intent-${stream}` }
      const call = (signal?: AbortSignal) =>
        service.chat(key, { model: 'thinker', messages: say('think'), stream }, { signal, headers: intent })
      const leaving = new AbortController()
      const left = call(leaving.signal).catch(() => null)
      await until('it is being thought', () => open.length === 1)
      leaving.abort()
      await left
      const refused = await call()
      t.equal(refused.status, 429, 'it keeps its place')
      t.match(await errorOf(refused), { message: /concurrency/ })
      open.pop()!()
      const rows = await service.logs(key, (found) => found.some(({ status }) => status === 'interrupted'))
      const { request_id } = rows.find(({ status }) => status === 'interrupted')!
      t.match(await rowOf(service, key, request_id), {
        input_tokens: USAGE.prompt_tokens,
        output_tokens: USAGE.completion_tokens,
        cost: String(COST),
      })
      const again = await call()
      t.equal(again.status, 200)
      t.equal(again.headers.get('idempotency-replayed'), 'true', 'the answer that no client had is there')
      t.match(await again.text(), /yes/)
      t.equal((await balanceOf(service, key)).remaining, String(CREDIT - COST))
    })
})
