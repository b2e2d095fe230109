/** What the messages on one WebSocket ask for, and what is kept from turn to turn. */
import t from 'tap'
import { Failure } from '../../../../schemas/failure.ts'
import { TurnReply } from '../../../../src/protocols/responses/socket-replies.ts'
import { SocketTurns, type Turn } from '../../../../src/protocols/responses/socket-turns.ts'

const message = (fields: object): Buffer =>
  Buffer.from(JSON.stringify({ type: 'response.create', model: 'm', ...fields }))
const bodyOf = (turn: Turn | null) => JSON.parse(turn!.body.toString('utf8'))
const user = (content: string) => ({ role: 'user', content })
const said = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Ελλάδα' }] }

/** The reply to a turn, whose events are these. */
function reply(turns: SocketTurns, turn: Turn, events: readonly object[]): object[] {
  const sent: object[] = []
  const reading = new TurnReply(turns, turn, (text) => sent.push(JSON.parse(text)))
  for (const event of events) {
    const { type } = event as { type: string }
    const bytes = Buffer.from(`: comment\n\nevent: ${type}\ndata: ${JSON.stringify(event)}\n\n`)
    for (let at = 0; at < bytes.length; at += 7) reading.data(bytes.subarray(at, at + 7))
  }
  reading.data(Buffer.from('data: [DONE]\n\n'))
  reading.end('req_1')
  return sent
}
const done = (item: object) => ({ type: 'response.output_item.done', item })
const completed = (id: string, output: object[] = []) => ({
  type: 'response.completed',
  response: { id, output },
})

t.test('a turn', async (t) => {
  t.test('is a request without what belongs to the message', async (t) => {
    const turn = new SocketTurns().read(message({ input: 'hi', stream: false, generate: true, x: null }))
    t.strictSame(bodyOf(turn), { stream: true, model: 'm', input: 'hi', x: null })
    t.match(turn, { generates: true, upstreamPrevious: null, usesLast: false })
  })

  t.test('goes on with the last response, whatever its input is written as', async (t) => {
    for (const [first, kept] of [
      ['hi "you"', [user('hi "you"')]],
      [
        [user('a'), user('b')],
        [user('a'), user('b')],
      ],
      [[], []],
    ] as const) {
      const turns = new SocketTurns()
      reply(turns, turns.read(message({ input: first }))!, [done(said), completed('resp_1', [said])])
      const next = turns.read(message({ previous_response_id: 'resp_1', input: [user('c')] }))
      t.strictSame(bodyOf(next).input, [...kept, said, user('c')])
      t.notOk('previous_response_id' in bodyOf(next))
    }
  })

  t.test('takes the items of the whole response where none came one by one', async (t) => {
    const turns = new SocketTurns()
    reply(turns, turns.read(message({ input: [] }))!, [completed('resp_1', [said])])
    t.strictSame(bodyOf(turns.read(message({ previous_response_id: 'resp_1', input: [] }))).input, [said])
  })

  t.test('leaves out what was thought and cannot be sent again', async (t) => {
    const turns = new SocketTurns()
    const sealed = { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: 'x' }
    reply(turns, turns.read(message({ input: [] }))!, [
      done({ type: 'reasoning', id: 'rs_1', summary: [] }),
      done(sealed),
      done(said),
      completed('resp_1'),
    ])
    const { input } = bodyOf(turns.read(message({ previous_response_id: 'resp_1', input: [] })))
    t.strictSame(input, [sealed, said])
  })

  t.test('asks the channel for what it keeps, and for what is not known here', async (t) => {
    const turns = new SocketTurns()
    const turn = turns.read(message({ input: 'hi' }))!
    turns.noteStored('resp_1')
    reply(turns, turn, [completed('resp_1', [said])])
    for (const id of ['resp_1', 'resp_0']) {
      const next = turns.read(message({ previous_response_id: id, input: 'on' }))!
      t.match(bodyOf(next), { previous_response_id: id, input: 'on' })
      t.equal(next.upstreamPrevious, id)
      reply(turns, next, [completed('resp_2', [said])])
      t.equal(turns.keptBytes, 0, 'of a conversation that began elsewhere nothing is kept')
    }
  })

  t.test('forgets what a failed one goes on with, and nothing else', async (t) => {
    const turns = new SocketTurns()
    reply(turns, turns.read(message({ input: 'hi' }))!, [completed('resp_1', [said])])
    const { keptBytes } = turns
    reply(turns, turns.read(message({ input: 'other' }))!, [{ type: 'response.failed', response: {} }])
    t.equal(turns.keptBytes, keptBytes)
    reply(turns, turns.read(message({ previous_response_id: 'resp_1', input: 'on' }))!, [])
    t.equal(turns.keptBytes, 0)
  })

  t.test('is refused where the message asks for none', async (t) => {
    for (const text of ['', 'x', '[]', '{}', '"response.create"', '{"type":"response.create"', '{"type":1}'])
      t.throws(() => new SocketTurns().read(Buffer.from(text)), Failure, text)
    t.equal(new SocketTurns().read(Buffer.from('{"type":"response.processed"}')), null)
  })
})

t.test('a reply', async (t) => {
  const turn = () => {
    const turns = new SocketTurns()
    return [turns, turns.read(message({ input: 'hi' }))!] as const
  }

  t.test('is the events, without marks and comments', async (t) => {
    const events = [{ type: 'response.created', a: 'Ελλάδα 🙂' }, done(said), completed('resp_1')]
    t.strictSame(reply(...turn(), events), events)
  })

  t.test('that ends too early is an error', async (t) => {
    t.match(reply(...turn(), [{ type: 'response.created' }]), [
      { type: 'response.created' },
      { type: 'error', status: 502, error: { code: 'upstream_error' } },
    ])
  })

  t.test('has a status in the error of a stream', async (t) => {
    const [event] = reply(...turn(), [{ type: 'error', code: 'server_error', message: 'no', param: null }])
    t.strictSame(event, {
      type: 'error',
      status: 502,
      error: { type: 'api_error', code: 'server_error', message: 'no', param: null },
    })
  })
})
