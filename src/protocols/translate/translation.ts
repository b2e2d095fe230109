/**
 * Translates calls between any two protocols: one reader and one writer for each, and the canonical conversation and parts in
 * between. See docs/translation.md.
 */
import { Buffer } from 'node:buffer'
import type { Conversation } from '../../../schemas/chat/conversation.ts'
import type { Part } from '../../../schemas/chat/part.ts'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { answerFields, SaidParts } from '../answer/content.ts'
import { meterWhole, readAnswerModel } from '../answer/reported-usage.ts'
import type { ChatCall, EncodeOptions, ProtocolAdapter, WholeAnswer } from '../dialect.ts'
import { DroppedFields } from './dropped-fields.ts'
import { listLinkedFiles } from './linked-files.ts'
import { type AnswerPrinter, type PartReader, TranslatedStream } from './stream.ts'

type Fields = NonNullable<ReturnType<typeof answerFields>>

/** Reads answers of an upstream's protocol. */
export interface AnswerReader extends PartReader {
  /** Reads a whole answer as if it were streamed. Returns whether it is an answer. */
  readWhole(answer: Fields, emit: (part: Part) => void): boolean
}

/** A protocol as that of an upstream. */
export interface UpstreamSide {
  /** Returns false for an upstream to which the gateway sends the files of links. */
  fetchesLinks(provider: string | undefined): boolean
  /** @throws Failure `invalid_request` with a message that names the field */
  write(conversation: Conversation, call: ChatCall, options: EncodeOptions, dropped: DroppedFields): Buffer
  reader(provider: string | undefined): AnswerReader
  /** Returns the model that a whole answer names. */
  readModel(answer: Fields): unknown
  /** Its usage counts thoughts apart from the rest of the output. */
  readonly countsThoughts: boolean
}

export interface PrintOptions {
  readonly upstream: ChatProtocol
  /** Epoch seconds. */
  readonly created: number
}

/** Takes the parts of an answer. */
export interface AnswerCollector {
  add(part: Part): void
  body(): Buffer
}

/** A protocol as that of a client. */
export interface ClientSide
  extends Pick<ProtocolAdapter, 'wholeAsStream' | 'assembleStream' | 'streamContentType' | 'keepAlive'> {
  /** @throws Failure `invalid_request` with a message that names the field */
  read(call: ChatCall, dropped: DroppedFields): Conversation
  printer(call: ChatCall, options: PrintOptions): AnswerPrinter
  collector(call: ChatCall, options: PrintOptions): AnswerCollector
}

type Side<T> = readonly [protocol: ChatProtocol, side: T]

/** Returns the translation. `now` returns epoch milliseconds. */
export function translation(
  [from, client]: Side<ClientSide>,
  [to, upstream]: Side<UpstreamSide>,
  now: () => number = Date.now,
): ProtocolAdapter {
  const { wholeAsStream, assembleStream, streamContentType, keepAlive } = client
  const printOptions = (): PrintOptions => ({ upstream: to, created: Math.floor(now() / 1000) })
  const readConversation = (call: ChatCall) => {
    const dropped = new DroppedFields()
    for (const name of call.leftOut ?? []) dropped.add(name)
    return { conversation: client.read(call, dropped), dropped }
  }
  /** Read for its links, and not written yet. */
  const readBefore = new WeakMap<ChatCall, ReturnType<typeof readConversation>>()
  return {
    from,
    to,
    streamContentType,
    keepAlive,
    wholeAsStream,
    ...(assembleStream !== undefined && { assembleStream }),
    urlsToFetch(call, provider) {
      if (upstream.fetchesLinks(provider)) return []
      const read = readConversation(call)
      readBefore.set(call, read)
      return listLinkedFiles(read.conversation)
    },
    encodeRequest(call, options) {
      const { conversation, dropped } = readBefore.get(call) ?? readConversation(call)
      readBefore.delete(call)
      const sent = withoutTools(conversation, options, dropped)
      return { body: upstream.write(sent, call, options, dropped), ...dropped.all() }
    },
    openStream: (call, provider) =>
      new TranslatedStream(upstream.reader(provider), client.printer(call, printOptions())),
    readWhole: (call, body, provider) =>
      readWhole(upstream, upstream.reader(provider), body, client.collector(call, printOptions())),
  }
}

/** Leaves out the tools that the upstream must not run. */
function withoutTools(
  conversation: Conversation,
  { serverTools }: EncodeOptions,
  dropped: DroppedFields,
): Conversation {
  if (serverTools.includes('web_search')) return conversation
  const tools = conversation.tools.filter(({ type }) => type !== 'web_search')
  if (tools.length === conversation.tools.length) return conversation
  dropped.add('web_search')
  return { ...conversation, tools }
}

function readWhole(
  { readModel, countsThoughts }: UpstreamSide,
  reader: AnswerReader,
  body: Buffer,
  collector: AnswerCollector,
): WholeAnswer {
  const said = new SaidParts()
  const take = (part: Part): void => {
    said.add(part)
    collector.add(part)
  }
  const answer = answerFields(body)
  const isRead = answer !== null && reader.readWhole(answer, take)
  const { report, usage, serviceTier } = reader
  const thoughts = countsThoughts && { thoughtCharacters: said.thoughtCharacters }
  const counted = meterWhole(report, said.characters, { usage, serviceTier, ...thoughts })
  const metered = {
    ...counted,
    usage: reader.withTools?.(counted.usage) ?? counted.usage,
    ...readAnswerModel(answer === null ? undefined : readModel(answer)),
  }
  const isAnswer = isRead && (said.hasContent || (report?.output ?? null) !== null)
  return { body: isAnswer ? collector.body() : body, metered, isAnswer }
}

/** Prints events of a protocol as they come from its printer. */
export class EventPrinter<Event> implements AnswerPrinter {
  readonly #printer: { print(part: Part): void }
  readonly #text: (event: Event) => string
  readonly #error: (payload: string) => Event
  readonly #closing: string
  #out = ''
  #isClosed = false

  /**
   * @param open makes the printer, which passes each event to `emit`
   * @param text returns an event as it is sent
   * @param error returns the protocol's error for an upstream's
   * @param closing follows the last event
   */
  constructor(
    open: (emit: (event: Event) => void) => { print(part: Part): void },
    text: (event: Event) => string,
    error: (payload: string) => Event,
    closing = '',
  ) {
    this.#printer = open((event) => {
      this.#out += text(event)
    })
    this.#text = text
    this.#error = error
    this.#closing = closing
  }

  /** Prints `part`. After an error nothing more is printed. */
  print(part: Part): void {
    if (part.type === 'error') this.#isClosed = true
    if (this.#isClosed) return
    this.#printer.print(part)
    if (part.type === 'end') this.#out += this.#closing
  }

  error(payload: string): void {
    if (!this.#isClosed) this.#out += this.#text(this.#error(payload)) + this.#closing
    this.#isClosed = true
  }

  take(): Buffer | null {
    if (this.#out === '') return null
    const bytes = Buffer.from(this.#out, 'utf8')
    this.#out = ''
    return bytes
  }
}

/** Returns an event with its name, as messages and responses send it. */
export const printEvent = (event: { readonly type: string }): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
