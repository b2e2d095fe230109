/**
 * Chooses the reader of an upstream's answer by its status, its content type and what the client asked for, and reads
 * answers that are sent in one piece.
 */
import { Buffer } from 'node:buffer'
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import { findProvider } from '../../../src/channels/providers/presets.ts'
import { type KeyMask, makeKeyMask } from '../../../src/core/call-log/key-mask.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import { NOTHING_METERED } from '../../../src/protocols/answer/reported-usage.ts'
import { EVENT_STREAM_TYPE, withEventStreamFraming } from '../../../src/protocols/aws/bedrock-stream.ts'
import { showCostInStream, withCost } from '../../../src/protocols/chat-completions/shown-cost.ts'
import type {
  AnswerStream,
  ChatCall,
  Metered,
  ProtocolAdapter,
  WholeAnswer as ReadAnswer,
  StreamAssembler,
} from '../../../src/protocols/dialect.ts'
import type { ResponseHeaders, UpstreamFailure } from '../../../src/upstream/client.ts'
import {
  type AttemptFailure,
  endedWithoutAnswer,
  incompleteAnswer,
  readUpstreamRefusal,
  toConnectionFailure,
  tooLargeAnswer,
  toStreamFailure,
  unusableAnswer,
} from '../../calls/upstream-error.ts'
import {
  type Answer,
  type AnswerReceiver,
  isCompressed,
  MAX_WHOLE_RESPONSE_BYTES,
  StreamAnswer,
} from './stream-answer.ts'

const EVENT_STREAM = 'text/event-stream'
const JSON_TYPE = 'application/json'

/**
 * Returns true for an answer to be read as a stream: the client requested one, and the upstream did not answer in one
 * piece.
 */
function isStreamed(contentType: string, asked: ChatCall, { streamTypes }: ProtocolAdapter): boolean {
  if (!asked.stream) return false
  const type = contentType.toLowerCase()
  return type.includes(EVENT_STREAM) || (streamTypes?.(asked).some((known) => type.includes(known)) ?? false)
}

const meterCharacters = (characters: number): Metered => ({
  ...NOTHING_METERED,
  characters,
  charactersSinceUsage: characters,
})

class WholeAnswer implements Answer {
  readonly #call: AnswerReceiver
  readonly #contentType: string
  readonly #route: Route
  readonly #read: (body: Buffer) => ReadAnswer
  readonly #body = new Collected()
  #metered = NOTHING_METERED

  constructor(call: AnswerReceiver, contentType: string, route: Route, read: (body: Buffer) => ReadAnswer) {
    this.#call = call
    this.#contentType = contentType
    this.#route = route
    this.#read = read
  }

  readMeter(): Metered {
    return this.#metered
  }

  data(bytes: Buffer): void {
    this.#body.add(bytes)
    if (this.#body.length <= MAX_WHOLE_RESPONSE_BYTES) return
    // Too large to be read: it is charged by its bytes, up to the most that one call can use.
    this.#metered = meterCharacters(this.#body.length)
    this.#call.fail(tooLargeAnswer())
  }

  end(): void {
    const { body, metered, isAnswer } = this.#read(this.#body.all())
    // As in a stream: nothing is sent, another channel may do better, and nothing is charged.
    if (!isAnswer) return this.#call.fail(unusableAnswer(body, this.#route))
    this.#metered = metered
    this.#call.finishWhole([['content-type', this.#contentType]], body)
  }

  breakOff(failure: UpstreamFailure): void {
    const broken = toConnectionFailure(failure)
    // The upstream has worked until the time was over.
    if (broken.isTimeout) this.#metered = this.#read(this.#body.all()).metered
    this.#call.fail(broken)
  }
}

/** A stream that its client gets in one piece. Until it is whole it is no answer. */
class AssembledAnswer implements Answer {
  readonly #call: AnswerReceiver
  readonly #stream: AnswerStream
  readonly #assembler: StreamAssembler
  readonly #route: Route
  #length = 0
  #metered: Metered = NOTHING_METERED

