/** The headers of translated calls. */
import t from 'tap'
import { planTranslationHeaders } from '../../../pipelines/chat/forward/translation-headers.ts'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { Failure } from '../../../schemas/failure.ts'
import { clientCall, RunningCall } from './forward-support.ts'

t.test('translated calls say so', async (t) => {
  // The headers of translated calls: which protocols, the names of dropped fields, and what was changed.
  const TRANSLATION = 'x-protocol-translation'
  const WARNING = 'x-protocol-warning'
  const CHANGES = 'x-protocol-changes'

  const started = (upstream: ChatProtocol, request: object = {}) =>
    new RunningCall({ upstream, client: clientCall('chat-completions', 'hi', false, request) })

  function headersOf(call: RunningCall): Record<string, string> {
    const [reply] = call.replies
    const headers = reply !== undefined && reply.type !== 'data' ? reply.headers : call.errorHeaders
    return Object.fromEntries(headers)
  }

  const MESSAGE = { type: 'message', content: [{ type: 'text', text: 'x' }], stop_reason: 'end_turn' }

  t.test('a cache mark of a lifetime without a price is named, be the call translated or not', async (t) => {
    const mark = (ttl: string) => ({ cache_control: { type: 'ephemeral', ttl } })
    const content = ['5m', '24h', '1h', '24h'].map((ttl) => ({
      type: 'text',
      text: 'hi "ttl"',
      ...mark(ttl),
    }))
    for (const [client, upstream] of [
      ['messages', 'messages'],
      ['chat-completions', 'messages'],
      ['chat-completions', 'chat-completions'],
    ] as const) {
      const request = { messages: [{ role: 'user', content }] }
      const modelFields = { pricing: { unit: '1M_tokens', input: '1', output: '1', cache_write: '1' } }
      const call = new RunningCall({
        ...{ upstream, modelFields },
        client: clientCall(client, 'hi', false, request),
      })
      call.attempt.answer(upstream === 'messages' ? MESSAGE : { choices: [] })
      t.equal(headersOf(call)[WARNING], 'cache_control.ttl 24h', `${client} to ${upstream}`)
    }
  })

  t.test('the warning has names and nothing else; what was changed stands apart', async (t) => {
    const call = started('messages', {
      seed: 1,
      temperature: 1.5,
      logit_bias: { 1: 1 },
      response_format: { type: 'json_object' },
      n: 2,
      stop: ['a', ' '],
    })
    call.attempt.answer(MESSAGE)
    const headers = headersOf(call)
    t.equal(headers[TRANSLATION], 'chat-completions to messages')
    t.same(headers[WARNING]?.split('; ').sort(), ['logit_bias', 'n', 'response_format', 'seed'])
    t.match(headers[CHANGES], /^temperature \(lowered to 1, [^;]*\); stop \([^;]*\)$/)
    t.match(call.settlement.detail, /seed.*temperature \(lowered to 1/, 'the log has both')
  })

  t.test('without anything dropped or changed neither is there', async (t) => {
    const call = started('messages')
    call.attempt.answer(MESSAGE)
    t.match(headersOf(call), { [TRANSLATION]: String, [WARNING]: undefined, [CHANGES]: undefined })
  })

  t.test('a list that is too long ends with a whole name', async (t) => {
    const many = Object.fromEntries(Array.from({ length: 400 }, (_, index) => [`field_${index}`, 1]))
    const call = started('messages', many)
    call.attempt.answer(MESSAGE)
    const names = headersOf(call)[WARNING]!.split('; ')
    t.ok(names.length > 100)
    for (const name of names) t.match(name, /^field_\d+$/)
    t.equal(names.at(-1), `field_${names.length - 1}`)
  })

  t.test('failed and refused calls say it too', async (t) => {
    for (const upstream of ['messages', 'generate-content'] as const) {
      const translation = `chat-completions to ${upstream}`
      const refused = started(upstream, { logit_bias: { 1: 1 } })
      refused.attempt.refuse(400, 'bad')
      t.match(refused.error, { status: 400 })
      t.match(headersOf(refused), { [TRANSLATION]: translation, [WARNING]: 'logit_bias' })

      const failed = started(upstream)
      failed.attempt.fail('connect')
      t.match(failed.error, { status: 502 })
      t.match(headersOf(failed), { [TRANSLATION]: translation })

      const content = [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'x' } }]
      const untranslatable = started(upstream, { messages: [{ role: 'user', content }] })
      t.equal(untranslatable.attempts.length, 0)
      t.ok(untranslatable.error instanceof Failure)
      t.match(headersOf(untranslatable), { [TRANSLATION]: translation })
    }
  })

  t.test('a native call says nothing, whole or refused', async (t) => {
    const call = started('chat-completions')
    call.attempt.refuse(400, 'bad')
    t.same(headersOf(call), {})
  })

  t.test(
    'refused before an attempt: where any attempt would have been translated, as the first',
    async (t) => {
      const route = (protocol: ChatProtocol, priority = 0) => ({
        isTranslated: protocol !== 'chat-completions',
        protocol,
        channel: { priority },
      })
      const of = (...routes: readonly ReturnType<typeof route>[]) =>
        planTranslationHeaders('chat-completions', { routes })
      t.same(of(route('messages')), [[TRANSLATION, 'chat-completions to messages']])
      t.same(of(route('messages', 1), route('generate-content')), [
        [TRANSLATION, 'chat-completions to generate-content'],
      ])
      for (const routes of [[], [route('chat-completions')], [route('chat-completions'), route('messages')]])
        t.same(of(...routes), [])
      t.same(planTranslationHeaders('chat-completions', {}), [])
    },
  )
})
