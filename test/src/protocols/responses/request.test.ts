/** Requests of other protocols as the responses protocol has them. See docs/translation.md, "Any two protocols". */
import t from 'tap'
import { CHAT_PROTOCOLS, type ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { protocolAdapter } from '../../../../src/protocols/registry.ts'
import { encodeOptions } from '../encode-options.ts'
import { chatWith } from '../request/plain-requests.ts'

const CLIENTS = CHAT_PROTOCOLS.filter((protocol) => protocol !== 'responses')

function send(client: ChatProtocol, more: object, options = {}) {
  const encoded = protocolAdapter(client, 'responses').encodeRequest(
    chatWith(client, more),
    encodeOptions(options),
  )
  return { ...encoded, body: JSON.parse(encoded.body.toString()) }
}

t.test('an output limit', async (t) => {
  const writeLimit = (client: ChatProtocol, tokens: number) =>
    client === 'generate-content' ? { generationConfig: { maxOutputTokens: tokens } } : { max_tokens: tokens }
  for (const client of CLIENTS) {
    const low = send(client, writeLimit(client, 1))
    t.equal(low.body.max_output_tokens, 16, `${client}: less than the vendor takes`)
    t.same(low.changed, ['max_output_tokens (raised to 16, the least this model takes)'])
    const enough = send(client, writeLimit(client, 17))
    t.equal(enough.body.max_output_tokens, 17)
    t.same(enough.changed, [])
  }
  t.equal(send('chat-completions', {}, { outputCeiling: null }).body.max_output_tokens, undefined)
})

t.test('instructions on their own become the input, which the vendor does not accept empty', async (t) => {
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'developer', content: 'Say hello.' },
  ]
  const { body } = send('chat-completions', { messages })
  t.equal(body.instructions, undefined)
  const texts = ['Be brief.', 'Say hello.'].map((text) => ({ type: 'input_text', text }))
  t.same(body.input, [{ type: 'message', role: 'developer', content: texts }])
  const both = send('chat-completions', { messages: [...messages, { role: 'user', content: 'hi' }] })
  t.equal(both.body.instructions, 'Be brief.\n\nSay hello.')
  t.equal(both.body.input.length, 1)
})
