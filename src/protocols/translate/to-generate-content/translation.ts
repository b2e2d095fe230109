/**
 * Adapts a chat-completions call to an upstream of the generate-content protocol, and of its answer back.
 * See docs/api-rules.md, "Protocols and translation".
 */
import { Buffer } from 'node:buffer'
import type { ChatCompletionsPrinter } from '../../chat-completions/printer.ts'
import type { ProtocolAdapter } from '../../dialect.ts'
import { GenerateContentReader } from '../../generate-content/reader.ts'
import { answersOf, sourceOf } from '../chat-completions.ts'
import { TranslatedStream } from '../stream.ts'
import { filesToFetch, translateRequest } from './request.ts'

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
export const chatCompletionsToGenerateContent = (now: () => number = Date.now): ProtocolAdapter => ({
  ...answersOf(
    {
      reader: () => new GenerateContentReader(),
      stream: (reader, printer) => new OpenEndedStream(reader, printer),
      modelOf: ({ modelVersion }) => modelVersion,
      countsThoughts: true,
    },
    now,
  ),
  to: 'generate-content',
  urlsToFetch: (call) => filesToFetch(sourceOf(call).body),
  encodeRequest: (call, { upstreamModel, outputCeiling, fetched, provider }) =>
    translateRequest(sourceOf(call).body, {
      model: upstreamModel,
      outputLimit: call.outputLimit ?? outputCeiling,
      fetched,
      provider,
    }),
})
