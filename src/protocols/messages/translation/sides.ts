/** The messages protocol in translations. */
import { Buffer } from 'node:buffer'
import type { ChatCall } from '../../dialect.ts'
import { toFields } from '../../loose.ts'
import { parseCheckedBody } from '../../request/client-json.ts'
import { MESSAGES_NAMES } from '../../request/known-names.ts'
import { COMMENT } from '../../sse/comment.ts'
import {
  type ClientSide,
  EventPrinter,
  type PrintOptions,
  printEvent,
  type UpstreamSide,
} from '../../translate/translation.ts'
import { getSource } from '../dialect.ts'
import { messageAsStream } from '../whole-as-stream.ts'
import { AssembledMessage, MessagesPrinter, toMessagesError } from './printer.ts'
import { readMessagesConversation } from './read-conversation.ts'
import { MessagesReader } from './reader.ts'
import { fetchesLinks, writeMessagesRequest } from './write-request.ts'

export const messagesClient: ClientSide = {
  streamContentType: () => 'text/event-stream; charset=utf-8',
  keepAlive: () => COMMENT,
  read: (call, dropped) =>
    readMessagesConversation(toFields(parseCheckedBody(getSource(call).body, MESSAGES_NAMES)), dropped),
  printer: ({ model }, { upstream }) =>
    new EventPrinter((emit) => new MessagesPrinter({ model, upstream, emit }), printEvent, toMessagesError),
  collector({ model }: ChatCall, { upstream }: PrintOptions) {
    const message = new AssembledMessage()
    const printer = new MessagesPrinter({ model, upstream, emit: (event) => message.add(event) })
    return { add: (part) => printer.print(part), body: () => Buffer.from(JSON.stringify(message.message())) }
  },
  wholeAsStream: (_call, body) => messageAsStream(body),
}

export const messagesUpstream: UpstreamSide = {
  fetchesLinks,
  write: writeMessagesRequest,
  reader: () => new MessagesReader(),
  readModel: ({ model }) => model,
  countsThoughts: false,
}
