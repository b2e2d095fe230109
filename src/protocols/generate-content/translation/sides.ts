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
import { getSource } from '../dialect.ts'
import { AssembledContent, GenerateContentPrinter, toGenerateContentError } from './printer.ts'
import { readGenerateContentConversation } from './read-conversation.ts'
import { GenerateContentReader } from './reader.ts'
import { writeGenerateContentRequest } from './write-request.ts'

const EVENT_STREAM = 'text/event-stream; charset=utf-8'
/** Every client of the protocol tolerates it, and no comment. */
const EMPTY_EVENT = Buffer.from('data: {}\n\n')
const LINE_BREAK = Buffer.from('\n')

/** How the answers of a stream follow one another. */
interface StreamForm {
  readonly text: (answer: LooseObject) => string
  readonly closing: string
}

const EVENTS: StreamForm = { text: (answer) => `data: ${JSON.stringify(answer)}\n\n`, closing: '' }

/** Returns the form of one JSON array, which comes in pieces: a stream without `alt=sse`. */
function openArray(): StreamForm {
  let separator = '['
  const text = (answer: LooseObject): string => {
    const item = separator + JSON.stringify(answer)
    separator = ',\n'
    return item
  }
  return { text, closing: ']' }
}

const openForm = (call: ChatCall): StreamForm => (getSource(call).framing === 'sse' ? EVENTS : openArray())

export const generateContentClient: ClientSide = {
  streamContentType: (call) => (getSource(call).framing === 'sse' ? EVENT_STREAM : 'application/json'),
  keepAlive: (call) => (getSource(call).framing === 'sse' ? EMPTY_EVENT : LINE_BREAK),
  read: (call, dropped) =>
    readGenerateContentConversation(parseCheckedBody(getSource(call).body, GENERATE_CONTENT_NAMES), dropped),
  printer(call, { upstream }) {
    const { model } = call
    const { text, closing } = openForm(call)
    const open = (emit: (answer: LooseObject) => void) =>
      new GenerateContentPrinter({ model, upstream, emit })
    return new EventPrinter(open, text, toGenerateContentError, closing)
  },
  collector({ model }: ChatCall, { upstream }: PrintOptions) {
    const whole = new AssembledContent()
    const printer = new GenerateContentPrinter({ model, upstream, emit: (answer) => whole.add(answer) })
    return { add: (part) => printer.print(part), body: () => Buffer.from(JSON.stringify(whole.answer())) }
  },
  wholeAsStream(call, body) {
    const { text, closing } = openForm(call)
    return Buffer.from(text(answerFields(body) ?? {}) + closing)
  },
}

/** Streams are read as events, requested with `alt=sse`. */
export const generateContentUpstream: UpstreamSide = {
  fetchesLinks: () => false,
  write: writeGenerateContentRequest,
  reader: () => new GenerateContentReader(),
  readModel: ({ modelVersion }) => modelVersion,
  countsThoughts: true,
}
