/** The demonstration's models say what they are and repeat what they were asked, in each protocol, whole and as a stream. */
import t from 'tap'
import { startService } from '../../support/service.ts'
import { demonstration } from '../media/support.ts'
import { post, say } from '../support.ts'

const QUESTION = 'Which river flows through Vienna?'
const EXPECTED = `Hello! I am a simulated model of Tollgate's demonstration. You asked: “${QUESTION}”`

const BODIES = {
  '/v1/chat/completions': { model: 'demo-chat', messages: say(QUESTION) },
  '/v1/messages': { model: 'ballad-large', max_tokens: 500, messages: say(QUESTION) },
  '/v1/responses': { model: 'sonata-large', input: QUESTION },
} as const

/** Returns the texts of a body or of all events, joined. */
function readTexts(value: unknown): string {
  if (Array.isArray(value)) return value.map(readTexts).join('')
  if (typeof value !== 'object' || value === null) return ''
  const fields = value as Record<string, unknown>
  const own = ['text', 'content', 'delta']
    .map((name) => fields[name])
    .filter((text) => typeof text === 'string')
  return own.join('') + Object.values(fields).map(readTexts).join('')
}

const parse = (body: string, isStream: boolean): unknown =>
  isStream
    ? body
        .split('\n')
        .filter((line) => line.startsWith('data: {'))
        .map((line) => JSON.parse(line.slice('data: '.length)))
    : JSON.parse(body)

t.test('the demonstration', async (t) => {
  const service = await startService(t, { config: demonstration() })
  const { key } = await service.newKey('1000')
  const startedAt = Math.floor(Date.now() / 1000)
  const ask = async (path: string, body: object, isStream: boolean) => {
    const response = await post(service, key, path, body)
    const text = await response.text()
    t.equal(response.status, 200, text)
    const answer = parse(text, isStream)
    t.ok(readTexts(answer).includes(EXPECTED), `${path} ${text.slice(0, 300)}`)
    return answer
  }
  for (const [path, body] of Object.entries(BODIES))
    await t.test(path, async () => {
      await ask(path, { ...body, stream: true }, true)
      const whole = (await ask(path, body, false)) as { created?: number; created_at?: number }
      const at = whole.created ?? whole.created_at
      if (path !== '/v1/messages') t.ok(at !== undefined && at >= startedAt, 'the time is now')
    })
  await t.test('generate-content', async () => {
    const contents = [{ role: 'user', parts: [{ text: QUESTION }] }]
    await ask('/v1beta/models/canto-large:generateContent', { contents }, false)
    await ask('/v1beta/models/canto-large:streamGenerateContent?alt=sse', { contents }, true)
  })
})