  constructor(call: AnswerReceiver, stream: AnswerStream, assembler: StreamAssembler, route: Route) {
    this.#route = route
    this.#call = call
    this.#stream = stream
    this.#assembler = assembler
  }

  readMeter(): Metered {
    return this.#metered
  }

  data(bytes: Buffer): void {
    this.#take(this.#stream.push(bytes))
    if (this.#length <= MAX_WHOLE_RESPONSE_BYTES) return
    this.#metered = this.#stream
    this.#call.fail(tooLargeAnswer())
  }

  #take(out: Buffer | null): void {
    if (out === null) return
    this.#length += out.length
    this.#assembler.push(out)
  }

  end(): void {
    this.#take(this.#stream.end())
    const { laterError, firstError, isAnswer, isComplete } = this.#stream
    const error = laterError ?? firstError
    if (error !== null) return this.#call.fail(toStreamFailure(error, this.#route))
    if (!isAnswer) return this.#call.fail(endedWithoutAnswer())
    if (!isComplete) return this.#call.fail(incompleteAnswer())
    this.#metered = this.#stream
    this.#call.finishWhole([['content-type', JSON_TYPE]], this.#assembler.body())
  }

  breakOff(failure: UpstreamFailure): void {
    if (this.#stream.isFinished) return this.end()
    const broken = toConnectionFailure(failure)
    // As of any whole answer: the upstream has worked until the time was over.
    if (broken.isTimeout) this.#metered = this.#stream
    this.#call.fail(broken)
  }
}

/** Status and headers of an upstream's answer. */
interface AnswerHead {
  readonly status: number
  readonly headers: ResponseHeaders
  readonly adapter: ProtocolAdapter
  readonly route: Route
}

/** Chooses the reader of the upstream's answer to `asked`; returns null for an answer that cannot be read. */
export function chooseAnswer(asked: ChatCall, call: AnswerReceiver, head: AnswerHead): Answer | null {
  const { status, headers, adapter, route } = head
  if (status >= 300 || status < 200) return new ErrorAnswer(call, head)
  if (isCompressed(headers)) return null
  const contentType = headers.contentType ?? JSON_TYPE
  const isAssembled = asked.isAssembled === true
  const opened = openAnswerStream(asked, contentType, adapter, route)
  const showsCost = opened !== null && asked.wantsCost === true
  const stream = showsCost ? showCostInStream(opened, () => call.record.quoteCost(opened)) : opened
  if (stream === null) {
    const wanted = isAssembled ? { ...asked, stream: false } : asked
    const type = wanted.stream ? (adapter.streamContentType(asked) ?? EVENT_STREAM) : contentType
    return new WholeAnswer(call, type, route, (body) => readWhole(wanted, body, head, call))
  }
  if (isAssembled) return new AssembledAnswer(call, stream, adapter.assembleStream!(), route)
  const isAws = isAwsFraming(contentType)
  return new StreamAnswer(
    call,
    adapter.streamContentType(asked) ?? (isAws ? EVENT_STREAM : contentType),
    stream,
    route,
  )
}

const isAwsFraming = (contentType: string): boolean => contentType.toLowerCase().startsWith(EVENT_STREAM_TYPE)

/** Returns the stream to read; null where the client asked for none, or the upstream answers in one piece. */
function openAnswerStream(
  asked: ChatCall,
  contentType: string,
  adapter: ProtocolAdapter,
  { channel: { provider } }: Route,
): AnswerStream | null {
  if (asked.stream && isAwsFraming(contentType))
    return withEventStreamFraming(adapter.openStream(asked, provider))
  return isStreamed(contentType, asked, adapter) ? adapter.openStream(asked, provider) : null
}

const MAX_ERROR_BODY_BYTES = 65_536

/** An upstream's answer with an error status: its body says why. */
class ErrorAnswer {
  readonly #call: { fail(failure: AttemptFailure): void }
  readonly #head: AnswerHead
  readonly #body = new Collected()

