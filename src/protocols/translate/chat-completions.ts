/** Reads requests and answers of clients of chat-completions: what the translations to other protocols share. */
import type { Buffer } from 'node:buffer'
import type { Part } from '../../../schemas/chat/part.ts'
import { answerFields, SaidParts } from '../answer/content.ts'
import { meteredWhole, modelIn } from '../answer/reported-usage.ts'
import { AssembledCompletion } from '../chat-completions/assembled.ts'
import { ChatCompletionCollector } from '../chat-completions/collector.ts'
import { ChatCompletionsPrinter } from '../chat-completions/printer.ts'
import { completionAsStream } from '../chat-completions/whole.ts'
import type { ChatCall, ProtocolAdapter, WholeAnswer } from '../dialect.ts'
import { parseCheckedBody } from '../request/client-json.ts'
import { CHAT_COMPLETIONS_NAMES } from '../request/known-names.ts'
import { type PartReader, TranslatedStream } from './stream.ts'

/** The parts of `ChatCall.source` that a translation needs. */
interface TranslatableSource {
  /** The client's body, byte for byte. */
  readonly body: Buffer
  /** It offers only legacy functions, so that its answer must use them. */
  readonly isLegacy: boolean
  readonly request: { readonly stream_options?: { readonly include_usage?: boolean | null } | null }
}

const sourceOf = (call: ChatCall): TranslatableSource => call.source as TranslatableSource

/** Returns the client's request as JSON. @throws Failure `invalid_request` for one that nests too deep */
export const parsedBody = (call: ChatCall): unknown =>
  parseCheckedBody(sourceOf(call).body, CHAT_COMPLETIONS_NAMES)

const wantsUsage = (call: ChatCall): boolean => sourceOf(call).request.stream_options?.include_usage === true

type Fields = NonNullable<ReturnType<typeof answerFields>>

interface WholeReader extends PartReader {
  /** Returns whether it is an answer. */
  readWhole(answer: Fields, emit: (part: Part) => void): boolean
}

interface Protocol {
  reader(): WholeReader
  /** The model that an answer names. */
  modelOf(answer: Fields): unknown
  /** Its usage counts thoughts apart from the rest of the output. */
  readonly countsThoughts: boolean
}

/** Returns how answers of a protocol are read for clients of chat-completions. `now` returns epoch milliseconds. */
export function answersOf(
  protocol: Protocol,
  now: () => number,
): Pick<
  ProtocolAdapter,
  'from' | 'streamContentType' | 'openStream' | 'readWhole' | 'wholeAsStream' | 'assembleStream'
> {
  const headOf = (call: ChatCall) => ({
    model: call.model,
    created: Math.floor(now() / 1000),
    isLegacy: sourceOf(call).isLegacy,
  })
  return {
    from: 'chat-completions',
    streamContentType: 'text/event-stream; charset=utf-8',
    openStream(call) {
      const printer = new ChatCompletionsPrinter({ ...headOf(call), includeUsage: wantsUsage(call) })
      return new TranslatedStream(protocol.reader(), printer)
    },
    readWhole: (call, body) => readWhole(protocol, body, new ChatCompletionCollector(headOf(call))),
    wholeAsStream: (call, body) => completionAsStream(body, wantsUsage(call)),
    assembleStream: () => new AssembledCompletion(),
  }
}

function readWhole(
  { reader: open, modelOf, countsThoughts }: Protocol,
  body: Buffer,
  collector: ChatCompletionCollector,
): WholeAnswer {
  const reader = open()
  const said = new SaidParts()
  const take = (part: Part): void => {
    said.add(part)
    collector.add(part)
  }
  const answer = answerFields(body)
  const isRead = answer !== null && reader.readWhole(answer, take)
  const { report, usage, serviceTier } = reader
  const thoughts = countsThoughts && { thoughtCharacters: said.thoughtCharacters }
  const counted = meteredWhole(report, said.characters, { usage, serviceTier, ...thoughts })
  const metered = {
    ...counted,
    usage: reader.withTools?.(counted.usage) ?? counted.usage,
    ...modelIn(answer === null ? undefined : modelOf(answer)),
  }
  const isAnswer = isRead && (said.hasContent || (report?.output ?? null) !== null)
  return { body: isAnswer ? collector.body() : body, metered, isAnswer }
}
