/**
 * What is billed of a streamed answer by the usage that its upstream reports on the way, in every protocol, passed or
 * translated: reports are a lower bound, what was said beyond them is estimated, and a count left out is no zero.
 */
import t from 'tap'
import type { Ending } from '../../../pipelines/chat/forward/call-record.ts'
import { CallRecord } from '../../../pipelines/chat/forward/call-record.ts'
import type { AdmittedCall } from '../../../pipelines/chat/precharge.ts'
import { modelEntry } from '../../../schemas/config/catalog.ts'
import { ChatCompletionsMeter } from '../../../src/protocols/chat-completions/meter.ts'
import type { AnswerStream } from '../../../src/protocols/dialect.ts'
import { GenerateContentMeter } from '../../../src/protocols/generate-content/meter.ts'
import { MessagesMeter } from '../../../src/protocols/messages/meter.ts'
import { type LinkedParts, NO_LINKS } from '../../../src/protocols/request/linked-parts.ts'
import { ResponsesMeter } from '../../../src/protocols/responses/meter.ts'
import { translatedStream as fromGenerateContent } from '../../src/protocols/generate-content/streams.ts'
import { translatedStream as fromMessages } from '../../src/protocols/messages/streams.ts'

const PROMPT_BYTES = 80
const PROMPT_TOKENS = PROMPT_BYTES / 4
/** What the model says, in two halves, and the tokens that are estimated for one of them. */
const HALF = 'x'.repeat(200)
const HALF_TOKENS = 50

const ABORTED: Ending = { kind: 'aborted' }
const SUCCESS: Ending = { kind: 'success' }
const FAILED: Ending = { kind: 'failed', code: 'upstream_error', message: 'cut' }
const TIMEOUT: Ending = { kind: 'timeout', message: 'late' }

/** A report: null leaves a count out. */
type Report = readonly [prompt: number | null, output: number | null]
/** Says a half, or nothing, and then reports. */
type Chunk = readonly [text: string, report: Report | null]

interface Way {
  readonly open: () => AnswerStream
  readonly print: (chunks: readonly Chunk[]) => string
}

const given = (fields: Record<string, number | null | undefined>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null))
const events = (payloads: readonly object[]) =>
  payloads.map((payload) => `data: ${JSON.stringify(payload)}\n\n`).join('')

const chatCompletions = (chunks: readonly Chunk[]) =>
  events(
    chunks.map(([content, report]) => ({
      choices: content === '' ? [] : [{ index: 0, delta: { content } }],
      ...(report && { usage: given({ prompt_tokens: report[0], completion_tokens: report[1] }) }),
    })),
  )
const messages = (chunks: readonly Chunk[]) =>
  events(
    chunks.flatMap(([text, report]) => [
      ...(text === ''
        ? []
        : [{ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }]),
      ...(report === null
        ? []
        : [
            {
              type: 'message_delta',
              delta: {},
              usage: given({ input_tokens: report[0], output_tokens: report[1] }),
            },
          ]),
    ]),
  )
const responses = (chunks: readonly Chunk[]) =>
  events(
    chunks.flatMap(([delta, report]) => [
      ...(delta === '' ? [] : [{ type: 'response.output_text.delta', delta }]),
      ...(report === null
        ? []
        : [
            {
              type: 'response.in_progress',
              response: { usage: given({ input_tokens: report[0], output_tokens: report[1] }) },
            },
          ]),
    ]),
  )
const generateContentChunks = (chunks: readonly Chunk[]) =>
  chunks.map(([text, report]) => ({
    candidates: [{ content: { parts: text === '' ? [] : [{ text }] } }],
    ...(report && {
      usageMetadata: given({
        promptTokenCount: report[0],
        candidatesTokenCount: report[1],
        // The vendor's total, which comes in chunks without an output as well.
        totalTokenCount: report[0] === null ? null : report[0] + (report[1] ?? 0),
      }),
    }),
  }))
const generateContent = (chunks: readonly Chunk[]) => events(generateContentChunks(chunks))

const WAYS: Readonly<Record<string, Way>> = {
  'chat-completions': {
    open: () => new ChatCompletionsMeter({ withholdUsage: true }),
    print: chatCompletions,
  },
  messages: { open: () => new MessagesMeter(), print: messages },
  'messages, translated': { open: fromMessages, print: messages },
  responses: { open: () => new ResponsesMeter(), print: responses },
  'generate-content, events': { open: () => new GenerateContentMeter('sse'), print: generateContent },
  'generate-content, array': {
    open: () => new GenerateContentMeter('array'),
    print: (chunks) => JSON.stringify(generateContentChunks(chunks)),
  },
  'generate-content, translated': { open: fromGenerateContent, print: generateContent },
}

