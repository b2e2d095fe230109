import t from 'tap'
import { chatAdapterOf } from '../../../../src/channels/chat/registry.ts'
import { channelOf } from './support.ts'

const CALL = { upstreamModel: 'up', stream: false, query: '' }
const mistral = channelOf('provider: mistral, api_key: k')

function sent(request: string | object, channel = mistral): string {
  const body = Buffer.from(typeof request === 'string' ? request : JSON.stringify(request))
  const adapter = chatAdapterOf(channel, 'chat-completions')
  return (adapter.body?.(body, channel, CALL, () => '') ?? body).toString()
}

t.test('ids of tool calls have nine characters, the same for a call and its result', async (t) => {
  const { messages } = JSON.parse(
    sent({
      model: 'up',
      messages: [
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          content: '',
          tool_calls: [
            { id: 'call_1234567890abcdef', type: 'function', function: { name: 'f', arguments: '{}' } },
            { id: 'Abc123xyz', type: 'function', function: { name: 'f', arguments: '{}' } },
          ],
        },
        { role: 'tool', tool_call_id: 'call_1234567890abcdef', content: '1' },
        { role: 'tool', tool_call_id: 'Abc123xyz', content: '2' },
      ],
    }),
  )
  const [first, second] = messages[1].tool_calls
  t.match(first.id, /^[A-Za-z0-9]{9}$/)
  t.equal(messages[2].tool_call_id, first.id)
  t.equal(second.id, 'Abc123xyz')
  t.equal(messages[3].tool_call_id, 'Abc123xyz')
})

t.test('fields that it does not know are left out, of messages too; a seed has its name', async (t) => {
  t.same(
    JSON.parse(
      sent({
        model: 'up',
        user: 'u',
        logit_bias: {},
        seed: 7,
        temperature: 0.5,
        messages: [
          { role: 'developer', content: 'be brief', name: 'x' },
          { role: 'assistant', content: 'a', refusal: null, annotations: [], reasoning_content: 'r' },
        ],
      }),
    ),
    {
      model: 'up',
      temperature: 0.5,
      random_seed: 7,
      messages: [
        { role: 'system', content: 'be brief' },
        { role: 'assistant', content: 'a' },
      ],
    },
  )
})

t.test('numbers keep their spelling', async (t) => {
  t.equal(
    sent('{"model":"up","temperature":1.0,"seed":12345678901234567890,"messages":[]}'),
    '{"model":"up","temperature":1.0,"messages":[],"random_seed":12345678901234567890}',
  )
})

t.test('a request for any other upstream is not touched', async (t) => {
  const body = '{ "model": "up", "user": "u", "messages": [] }'
  t.equal(sent(body, channelOf('provider: openai, api_key: k')), body)
  t.equal(sent(body, channelOf('provider: mistral, api_key: k, quirks: []')), body)
})
