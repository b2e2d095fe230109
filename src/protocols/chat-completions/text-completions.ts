/**
 * The older completions endpoint: a prompt in place of messages, and an answer of plain text. It is a chat-completions call
 * to the rest of the gateway. See docs/api-rules.md, "Completions".
 */
import { Buffer } from 'node:buffer'
import { completionsRequest } from '../../../schemas/chat/completions.ts'
import { scanFields } from '../../core/json/scanner/tape.ts'
import { cutField } from '../../core/json/splice.ts'
import type { AnswerStream, ProtocolAdapter, RewrittenBody } from '../dialect.ts'
import { type LooseObject, parseFields, toFields, toList, toText } from '../loose.ts'
import { readJsonBody } from '../request/client-json.ts'
import { EventReader } from '../sse/event-reader.ts'
import { joinFields, writeField } from './agent-body.ts'
import type { ChatCompletionsCall } from './dialect.ts'

/** Fields that a chat has in another form, or not at all. */
const REPLACED: ReadonlySet<string> = new Set(['messages', 'prompt', 'suffix', 'echo', 'best_of', 'logprobs'])

/** Returns the body as one of a chat. @throws Failure `invalid_request` with a message that names the field */
export function writePromptAsChat(given: Buffer): RewrittenBody {
  const { prompt, n, best_of: best, logprobs } = readJsonBody(completionsRequest, given)
  const [content] = [prompt].flat()
  const kept = [...scanFields(given).fields].flatMap(([name, span]) =>
    REPLACED.has(name) ? [] : [cutField(given, span)],
  )
  const body = joinFields([
    writeField('messages', [{ role: 'user', content }]),
    ...kept,
    ...(logprobs == null ? [] : [writeField('logprobs', true), writeField('top_logprobs', logprobs)]),
  ])
  return { body, leftOut: best == null || best === (n ?? 1) ? [] : ['best_of'] }
}

/** Prints chat completions, and chunks of them, as text completions. */
class TextPrinter {
  /** Length of the text so far, by choice. */
  readonly #lengths = new Map<unknown, number>()

  /** Returns an object of another kind, such as an error, as it is. */
  print({ choices, ...answer }: LooseObject): LooseObject {
    if (!Array.isArray(choices)) return answer
    return {
      ...answer,
      object: 'text_completion',
      choices: choices.map((choice) => this.#choice(toFields(choice))),
    }
  }

  #choice({ index, delta, message, logprobs, finish_reason: reason }: LooseObject): LooseObject {
    const text = toText(toFields(message ?? delta).content)
    const offset = this.#lengths.get(index) ?? 0
    this.#lengths.set(index, offset + text.length)
    return { text, index, logprobs: printLogprobs(logprobs, offset), finish_reason: reason ?? null }
  }
}

/** @param offset place of the first token in the text of its choice */
function printLogprobs(logprobs: unknown, offset: number): LooseObject | null {
  const { content } = toFields(logprobs)
  if (!Array.isArray(content)) return null
  const said = content.map(toFields)
  let at = offset
  return {
    tokens: said.map(({ token }) => token),
    token_logprobs: said.map(({ logprob }) => logprob),
    top_logprobs: said.map(({ top_logprobs: top }) =>
      Object.fromEntries(
        toList(top)
          .map(toFields)
          .map(({ token, logprob }) => [toText(token), logprob]),
      ),
    ),
    text_offset: said.map(({ token }) => {
      const start = at
      at += toText(token).length
      return start
    }),
  }
}

const printEvent = (data: string): string => `data: ${data}\n\n`
const DONE = '[DONE]'

/** Rewrites the chunks of a stream as text completions. */
function printStream(stream: AnswerStream): AnswerStream {
  const printer = new TextPrinter()
  let out = ''
  const events = new EventReader((_name, data) => {
    const chunk = parseFields(data)
    out += printEvent(chunk === null ? data : JSON.stringify(printer.print(chunk)))
  })
  const take = (): Buffer | null => {
    const printed = out
    out = ''
    return printed === '' ? null : Buffer.from(printed)
  }
  const push = stream.push.bind(stream)
  const end = stream.end.bind(stream)
  stream.push = (piece) => {
    const bytes = push(piece)
    if (bytes !== null) events.push(bytes)
    return take()
  }
  stream.end = () => {
    const bytes = end()
    if (bytes !== null) events.push(bytes)
    events.end()
    return take()
  }
  return stream
}

function printWhole(body: Buffer): Buffer {
  const answer = parseFields(body.toString('utf8'))
  return answer === null ? body : Buffer.from(JSON.stringify(new TextPrinter().print(answer)))
}

/** Returns the adapter for a client that gets text completions. */
export const asTextCompletions = (adapter: ProtocolAdapter): ProtocolAdapter => ({
  ...adapter,
  openStream: (call, provider) => printStream(adapter.openStream(call, provider)),
  readWhole(call, body, provider) {
    const read = adapter.readWhole(call, body, provider)
    const { metered, isAnswer } = read
    return { metered, isAnswer, body: isAnswer ? printWhole(read.body) : read.body }
  },
  wholeAsStream(call, body) {
    const { usage, ...answer } = parseFields(body.toString('utf8')) ?? {}
    const ofUsage = usage != null && (call as ChatCompletionsCall).wantsUsage
    return Buffer.from(
      printEvent(JSON.stringify(answer)) +
        (ofUsage ? printEvent(JSON.stringify({ ...answer, choices: [], usage })) : '') +
        printEvent(DONE),
    )
  },
})
