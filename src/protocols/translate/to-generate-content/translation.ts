/**
 * Adapts a chat-completions call to an upstream of the generate-content protocol, and of its answer back.
 * See docs/api-rules.md, "Protocols and translation".
 */
import { Buffer } from 'node:buffer'
import type { Part } from '../../../../schemas/chat/part.ts'
import { answerFields, SaidParts } from '../../answer/content.ts'
import { meteredWhole, modelIn } from '../../answer/reported-usage.ts'
import { ChatCompletionCollector } from '../../chat-completions/collector.ts'
import { asksForFunctionCall } from '../../chat-completions/legacy-functions.ts'
import { ChatCompletionsPrinter } from '../../chat-completions/printer.ts'
import type { ChatCall, ProtocolAdapter, WholeAnswer } from '../../dialect.ts'
import { GenerateContentReader } from '../../generate-content/reader.ts'
import { TranslatedStream } from '../stream.ts'
import type { TranslatableSource } from '../to-messages/translation.ts'
import { filesToFetch, translateRequest } from './request.ts'

const sourceOf = (call: ChatCall): TranslatableSource => call.source as TranslatableSource

/** A stream without a last event: its end goes out when the upstream's bytes have ended. */
class OpenEndedStream extends TranslatedStream {
  readonly #reader: GenerateContentReader
  readonly #printer: ChatCompletionsPrinter

  constructor(reader: GenerateContentReader, printer: ChatCompletionsPrinter) {
    super(reader, printer)
    this.#reader = reader
    this.#printer = printer
  }

  override end(): Buffer | null {
    const rest = super.end()
    if (!this.#reader.isComplete || this.isComplete) return rest
    this.#reader.end(this.take)
    const ending = this.#printer.take()
    return rest === null || ending === null ? (rest ?? ending) : Buffer.concat([rest, ending])
  }
}

/** Returns the translation. `now` returns epoch milliseconds. Streams are read as events, requested with `alt=sse`. */
export function chatCompletionsToGenerateContent(now: () => number = Date.now): ProtocolAdapter {
  const headOf = (call: ChatCall) => ({
    model: call.model,
    created: Math.floor(now() / 1000),
    isLegacy: asksForFunctionCall(sourceOf(call).body),
  })
  return {
    from: 'chat-completions',
    to: 'generate-content',
    streamContentType: 'text/event-stream; charset=utf-8',
    urlsToFetch: (call) => filesToFetch(sourceOf(call).body),
    encodeRequest: (call, { upstreamModel, outputCeiling, fetched }) =>
      translateRequest(sourceOf(call).body, {
        model: upstreamModel,
        outputLimit: call.outputLimit ?? outputCeiling,
        fetched,
      }),
    openStream(call) {
      const includeUsage = sourceOf(call).request.stream_options?.include_usage === true
      return new OpenEndedStream(
        new GenerateContentReader(),
        new ChatCompletionsPrinter({ ...headOf(call), includeUsage }),
      )
    },
    readWhole: (call, body) => readWhole(body, new ChatCompletionCollector(headOf(call))),
  }
}

function readWhole(body: Buffer, collector: ChatCompletionCollector): WholeAnswer {
  const reader = new GenerateContentReader()
  const said = new SaidParts()
  const take = (part: Part): void => {
    said.add(part)
    collector.add(part)
  }
  const answer = answerFields(body)
  const isRead = answer !== null && reader.readWhole(answer, take)
  const { report, usage, serviceTier } = reader
  const { thoughtCharacters } = said
  const metered = {
    ...meteredWhole(report, said.characters, { usage, serviceTier, thoughtCharacters }),
    ...modelIn(answer?.modelVersion),
  }
  const isAnswer = isRead && (said.hasContent || (report?.output ?? null) !== null)
  return { body: isAnswer ? collector.body() : body, metered, isAnswer }
}
