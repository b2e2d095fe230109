/** Of a last chunk without choices a client that did not ask for usage gets all but the usage, byte for byte. */
import t from 'tap'
import { ChatCompletionsMeter } from '../../../../src/protocols/chat-completions/meter.ts'
import { runInPieces } from '../messages/streams.ts'

const USAGE = '{"prompt_tokens":3,"completion_tokens":4,"x":[",",{"usage":1}]}'
const HEAD = '"id":"c-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[]'
const WORD = 'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
const DONE = 'data: [DONE]\n\n'

/** The chunk as the upstream sends it, and what of it the client gets. */
const ROWS: Readonly<Record<string, readonly [sent: string, got: string]>> = {
  'usage in the middle': [
    `data: {${HEAD}, "usage" : ${USAGE} , "citations":["https://a", "\\u00e4"] }\n\n`,
    `data: {${HEAD},  "citations":["https://a", "\\u00e4"] }\n\n`,
  ],
  'usage at the end': [
    `data:{${HEAD},"citations":["a"],"usage":${USAGE}}\r\n\r\n`,
    `data:{${HEAD},"citations":["a"]}\r\n\r\n`,
  ],
  'usage in front': [`data: {"usage":${USAGE},"x_info":{"t":1}}\n\n`, 'data: {"x_info":{"t":1}}\n\n'],
  'usage twice': [
    `data: {"usage":${USAGE},"a":1,"choices":[],"usage":${USAGE}}\n\n`,
    'data: {"a":1,"choices":[]}\n\n',
  ],
  'other lines around it': [
    `: note\nid: 7\ndata: {${HEAD},"usage":${USAGE},"citations":["a"]}\n\n`,
    `: note\nid: 7\ndata: {${HEAD},"citations":["a"]}\n\n`,
  ],
  'a payload of several lines': [
    `id: 7\r\ndata: {${HEAD},\r\ndata: "usage":\r\ndata: ${USAGE},\r\ndata: "citations":["ä"]}\r\n\r\n`,
    `id: 7\ndata: {${HEAD},  "citations":["ä"]}\n\n`,
  ],
  'nothing but usage': [`data: {${HEAD},"usage":${USAGE}}\n\n`, ''],
  'nothing that says something': [
    `data: {${HEAD},"system_fingerprint":"fp","service_tier":"auto","error":null,"citations":[],"usage":${USAGE}}\n\n`,
    '',
  ],
}

t.test('a client that did not ask for usage', async (t) => {
  for (const [what, [sent, got]] of Object.entries(ROWS))
    for (const cuts of [[], [WORD.length + 20], [WORD.length + sent.length - 3]]) {
      const meter = new ChatCompletionsMeter({ withholdUsage: true })
      const { output, said } = runInPieces(meter, Buffer.from(WORD + sent + DONE), cuts)
      t.equal(output.toString(), WORD + got + DONE, `${what}, cut at ${cuts}`)
      t.match(said, { usage: { prompt: 3, output: 4 }, isUsageWhole: true }, what)
    }
})

t.test('also where the stream ends without its last empty line', async (t) => {
  const meter = new ChatCompletionsMeter({ withholdUsage: true })
  const last = `data: {"choices":[],"usage":${USAGE},"citations":["a"]}`
  const { output } = runInPieces(meter, Buffer.from(WORD + last), [])
  t.equal(output.toString(), `${WORD}data: {"choices":[],"citations":["a"]}`)
})

t.test('a client that asked for it', async (t) => {
  for (const [what, [sent]] of Object.entries(ROWS)) {
    const meter = new ChatCompletionsMeter({ withholdUsage: false })
    const { output } = runInPieces(meter, Buffer.from(WORD + sent + DONE), [])
    t.equal(output.toString(), WORD + sent + DONE, what)
  }
})
