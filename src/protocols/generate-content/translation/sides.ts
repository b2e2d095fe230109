/** The generate-content protocol in translations. */
import { Buffer } from 'node:buffer'
import { answerFields } from '../../answer/content.ts'
import type { ChatCall } from '../../dialect.ts'
import type { LooseObject } from '../../loose.ts'
import { parseCheckedBody } from '../../request/client-json.ts'
import { GENERATE_CONTENT_NAMES } from '../../request/known-names.ts'
import {
  type ClientSide,
  EventPrinter,
  type PrintOptions,
  type UpstreamSide,
} from '../../translate/translation.ts'
import type { Framing } from '../path.ts'
import { AssembledContent, GenerateContentPrinter, generateContentError } from './printer.ts'
import { readGenerateContentConversation } from './read-conversation.ts'
import { GenerateContentReader } from './reader.ts'
import { writeGenerateContentRequest } from './write-request.ts'

interface TranslatableSource {
  readonly body: Buffer
  readonly framing: Framing
}

const sourceOf = (call: ChatCall): TranslatableSource => call.source as TranslatableSource

const EVENT_STREAM = 'text/event-stream; charset=utf-8'
/** Every client of the protocol tolerates it, and no comment. */
const EMPTY_EVENT = Buffer.from('data: {}\n\n')
const LINE_BREAK = Buffer.from('\n')

const sseEvent = (answer: LooseObject): string => `data: ${JSON.stringify(answer)}\n\n`

export const generateContentClient: ClientSide = {
  streamContentType: (call) => (sourceOf(call).framing === 'sse' ? EVENT_STREAM : 'application/json'),
  keepAlive: (call) => (sourceOf(call).framing === 'sse' ? EMPTY_EVENT : LINE_BREAK),
  read: (call, dropped) =>
    readGenerateContentConversation(parseCheckedBody(sourceOf(call).body, GENERATE_CONTENT_NAMES), dropped),
  printer: ({ model }, { upstream }) =>
    new EventPrinter(
      (emit) => new GenerateContentPrinter({ model, upstream, emit }),
      sseEvent,
      generateContentError,
    ),
  collector({ model }: ChatCall, { upstream }: PrintOptions) {
    const whole = new AssembledContent()
    const printer = new GenerateContentPrinter({ model, upstream, emit: (answer) => whole.add(answer) })
    return { add: (part) => printer.print(part), body: () => Buffer.from(JSON.stringify(whole.answer())) }
  },
  wholeAsStream: (_call, body) => Buffer.from(sseEvent(answerFields(body) ?? {})),
}

/** Streams are read as events, requested with `alt=sse`. */
export const generateContentUpstream: UpstreamSide = {
  fetchesLinks: () => false,
  write: writeGenerateContentRequest,
  reader: () => new GenerateContentReader(),
  modelOf: ({ modelVersion }) => modelVersion,
  countsThoughts: true,
}
