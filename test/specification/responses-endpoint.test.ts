/** "POST /v1/responses": its fields, its items of output, and what it does not keep. */
import t from 'tap'
import { json } from './scripted-upstream.ts'
import { section, statement, statements } from './statement.ts'
import { simulate } from './world.ts'

const DRAW = { type: 'image_generation' }

const PUBLIC_PICTURE = 'https://example.com/a.png'

/** A message with a picture behind this link. */
const pictured = (url: string) => ({
  input: [
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'hi' },
        { type: 'input_image', image_url: url, detail: 'low' },
      ],
    },
  ],
})

await section(t, 'POST /v1/responses', [
  statement('model and input are required (responses)', async (t, world) => {
    const client = await world.client()
    for (const name of ['model', 'input']) {
      const answer = await client.call('responses', 'plain-responses', { more: { [name]: undefined } })
      t.match(answer, { status: 400, body: { error: { code: 'invalid_request' } } }, name)
    }
  }),
  statement('A string as input is for the upstream to refuse (responses)', async (t, world) => {
    const client = await world.client()
    const strict = await client.call('responses', 'plain-responses', {
      more: { input: simulate('strict_input'), instructions: 'Be brief.' },
    })
    t.match(strict, { status: 400, body: { error: { code: 'invalid_request' } } })
    t.equal((await world.upstreamCalls(strict.trace)).length, 1, 'the upstream was asked')
    const lenient = await client.call('responses', 'plain-responses', { more: { input: 'hi' } })
    t.equal(lenient.status, 200)
  }),
  statement('Missing instructions are for the upstream to refuse (responses)', async (t, world) => {
    const client = await world.client()
    const say = simulate('strict_input')
    t.equal((await client.call('responses', 'plain-responses', { say })).status, 400)
    const more = { instructions: 'Be brief.' }
    t.equal((await client.call('responses', 'plain-responses', { say, more })).status, 200)
  }),
  statements(
    ['low', 'medium', 'high'],
    (effort) => `reasoning.effort may be ${effort} (responses)`,
    async (t, world, effort) => {
      const client = await world.client()
      const answer = await client.call('responses', 'plain-responses', { more: { reasoning: { effort } } })
      t.equal(answer.status, 200)
      t.same((await world.received(answer.trace)).reasoning.effort, effort)
      t.ok(answer.body.usage.output_tokens_details.reasoning_tokens > 0)
    },
  ),
  statement(
    'A picture goes by a link or inline; a link that is not public is refused (responses)',
    async (t, world) => {
      const client = await world.client()
      const { word, received } = world.upstream.script(json(400, {}))
      const more = { ...pictured(PUBLIC_PICTURE), instructions: word }
      await client.call('responses', 'script-responses', { more })
      t.same(JSON.parse(received[0]?.text ?? '{}').input, pictured(PUBLIC_PICTURE).input)
      for (const url of ['http://127.0.0.1/a.png', 'http://10.0.0.1/a.png', 'http://169.254.169.254/']) {
        const refused = await client.call('responses', 'plain-responses', { more: pictured(url) })
        t.equal(refused.status, 400, url)
      }
    },
  ),
  statement(
    'The service keeps no conversation: previous_response_id is refused (responses)',
    async (t, world) => {
      const client = await world.client()
      const first = await client.call('responses', 'plain-responses')
      const more = { previous_response_id: first.body.id }
      const { status, body } = await client.call('responses', 'plain-responses', { more })
      t.ok([400, 404].includes(status), `${status}`)
      t.match(body.error.type, 'invalid_request_error')
    },
  ),
  statement('The full history goes in input, with calls and their output (responses)', async (t, world) => {
    const client = await world.client()
    const tools = [{ type: 'function', name: 'weather', parameters: { type: 'object', properties: {} } }]
    const question = { role: 'user', content: 'hi' }
    const forced = { tools, tool_choice: { type: 'function', name: 'weather' } }
    const first = await client.call('responses', 'plain-responses', {
      more: { input: [question], ...forced },
    })
    const call = first.body.output.find(({ type }: { type: string }) => type === 'function_call')
    t.match(call, { type: 'function_call', call_id: String, name: 'weather', arguments: /^\{/ })
    const output = { type: 'function_call_output', call_id: call.call_id, output: 'sunny' }
    const more = { tools, input: [question, call, output] }
    const second = await client.call('responses', 'plain-responses', { more })
    t.equal(second.status, 200)
    t.same((await world.received(second.trace)).input, more.input)
  }),
  statement(
    'Output items come in the order in which they happened: reasoning before a message (responses)',
    async (t, world) => {
      const client = await world.client()
      const more = { reasoning: { effort: 'low', summary: 'auto' } }
      const { body } = await client.call('responses', 'plain-responses', { more })
      const types = body.output.map(({ type }: { type: string }) => type)
      t.same(types, ['reasoning', 'message'])
    },
  ),
  statement(
    'An image tool answers with an image_generation_call that holds a PNG (responses)',
    async (t, world) => {
      const client = await world.client()
      for (const tool of [DRAW, { ...DRAW, size: '1024x1024' }]) {
        const more = { tools: [tool] }
        const { body, status } = await client.call('responses', 'able-responses', { more })
        t.equal(status, 200)
        const drawn = body.output.find(({ type }: { type: string }) => type === 'image_generation_call')
        t.equal(Buffer.from(drawn.result, 'base64').subarray(1, 4).toString(), 'PNG')
      }
    },
  ),
  statement(
    'Some models of another protocol are served through their upstream (responses)',
    async (t, world) => {
      const client = await world.client()
      t.not((await client.call('responses', 'ballad-large')).status, 503)
    },
  ),
])