function billed(
  { open, print }: Way,
  chunks: readonly Chunk[],
  ending: Ending,
  links: LinkedParts = NO_LINKS,
) {
  const stream = open()
  stream.push(Buffer.from(print(chunks)))
  const admitted = {
    request: { header: () => '' },
    known: { account: {}, key: {} },
    model: { entry: modelEntry.parse({ id: 'm' }) },
    call: { promptBytes: PROMPT_BYTES, links },
    estimate: 0n,
  }
  const record = new CallRecord(admitted as unknown as AdmittedCall, [])
  record.metered = stream
  record.ending = ending
  record.isSent = true
  const { usage, source } = record.usage()
  return [usage.prompt, usage.output, source]
}

interface Case {
  readonly what: string
  readonly chunks: readonly Chunk[]
  readonly ending: Ending
  readonly expected: readonly [prompt: number, output: number, source: string]
}

const CASES: readonly Case[] = [
  {
    what: 'a prompt that comes with every chunk is no report of the output',
    chunks: [
      [HALF, [33, null]],
      [HALF, [33, null]],
    ],
    ending: ABORTED,
    expected: [33, 2 * HALF_TOKENS, 'estimate'],
  },
  {
    what: 'nor is it where the answer comes to its end',
    chunks: [
      [HALF, [33, null]],
      [HALF, [33, null]],
    ],
    ending: SUCCESS,
    expected: [33, 2 * HALF_TOKENS, 'estimate'],
  },
  {
    what: 'zeros in every chunk are a placeholder where the client leaves',
    chunks: [
      [HALF, [0, 0]],
      [HALF, [0, 0]],
    ],
    ending: ABORTED,
    expected: [PROMPT_TOKENS, 2 * HALF_TOKENS, 'estimate'],
  },
  {
    what: 'what was said is estimated by its script',
    // Four characters of ASCII are a token, and so is one Chinese character.
    chunks: [['你好世界'.repeat(25), null]],
    ending: ABORTED,
    expected: [PROMPT_TOKENS, 100, 'estimate'],
  },
  {
    what: 'zeros that the answer ends with are zeros',
    chunks: [
      [HALF, null],
      [HALF, null],
      ['', [0, 0]],
    ],
    ending: SUCCESS,
    expected: [0, 0, 'upstream'],
  },
  {
    what: 'what was said after a report is estimated on top of it',
    chunks: [
      [HALF, [33, 7]],
      [HALF, null],
    ],
    ending: ABORTED,
    expected: [33, 7 + HALF_TOKENS, 'estimate'],
  },
  {
    what: 'also where the answer comes to its end without another',
    chunks: [
      [HALF, [33, 7]],
      [HALF, null],
    ],
    ending: SUCCESS,
    expected: [33, 7 + HALF_TOKENS, 'estimate'],
  },
  {
    what: 'a count that stays as it is does not count what was said meanwhile',
    chunks: [
      [HALF, [33, 7]],
      [HALF, [33, 7]],
    ],
    ending: FAILED,
    expected: [33, 7 + HALF_TOKENS, 'estimate'],
  },
  {
    what: 'a report that keeps up with the text needs no estimate',
    chunks: [
      [HALF, [33, 7]],
      [HALF, [33, 14]],
    ],
    ending: ABORTED,
    expected: [33, 14, 'upstream'],
  },
  {
    what: 'a later report never lowers an earlier one',
    chunks: [
      [HALF, [33, 70]],
      ['', [5, 3]],
    ],
    ending: SUCCESS,
    expected: [33, 70, 'upstream'],
  },
  {
    what: 'an output without a prompt is a lower bound as well',
    chunks: [[HALF, [null, 70]]],
    ending: ABORTED,
    expected: [PROMPT_TOKENS, 70, 'estimate'],
  },
  {
    what: 'thought that was reported and not said is owed where the time ran out',
    chunks: [['', [33, 70]]],
    ending: TIMEOUT,
    expected: [33, 70, 'upstream'],
  },
  {
    what: 'and not where the upstream failed',
    chunks: [['', [33, 70]]],
    ending: FAILED,
    expected: [0, 0, 'none'],
  },
]

for (const [name, way] of Object.entries(WAYS))
  t.test(name, async (t) => {
    for (const { what, chunks, ending, expected } of CASES)
      t.same(billed(way, chunks, ending), expected, what)
  })

t.test('parts given by URL count in an estimated prompt, and not beside a reported one', async (t) => {
  const links = { image: 2, file: 1, audio: 1, urls: [] }
  const way = WAYS.messages!
  const linked = 2 * 1600 + 16_000 + 2000
  t.same(billed(way, [[HALF, null]], ABORTED, links), [PROMPT_TOKENS + linked, HALF_TOKENS, 'estimate'])
  t.same(billed(way, [[HALF, [33, null]]], ABORTED, links), [33, HALF_TOKENS, 'estimate'])
})