  constructor(call: { fail(failure: AttemptFailure): void }, head: AnswerHead) {
    this.#call = call
    this.#head = head
  }

  readMeter(): Metered {
    return NOTHING_METERED
  }

  data(bytes: Buffer): void {
    this.#body.add(bytes)
    // No error text is this long: what more there is need not be waited for.
    if (this.#body.length > MAX_ERROR_BODY_BYTES) this.end()
  }

  end(): void {
    const { status, headers, route } = this.#head
    const retryAfter = headers.get('retry-after') ?? null
    const { channel, isTranslated } = route
    this.#call.fail(readUpstreamRefusal(channel, status, this.#body.all(), retryAfter, isTranslated))
  }

  /** Ends the attempt: the status suffices, even where its body was cut off. */
  breakOff(): void {
    this.end()
  }
}

/** Bytes of one answer, kept until it is whole. */
class Collected {
  readonly #pieces: Buffer[] = []
  length = 0

  add(bytes: Buffer): void {
    this.#pieces.push(Buffer.from(bytes))
    this.length += bytes.length
  }

  all(): Buffer {
    return this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces, this.length)
  }
}

/** Reads an upstream's answer in one piece. A client that asked for a stream gets it as the events of one. */
function readWhole(
  asked: ChatCall,
  body: Buffer,
  { adapter, headers, route }: AnswerHead,
  call: AnswerReceiver,
): ReadAnswer {
  const { provider } = route.channel
  const read = adapter.readWhole(asked, body, provider)
  const metered = withHeaderUsage(read.metered, provider, headers)
  const { isAnswer } = read
  const cost = asked.wantsCost === true && isAnswer ? call.record.quoteCost(metered) : null
  const whole = cost === null ? read.body : withCost(read.body, cost)
  return { isAnswer, body: asked.stream && isAnswer ? adapter.wholeAsStream(asked, whole) : whole, metered }
}

/** Returns the facts of a whole answer, with the counts of the headers where the body has none. */
export function withHeaderUsage(
  metered: Metered,
  provider: string | undefined,
  headers: Pick<ResponseHeaders, 'get'>,
): Metered {
  if (metered.usage !== null) return metered
  const usage = findProvider(provider)?.readHeaderUsage?.((name) => headers.get(name)) ?? null
  if (usage === null) return metered
  // A copy leaves out what a class counts when it is read.
  const { characters, model, suspect, reported, serviceTier, responseId, itemIds } = metered
  const facts = { characters, model, suspect, reported, serviceTier, responseId, itemIds }
  return { ...facts, usage, charactersSinceUsage: 0, isUsageWhole: true }
}

function maskStream(stream: AnswerStream, mask: KeyMask): AnswerStream {
  const push = stream.push.bind(stream)
  const end = stream.end.bind(stream)
  stream.push = (piece) => {
    const shown = mask.push(piece)
    return shown === null ? null : push(shown)
  }
  stream.end = () => {
    const rest = mask.end()
    const out = rest === null ? null : push(rest)
    const tail = end()
    return out === null || tail === null ? (out ?? tail) : Buffer.concat([out, tail])
  }
  return stream
}

/**
 * Takes the keys of a channel out of its answers before anything reads them. See docs/security.md, "What is promised".
 * Returns the adapter for an answer of the channel.
 */
export function maskKeys(adapter: ProtocolAdapter, channel: ChannelEntry): ProtocolAdapter {
  const mask = makeKeyMask(channel)
  if (mask === null) return adapter
  return {
    ...adapter,
    openStream: (call, provider) => maskStream(adapter.openStream(call, provider), mask),
    readWhole: (call, body, provider) => adapter.readWhole(call, mask.maskWhole(body), provider),
  }
}
