/** Chooses the reader of an upstream's answer, by its status, its content type and what the client asked for. */
import type { Buffer } from 'node:buffer'
import type { Route } from '../../../src/core/routing/catalog.ts'
import { EVENT_STREAM_TYPE, withEventStreamFraming } from '../../../src/protocols/aws/bedrock-stream.ts'
import type {
  AnswerStream,
  ChatCall,
  Metered,
  ProtocolAdapter,
  StreamAssembler,
} from '../../../src/protocols/dialect.ts'
import type { ResponseHeaders, UpstreamFailure } from '../../../src/upstream/client.ts'
import {
  brokenConnection,
  endedWithoutAnswer,
  incompleteAnswer,
  tooLargeAnswer,
} from '../../calls/upstream-error.ts'
import {
  type Answer,
  type AnswerReceiver,
  isCompressed,
  MAX_WHOLE_RESPONSE_BYTES,
  StreamAnswer,
  type Waiting,
  WholeAnswer,
} from './answers.ts'
import { NOTHING_METERED } from './call-record.ts'
import { ErrorAnswer } from './error-answer.ts'
import { readWhole } from './read-whole.ts'

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

/** A stream that its client gets in one piece. Until it is whole it is no answer. */
class AssembledAnswer implements Answer {
  readonly #call: AnswerReceiver
  readonly #stream: AnswerStream
  readonly #assembler: StreamAssembler
  #length = 0
  #metered: Metered = NOTHING_METERED

  constructor(call: AnswerReceiver, stream: AnswerStream, assembler: StreamAssembler) {
    this.#call = call
    this.#stream = stream
    this.#assembler = assembler
  }

  metered(): Metered {
    return this.#metered
  }

  data(bytes: Buffer): void {
    this.#take(this.#stream.push(bytes))
    if (this.#length <= MAX_WHOLE_RESPONSE_BYTES) return
    this.#metered = this.#stream
    this.#call.failed(tooLargeAnswer())
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
    if (error !== null) return this.#call.failed(this.#call.erred(error))
    if (!isAnswer) return this.#call.failed(endedWithoutAnswer())
    if (!isComplete) return this.#call.failed(incompleteAnswer())
    this.#metered = this.#stream
    this.#call.finishWhole([['content-type', JSON_TYPE]], this.#assembler.body())
  }

  broken(failure: UpstreamFailure): void {
    if (this.#stream.isFinished) return this.end()
    const broken = brokenConnection(failure)
    // As of any whole answer: the upstream has worked until the time was over.
    if (broken.isTimeout) this.#metered = this.#stream
    this.#call.failed(broken)
  }
}

/** Status and headers of an upstream's answer. */
interface AnswerHead {
  readonly status: number
  readonly headers: ResponseHeaders
  readonly adapter: ProtocolAdapter
  readonly route: Route
  readonly waiting: Waiting
}

/** Chooses the reader of the upstream's answer to `asked`; returns null for an answer that cannot be read. */
export function answerTo(asked: ChatCall, call: AnswerReceiver, head: AnswerHead): Answer | null {
  const { status, headers, adapter, route, waiting } = head
  if (status >= 300 || status < 200) return new ErrorAnswer(call, head)
  if (isCompressed(headers)) return null
  const contentType = headers.contentType ?? JSON_TYPE
  const isAssembled = asked.isAssembled === true
  const stream = streamOf(asked, contentType, adapter, route)
  if (stream === null) {
    const wanted = isAssembled ? { ...asked, stream: false } : asked
    const type = wanted.stream ? (adapter.streamContentType ?? EVENT_STREAM) : contentType
    return new WholeAnswer(call, type, (body) => readWhole(wanted, body, head))
  }
  if (isAssembled) return new AssembledAnswer(call, stream, adapter.assembleStream!())
  const isAws = isAwsFraming(contentType)
  return new StreamAnswer(
    call,
    adapter.streamContentType ?? (isAws ? EVENT_STREAM : contentType),
    stream,
    waiting,
  )
}

const isAwsFraming = (contentType: string): boolean => contentType.toLowerCase().startsWith(EVENT_STREAM_TYPE)

/** Returns the stream to read; null where the client asked for none, or the upstream answers in one piece. */
function streamOf(
  asked: ChatCall,
  contentType: string,
  adapter: ProtocolAdapter,
  { channel: { provider } }: Route,
): AnswerStream | null {
  if (asked.stream && isAwsFraming(contentType))
    return withEventStreamFraming(adapter.openStream(asked, provider))
  return isStreamed(contentType, asked, adapter) ? adapter.openStream(asked, provider) : null
}
