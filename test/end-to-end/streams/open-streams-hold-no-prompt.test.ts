/** A stream that has begun holds its prompt no longer. See docs/failure-modes.md, "Streams", row 43. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { startService } from '../../support/service.ts'
import { childrenOf } from '../chaos/processes.ts'
import { callConfig, readUntil, say } from '../support.ts'

const STREAMS = 40
const PROMPT_BYTES = 4 * 1024 * 1024
/** Half of all prompts: some of them are garbage that is not collected yet. */
const MAX_GROWTH_BYTES = (STREAMS * PROMPT_BYTES) / 2
const CALLS_AFTERWARDS = 200
/** So little that garbage is collected while the test runs. */
const NODE_OPTIONS = '--max-old-space-size=64 --max-semi-space-size=4'

const rssBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

t.test('open streams with long prompts', async (t) => {
  const service = await startService(t, {
    config: callConfig({ m: {}, slow: { simulate: 'tps=20,tokens=2000' } }),
    env: { NODE_OPTIONS },
  })
  const { key } = await service.newKey('1000000000')
  const [gateway] = childrenOf(service.pid(), 'gateway')
  const client = new AbortController()
  t.teardown(() => client.abort())
  const ask = (body: object) =>
    fetch(`${service.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ max_tokens: 2000, ...body }),
      signal: client.signal,
    })
  const open = async () => {
    const messages = say('word '.repeat(PROMPT_BYTES / 5))
    const response = await ask({ model: 'slow', stream: true, messages })
    t.equal(response.status, 200)
    await readUntil(response, (bytes) => bytes.includes('content'))
  }
  const answerMany = async () => {
    for (let i = 0; i < CALLS_AFTERWARDS; i++)
      await (await ask({ model: 'm', messages: say('hello') })).text()
  }
  await open()
  await answerMany()
  const before = rssBytes(gateway!)
  for (let i = 0; i < STREAMS; i++) await open()
  await answerMany()
  const growth = rssBytes(gateway!) - before
  t.ok(growth < MAX_GROWTH_BYTES, `${growth} bytes more for ${STREAMS} streams`)
})
