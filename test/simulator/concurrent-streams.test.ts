import t from 'tap'
import type { CallStats } from '../../simulator/calls.ts'
import { until } from '../support/eventually.ts'
import { call, chatBody, chatRequest, chunksOf, open, simulatorFor, textOf } from './support.ts'

const { url } = await simulatorFor(t)

const STREAMS = 150

t.test('many paced streams at once: each gets its own text when others leave', async (t) => {
  const leaving = Array.from({ length: STREAMS }, () => {
    const socket = open(url, chatRequest(chatBody('sim@tps=5,tokens=100000', { stream: true })))
    socket.once('data', () => socket.destroy())
    return socket
  })
  const answers = await Promise.all(
    Array.from({ length: STREAMS }, (_, index) => {
      const text = `This is the text of stream ${index}, word by word.`
      return call(url, chatBody('sim', { stream: true, simulate: { text, tps: 100, tag: String(index) } }))
    }),
  )
  for (const [index, answer] of answers.entries()) {
    t.equal(textOf(answer.body), `This is the text of stream ${index}, word by word.`)
    t.equal(chunksOf(answer.body).at(-1)?.choices[0]?.finish_reason, 'stop')
  }
  for (const socket of leaving) socket.destroy()
  const stats = async () => (await (await fetch(`${url}/simulator/stats`)).json()) as CallStats
  await until('no call runs', async () => (await stats()).running === 0)
  t.same(await stats(), {
    ...{ calls: 2 * STREAMS, running: 0, completed: STREAMS, client_closed: STREAMS, faulted: 0 },
  })
})

t.test('requests sent ahead on one connection are answered in order', async (t) => {
  const bodies = ['first', 'second', 'third'].map((text) => chatBody('sim', { simulate: { text, ttft: 5 } }))
  const last = bodies.length - 1
  const requests = bodies.map((body, index) =>
    chatRequest(body, index === last ? { connection: 'close' } : {}),
  )
  const socket = open(url, requests.join(''))
  let received = ''
  socket.on('data', (chunk) => {
    received += String(chunk)
  })
  await new Promise((resolve) => socket.once('close', resolve))
  const said = [...received.matchAll(/"content":"(\w+)"/g)].map((match) => match[1])
  t.same(said, ['first', 'second', 'third'])
})
