/** What a kept response has left open, the next one answers. */
import t from 'tap'
import { askResponses, jsonOf } from './dialects-support.ts'
import { simulatorFor } from './support.ts'

const { url } = await simulatorFor(t)

const TOOLS = [{ type: 'function', name: 'weather', parameters: { type: 'object' } }]
const FORCED = { tools: TOOLS, tool_choice: 'required' }
const answerTo = (call_id: unknown) => ({ type: 'function_call_output', call_id, output: 'Rain.' })

const ask = async (fields: object) => jsonOf(await askResponses(url, '', { fields }))
const calledIn = ({ output }: { readonly output?: unknown }): string =>
  (output as { type: string; call_id: string }[]).find(({ type }) => type === 'function_call')?.call_id ?? ''
const post = (path: string, body: object) =>
  fetch(`${url}/v1/conversations${path}`, { method: 'POST', body: JSON.stringify(body) })

t.test('an output answers the call of the previous response', async (t) => {
  const first = await ask(FORCED)
  const next = await ask({
    tools: TOOLS,
    previous_response_id: first.id,
    input: [answerTo(calledIn(first))],
  })
  t.match(next, { status: 'completed', previous_response_id: first.id, output: [{ type: 'message' }] })
  const last = await ask({ previous_response_id: next.id, input: 'And tomorrow?' })
  t.equal(last.status, 'completed')
  const again = await ask({ previous_response_id: next.id, input: [answerTo(calledIn(first))] })
  t.match(again.error?.message, /^No tool call found for function call output/)
})

t.test('a call that nothing answers is refused, whatever comes instead', async (t) => {
  const first = await ask(FORCED)
  const call = calledIn(first)
  for (const input of ['Never mind.', [{ role: 'user', content: 'Never mind.' }]]) {
    const refused = await ask({ previous_response_id: first.id, input })
    t.equal(refused.error?.message, `No tool output found for function call ${call}.`)
  }
})

t.test('a conversation holds its calls open as well', async (t) => {
  const { id: conversation } = (await (await post('', {})).json()) as { id: string }
  const first = await ask({ ...FORCED, conversation })
  const refused = await ask({ conversation, input: 'Never mind.' })
  t.match(refused.error?.message, /^No tool output found for function call/)
  const next = await ask({ conversation, input: [answerTo(calledIn(first))] })
  t.equal(next.status, 'completed')
  const second = await ask({ ...FORCED, conversation, input: 'And tomorrow?' })
  const added = await post(`/${conversation}/items`, { items: [answerTo(calledIn(second))] })
  t.equal(added.status, 200)
  t.equal((await ask({ conversation, input: 'So?' })).status, 'completed')
})

t.test('another request is another response', async (t) => {
  const requests = [
    {},
    { tools: TOOLS },
    FORCED,
    { max_output_tokens: 16 },
    { metadata: { a: 'b' } },
    { simulate: 'text=Hi' },
  ]
  const answers = await Promise.all(requests.map(ask))
  t.equal(new Set(answers.map(({ id }) => id)).size, requests.length)
  for (const answer of answers)
    t.same(await (await fetch(`${url}/v1/responses/${answer.id}`)).json(), answer, 'each is kept')
  t.same(await Promise.all(requests.map(ask)), answers, 'and the same request has the same')
})
