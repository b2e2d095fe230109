/**
 * A chunk of usage alone is read, and withheld from a client that did not ask for it. Nothing else in a native answer
 * changes. See docs/failure-modes.md, "Streams", rows 33 and 34.
 */
import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { withoutUsageChunks } from '../../src/protocols/chat-completions/reference.ts'
import { borrowService } from '../../support/lend-services.ts'
import type { LentService } from '../../support/service.ts'
import { callConfig, rowOf, say, upstreamCalls, upstreamRequest } from '../support.ts'
import { clientFor, upstreamAnswer } from './support.ts'

const MESSAGES = say('Grüße, 世界 🌍')
const PROMPT_TOKENS = Math.ceil(Buffer.byteLength(JSON.stringify(MESSAGES)) / 4)
/** Of a prompt that is not reported: each later byte of a character counts half as much again. */
const LATER_BYTES = Buffer.byteLength(JSON.stringify(MESSAGES)) - [...JSON.stringify(MESSAGES)].length
const ESTIMATED_TOKENS = Math.ceil(Buffer.byteLength(JSON.stringify(MESSAGES)) / 4 + LATER_BYTES / 8)
const OUTPUT_TOKENS = 12
const BODY = { model: 'plain', messages: MESSAGES, max_tokens: OUTPUT_TOKENS }
const STREAM = { ...BODY, stream: true }

const sha256 = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex')

interface Asked {
  /** As the client has them. */
  readonly body: Buffer
  readonly contentType: string
  readonly requestId: string
  /** As the upstream received it, and what it answers to that. */
  readonly wire: Record<string, unknown>
  readonly upstream: Awaited<ReturnType<typeof upstreamAnswer>>
}

async function ask(t: Test, service: LentService, key: string, body: object): Promise<Asked> {
  const answered = await clientFor(t, service, key, 1)(body)
  t.equal(answered.status, 200)
  const { body: wireText } = await upstreamRequest(service, answered.requestId)
  return {
    ...answered,
    wire: JSON.parse(wireText),
    upstream: await upstreamAnswer(service, wireText),
  }
}

t.test('what a client gets of what the upstream sent', async (t) => {
  const models = {
    plain: {},
    broken_up: { simulate: 'split=7,sse=crlf+comments+nospace+multiline' },
    reasoning: { simulate: 'reasoning=5,reasoning_text,sse=comments' },
    always: { simulate: 'usage=always' },
    early: { simulate: 'usage=early' },
    with_finish: { simulate: 'usage=with_finish' },
    none: { simulate: 'usage=none' },
    refuses: { simulate: 'fault=no_stream_options' },
  }
  const service = await borrowService(t, callConfig(models))
  const { key } = await service.newKey('1000000')

  const billed = async (t: Test, requestId: string, input: number, output: number) => {
    const row = await rowOf(service, key, requestId)
    t.match(row, { status: 'success', input_tokens: input, output_tokens: output })
    t.equal(row.cost, String(input + 2 * output))
  }

  await t.test('asked for, the usage chunk passes, and all bytes are as the upstream’s', async (t) => {
    for (const model of ['plain', 'broken_up', 'reasoning', 'always', 'early', 'with_finish', 'none']) {
      const asked = await ask(t, service, key, {
        ...STREAM,
        model,
        stream_options: { include_usage: true },
      })
      t.equal(sha256(asked.body), sha256(asked.upstream.body), model)
      t.equal(asked.contentType, asked.upstream.contentType)
      t.match(asked.contentType, 'text/event-stream')
      if (model === 'plain') {
        t.match(asked.body.toString(), /"choices":\[\],[^\n]*"usage":\{"prompt_tokens":/)
        await billed(t, asked.requestId, PROMPT_TOKENS, OUTPUT_TOKENS)
      }
    }
  })

  await t.test('not asked for, or refused, the gateway asks and keeps it to itself', async (t) => {
    const without = [undefined, null, {}, { include_usage: false }, { include_usage: null }]
    for (const stream_options of without) {
      const asked = await ask(t, service, key, { ...STREAM, stream_options })
      t.strictSame(asked.wire.stream_options, { include_usage: true })
      const whole = asked.upstream.body.toString()
      t.match(whole, /"usage":\{"prompt_tokens":/, 'the upstream told it')
      t.equal(asked.body.toString(), withoutUsageChunks(whole))
      t.notMatch(asked.body.toString(), /prompt_tokens/)
      t.ok(asked.body.toString().endsWith('data: [DONE]\n\n'))
      await billed(t, asked.requestId, PROMPT_TOKENS, OUTPUT_TOKENS)
    }
  })

  await t.test('only the chunk of its own is withheld, in whatever form it comes', async (t) => {
    for (const model of ['broken_up', 'reasoning', 'always', 'early', 'with_finish']) {
      const asked = await ask(t, service, key, { ...STREAM, model })
      const whole = asked.upstream.body.toString()
      t.equal(sha256(asked.body), sha256(withoutUsageChunks(whole)), model)
      const isOwnChunk = model !== 'early' && model !== 'with_finish'
      t.equal(asked.body.length < asked.upstream.body.length, isOwnChunk, model)
      await t.resolves(billed(t, asked.requestId, PROMPT_TOKENS, OUTPUT_TOKENS))
    }
  })

  await t.test('an answer in one piece passes as it came', async (t) => {
    for (const model of ['plain', 'broken_up', 'none']) {
      const asked = await ask(t, service, key, { ...BODY, model })
      t.equal(asked.wire.stream_options, undefined, 'nothing is asked for')
      t.equal(sha256(asked.body), sha256(asked.upstream.body), model)
      t.equal(asked.contentType, asked.upstream.contentType)
    }
  })

  await t.test('a provider that rejects `stream_options` is asked without it, and remembered', async (t) => {
    const body = { ...STREAM, model: 'refuses' }
    const first = await ask(t, service, key, body)
    t.equal((await upstreamCalls(service, first.requestId)).length, 2)
    t.equal(first.wire.stream_options, undefined)
    t.ok(first.body.toString().endsWith('data: [DONE]\n\n'))
    const row = await rowOf(service, key, first.requestId)
    t.match(row, { status: 'success', attempts_count: 2, input_tokens: ESTIMATED_TOKENS })
    t.ok(row.output_tokens > 0, 'estimated from what was said')

    const second = await ask(t, service, key, { ...body, stream_options: { include_usage: true } })
    t.equal((await upstreamCalls(service, second.requestId)).length, 1, 'known from then on')
    t.equal(second.wire.stream_options, undefined)
  })
})
