import t from 'tap'
import { EVERY_DIALECT, jsonOf } from './dialects-support.ts'
import { callsOf, simulatorFor } from './support.ts'

const STREAM = { stream: true }

for (const [name, ask] of Object.entries(EVERY_DIALECT)) {
  t.test(`${name}: the same request gives the same bytes, from another simulator too`, async (t) => {
    const [first, second] = [await simulatorFor(t), await simulatorFor(t)]
    for (const options of [STREAM, {}]) {
      const answer = await ask(first.url, '@tokens=20,reasoning=3,reasoning_text', options)
      t.equal(answer.status, 200)
      t.equal(answer.complete, true)
      for (const { url } of [first, second])
        t.same((await ask(url, '@tokens=20,reasoning=3,reasoning_text', options)).body, answer.body)
    }
  })

  t.test(`${name}: directives, pace and framing work as anywhere`, async (t) => {
    const { url } = await simulatorFor(t)
    const whole = await ask(url, '', STREAM)
    for (const directives of ['@ttft=5', '@tps=100000', '@linger=5', '@split=7', '@split=50', '@tag=other'])
      t.same((await ask(url, directives, STREAM)).body, whole.body, directives)
    const unlike = await ask(url, '', { ...STREAM, fields: { simulate: 'text=Hello' } })
    t.match(unlike.body.toString(), '"Hello"')
    const header = await ask(url, '', { ...STREAM, headers: { 'x-simulate': 'text=Header' } })
    t.match(header.body.toString(), '"Header"')
    t.match((await callsOf(url)).at(-1), { state: 'completed', output_tokens: 1, stream: true })
  })

  t.test(`${name}: faults strike at the byte`, async (t) => {
    const { url } = await simulatorFor(t)
    const whole = await ask(url, '', STREAM)
    for (const bytes of [0, 1, 100, 333]) {
      for (const fault of ['reset', 'truncate', 'cut']) {
        const answer = await ask(url, `@fault=${fault}:${bytes}`, STREAM)
        t.same(answer.body, whole.body.subarray(0, bytes), `${fault}:${bytes}`)
        t.equal(answer.complete, fault === 'truncate')
        t.equal(answer.ending, fault === 'reset' ? 'reset' : 'end')
      }
    }
    const garbage = await ask(url, '@fault=garbage', STREAM)
    t.equal(garbage.status, 0)
    t.ok(garbage.wire.length > 0)
    t.equal((await ask(url, '@fault=status:503', STREAM)).status, 503)
    const limited = await ask(url, '@fault=status:429', STREAM)
    t.match(limited.head, /retry-after: 1/)
  })

  t.test(`${name}: an error event, and a mark that is left out, leave what was before it`, async (t) => {
    const { url } = await simulatorFor(t)
    const whole = await ask(url, '@tokens=4', STREAM)
    const failed = await ask(url, '@tokens=4,fault=stream_error:2', STREAM)
    t.equal(failed.complete, true)
    t.match(failed.body.toString(), 'The server had an error while it was answering: simulated.')
    const first = await ask(url, '@fault=stream_error', STREAM)
    t.equal(first.status, 200)
    t.match(first.body.toString(), 'simulated.')
    t.match(jsonOf(await ask(url, '@fault=stream_error')), { error: { message: String } })
    const unmarked = await ask(url, '@tokens=4,fault=no_done', STREAM)
    t.ok(unmarked.body.length < whole.body.length)
    t.match((await callsOf(url)).at(-1), { state: 'faulted', output_tokens: 4 })
  })

  t.test(`${name}: reasoning and text count in the record, shown or hidden`, async (t) => {
    const { url } = await simulatorFor(t)
    await ask(url, '@tokens=9,reasoning=4,reasoning_text', STREAM)
    t.match((await callsOf(url)).at(-1), { output_tokens: 13 })
    await ask(url, '@tokens=9,reasoning=4')
    t.match((await callsOf(url)).at(-1), { output_tokens: 13 })
  })

  t.test(`${name}: a bad key is refused, and a directive that is none`, async (t) => {
    const { url } = await simulatorFor(t)
    const bad = 'sim-bad-key'
    const headers = { authorization: `Bearer ${bad}`, 'x-api-key': bad, 'x-goog-api-key': bad }
    const refused = await ask(url, '', { headers })
    t.equal(refused.status, name.startsWith('generate-content') ? 400 : 401)
    t.match(jsonOf(refused), { error: { message: /key/i } })
    const unknown = await ask(url, '@speed=1')
    t.equal(unknown.status, 400)
    t.match(jsonOf(unknown), { error: { message: /"speed"/ } })
  })
}
