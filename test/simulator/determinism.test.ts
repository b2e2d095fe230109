import t from 'tap'
import { seededRandom, tokensOfJson, tokensOfLiteral } from '../../simulator/answers/words.ts'
import { call, chatBody, simulatorFor, textOf } from './support.ts'

const { url } = await simulatorFor(t)

const STREAM = { stream: true }

t.test('the same request gives the same bytes, from another simulator too', async (t) => {
  const [first, second] = [await simulatorFor(t), await simulatorFor(t)]
  const body = chatBody('sim-large@tokens=200,reasoning=3', { stream: true, n: 2 })
  const answer = await call(first.url, body)
  t.equal(answer.complete, true)
  t.same((await call(first.url, body)).body, answer.body)
  t.same((await call(second.url, body)).body, answer.body)
})

t.test('model, messages and seed change it; a seed alone decides', async (t) => {
  const say = async (model: string, extra: Record<string, unknown> = {}) =>
    textOf((await call(url, chatBody(model, { ...STREAM, ...extra }))).body)
  const messages = [{ role: 'user', content: 'Something else.' }]
  const said = [
    await say('sim'),
    await say('sim-b'),
    await say('sim', { messages }),
    await say('sim', { seed: 1 }),
  ]
  t.equal(new Set(said).size, said.length)
  t.equal(await say('sim@seed=9'), await say('sim-b@seed=9', { messages, seed: 4 }))
})

t.test('sixty-four words unless told otherwise, some of them of many bytes', async (t) => {
  const text = textOf((await call(url, chatBody('sim', STREAM))).body)
  t.equal(text.split(' ').length, 64)
  t.ok(Buffer.byteLength(text) > text.length)
  t.notMatch(text, '\uFFFD')
  t.equal(textOf((await call(url, chatBody('sim@tokens=0', STREAM))).body), '')
})

t.test('a literal text is said as it is', async (t) => {
  const text = '  Two\n\nparagraphs, 你好 👩‍🚀 "quoted" and a-very-long-word-without-blanks \\ '
  t.equal(textOf((await call(url, chatBody('sim', { ...STREAM, simulate: { text } }))).body), text)
  for (const part of [text, '', ' ', 'a']) {
    t.equal(tokensOfLiteral(part).join(''), part)
    t.equal(tokensOfJson(part).join(''), part)
  }
})

t.test('of the three places the header is strongest and the model weakest', async (t) => {
  const say = async (body: string, headers: Record<string, string> = {}) =>
    textOf((await call(url, body, headers)).body)
  const model = 'sim@text=model'
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'Say it [simulate: text=message]' }] }]
  const simulate = 'text=body'
  t.equal(await say(chatBody(model, STREAM)), 'model')
  t.equal(await say(chatBody(model, { ...STREAM, messages })), 'message')
  t.equal(await say(chatBody(model, { ...STREAM, messages, simulate })), 'body')
  const header = { 'x-simulate': 'text=header' }
  t.equal(await say(chatBody(model, { ...STREAM, messages, simulate }), header), 'header')
})

t.test('the generator is even enough and never reaches one', async (t) => {
  const random = seededRandom(42)
  const drawn = Array.from({ length: 10_000 }, random)
  t.ok(drawn.every((number) => number >= 0 && number < 1))
  const mean = drawn.reduce((sum, number) => sum + number, 0) / drawn.length
  t.ok(Math.abs(mean - 0.5) < 0.02)
})
