/** The smallest call to a channel: it proves key, address and model, and costs next to nothing. */
import { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import { lastValueFrom, type Observable, tap } from 'rxjs'
import type { ChannelEntry, ChatProtocol } from '../../../schemas/config/catalog.ts'
import { CHAT_PROTOCOLS } from '../../../schemas/config/catalog.ts'
import { Failure } from '../../../schemas/failure.ts'
import { printCredits } from '../../../schemas/money.ts'
import { redact } from '../../../src/core/call-log/redact.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { type TokenPrice, tokenCharge, tokenPrice } from '../../../src/core/pricing/pricing.ts'
import { NO_USAGE } from '../../../src/core/pricing/usage.ts'
import type { Catalog } from '../../../src/core/routing/catalog.ts'
import { hasAccess } from '../../../src/core/routing/channel-access.ts'
import { listUpstreamTexts } from '../../../src/core/routing/upstream-texts.ts'
import { PLAIN_OPTIONS } from '../../../src/protocols/dialect.ts'
import { protocolAdapter, READERS } from '../../../src/protocols/registry.ts'
import type { UpstreamEvent } from '../../../src/upstream/observe.ts'
import { readUpstreamRefusal } from '../../calls/upstream-error.ts'
import type { UpstreamCallRequest } from '../../chat/forward/attempt-request.ts'

const DEADLINE_MS = 30_000
const MAX_ANSWER_BYTES = 1024 * 1024
const PROMPT = 'Hi'
/** A refused key is named as such, whatever the channel's customers see of it. */
const AS_OPERATORS_READ = { hide_auth_errors: true }
/** The fewest output tokens that the API of this protocol allows. */
const LEAST_RESPONSES_TOKENS = 16

/** The body of the smallest request in each protocol. */
const BODIES: Readonly<Record<ChatProtocol | 'embeddings', (model: string) => object>> = {
  'chat-completions': (model) => ({ model, max_tokens: 1, messages: [{ role: 'user', content: PROMPT }] }),
  messages: (model) => ({ model, max_tokens: 1, messages: [{ role: 'user', content: PROMPT }] }),
  responses: (model) => ({ model, max_output_tokens: LEAST_RESPONSES_TOKENS, input: PROMPT }),
  'generate-content': () => ({
    contents: [{ role: 'user', parts: [{ text: PROMPT }] }],
    generationConfig: { maxOutputTokens: 1 },
  }),
  embeddings: (model) => ({ model, input: PROMPT }),
}

export type OpenUpstream = (request: UpstreamCallRequest) => Observable<UpstreamEvent>

interface TestedChannel {
  readonly channel: ChannelEntry
  /** The model; undefined: the first of the channel. */
  readonly name: string | undefined
  readonly catalog: Catalog
  /** Epoch milliseconds. */
  readonly now: number
  /** Called before the call is sent. */
  readonly onCall: (sent: { readonly model: string }) => Promise<void>
}

const isChat = (protocol: string): protocol is ChatProtocol =>
  (CHAT_PROTOCOLS as readonly string[]).includes(protocol)

/** Returns the model to call and the upstream's name of it. @throws Failure `invalid_request` */
function findModel({ channel, name, catalog }: TestedChannel) {
  const served = Object.entries(channel.models).map(([id, upstreamModel]) => ({
    model: catalog.resolve(id),
    upstreamModel,
  }))
  const wanted = name === undefined ? null : (catalog.resolve(name)?.id ?? name)
  const found = served.find(({ model }) => model?.price && (wanted === null || model.id === wanted))
  if (found?.model?.price) {
    const { id, price, entry } = found.model
    const isEmbeddings = entry.endpoint_type === 'embeddings'
    return { id, price, isEmbeddings, upstreamModel: found.upstreamModel }
  }
  throw new Failure(
    'invalid_request',
    wanted === null
      ? `id: channel ${channel.id} has no model that is priced by tokens.`
      : `model: channel ${channel.id} does not serve a model ${wanted} that is priced by tokens.`,
  )
}

/** Collects an answer. @throws UpstreamFailure; Error for an answer that is too long */
async function collect(events: Observable<UpstreamEvent>): Promise<{ status: number; body: Buffer }> {
  let status = 0
  let length = 0
  const pieces: Buffer[] = []
  const take = (event: UpstreamEvent) => {
    if (event.type === 'head') {
      status = event.status
      return
    }
    length += event.bytes.length
    if (length > MAX_ANSWER_BYTES) throw new Error(`The answer is longer than ${MAX_ANSWER_BYTES} bytes.`)
    pieces.push(Buffer.from(event.bytes))
  }
  await lastValueFrom(events.pipe(tap(take)), { defaultValue: null })
  return { status, body: Buffer.concat(pieces, length) }
}

/**
 * Calls a channel, and says how it went and what it costs.
 * @throws Failure `invalid_request` where the channel takes no such call
 */
export async function callChannel(openUpstream: OpenUpstream, tested: TestedChannel) {
  const { channel, now, onCall } = tested
  if (!isChat(channel.protocol))
    throw new Failure(
      'invalid_request',
      `id: channel ${channel.id} makes media (${channel.protocol}), which no call tests for next to nothing. Order the smallest job of a model instead.`,
    )
  if (!hasAccess(channel))
    throw new Failure(
      'invalid_request',
      `id: channel ${channel.id} has no api_key, or a secret of its auth is empty, so it cannot be called.`,
    )
  const { id: model, price, upstreamModel, isEmbeddings } = findModel(tested)
  const protocol = isEmbeddings ? 'embeddings' : channel.protocol
  const body = Buffer.from(JSON.stringify(BODIES[protocol](model)))
  const call = READERS[protocol].read({ model, query: '', body })
  const adapter = protocolAdapter(protocol, protocol)
  const encoded = adapter.encodeRequest(call, {
    ...PLAIN_OPTIONS,
    upstreamModel,
    outputLimitField: channel.output_limit_field,
  })
  await onCall({ model })
  const startedAt = performance.now()
  const answered = await collect(
    openUpstream({
      channel,
      protocol,
      upstreamModel,
      stream: false,
      query: '',
      header: () => '',
      body: encoded.body,
      requestId: newId('req'),
      deadlineMs: Math.min(DEADLINE_MS, (channel.timeout_seconds ?? DEADLINE_MS) * 1000),
      onFreshConnection: true,
      traceparent: null,
    }),
  ).catch((error: Error) => error)
  const latency = Math.round(performance.now() - startedAt)
  const { names, secrets } = listUpstreamTexts([{ channel, upstreamModel }], model)
  const hideSecrets = (text: string) => redact(text, names, secrets)
  const base = { id: channel.id, model, upstream_model: upstreamModel, latency_ms: latency }
  const unpaid = { ...base, ok: false, input_tokens: 0, output_tokens: 0, cost: '0', upstream_cost: null }
  if (answered instanceof Error) return { ...unpaid, status: null, error: hideSecrets(answered.message) }
  const { status } = answered
  if (status !== 200) {
    const { message, detail } = readUpstreamRefusal(AS_OPERATORS_READ, status, answered.body, null)
    return { ...unpaid, status, error: hideSecrets(detail ?? message) }
  }
  const { metered, isAnswer } = adapter.readWhole(call, answered.body, channel.provider)
  const usage = metered.usage ?? NO_USAGE
  const charge = (by: TokenPrice | null): string | null =>
    by && printCredits(tokenCharge(by, usage, now, metered.serviceTier))
  return {
    ...base,
    ok: isAnswer,
    status,
    input_tokens: usage.prompt,
    output_tokens: usage.output,
    cost: charge(price)!,
    upstream_cost: charge(tokenPrice(channel.cost?.[model])),
    error: isAnswer ? null : 'The answer has neither content nor usage.',
  }
}
