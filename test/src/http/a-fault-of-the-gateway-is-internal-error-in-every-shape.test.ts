// The one failure that no client can provoke: the pipeline here fails by itself.
import { throwError } from 'rxjs'
import t from 'tap'
import { HOST, serve } from './support.ts'

const SECRET = 'what only the log may know'
const message = String
const openAiShape = { error: { message, type: 'server_error', code: 'internal_error' } }
const SHAPES: Readonly<Record<string, object>> = {
  '/v1/chat/completions': openAiShape,
  '/v1/responses': openAiShape,
  '/v1/messages': { type: 'error', error: { type: 'api_error', message } },
  '/v1beta/models/m:generateContent': { error: { code: 500, message, status: 'INTERNAL' } },
}

t.test('a pipeline that fails, at once or later, answers 500 in the shape of its protocol', async (t) => {
  for (const [path, shape] of Object.entries(SHAPES)) {
    const thrown = () => {
      throw new Error(SECRET)
    }
    for (const handler of [thrown, () => throwError(() => new Error(SECRET))]) {
      const { port, unforeseen } = await serve(t, { [`POST ${path}`]: handler })
      const response = await fetch(`http://${HOST}:${port}${path}`, { method: 'POST', body: '{}' })
      t.equal(response.status, 500, path)
      t.match(response.headers.get('x-gateway-trace'), /^req_/)
      const text = await response.text()
      t.match(JSON.parse(text), shape, path)
      t.notMatch(text, SECRET, 'nothing of the cause reaches the client')
      t.match(unforeseen, [{ message: SECRET }], 'the log has it')
    }
  }
})
