/** The responses protocol in translations. */
import { Buffer } from 'node:buffer'
import type { ChatCall } from '../../dialect.ts'
import { type LooseObject, toFields } from '../../loose.ts'
import { parseCheckedBody } from '../../request/client-json.ts'
import { RESPONSES_NAMES } from '../../request/known-names.ts'
import { COMMENT } from '../../sse/comment.ts'
import { ToolNames } from '../../translate/tool-names.ts'
import {
  type ClientSide,
  EventPrinter,
  type PrintOptions,
  printEvent,
  type UpstreamSide,
} from '../../translate/translation.ts'
import { getSource, type ResponsesSource } from '../dialect.ts'
import { responseAsStream } from '../whole-as-stream.ts'
import { type ResponsesEvent, ResponsesPrinter, toResponsesError } from './printer.ts'
import { readOfferedTools, readResponsesConversation } from './read-conversation.ts'
import { ResponsesReader } from './reader.ts'
import { writeResponsesRequest } from './write-request.ts'

/** Fields of a request that its response repeats, with their defaults. */
const ECHOED: LooseObject = {
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  truncation: 'disabled',
}

/** Returns the fields without the conversation, which may be long. */
function readEchoedFields({ body, fields }: ResponsesSource): LooseObject {
  const read = (name: string): unknown => {
    const span = fields.get(name)
    return span === undefined ? null : JSON.parse(body.toString('utf8', span.start, span.end))
  }
  return Object.fromEntries(Object.entries(ECHOED).map(([name, usual]) => [name, read(name) ?? usual]))
}

function openPrinter(
  call: ChatCall,
  { created, upstream }: PrintOptions,
  emit: (event: ResponsesEvent) => void,
) {
  const echoed = readEchoedFields(getSource(call))
  const tools = new ToolNames(readOfferedTools(echoed.tools))
  return new ResponsesPrinter({ model: call.model, created, upstream, tools, echoed, emit })
}

export const responsesClient: ClientSide = {
  streamContentType: () => 'text/event-stream; charset=utf-8',
  keepAlive: () => COMMENT,
  read: (call, dropped) =>
    readResponsesConversation(toFields(parseCheckedBody(getSource(call).body, RESPONSES_NAMES)), dropped),
  printer: (call, options) =>
    new EventPrinter((emit) => openPrinter(call, options, emit), printEvent, toResponsesError),
  collector(call, options) {
    let response: unknown = {}
    const printer = openPrinter(call, options, (event) => {
      response = event.response ?? response
    })
    return { add: (part) => printer.print(part), body: () => Buffer.from(JSON.stringify(response)) }
  },
  wholeAsStream: (_call, body) => responseAsStream(body),
}

export const responsesUpstream: UpstreamSide = {
  fetchesLinks: () => true,
  write: writeResponsesRequest,
  reader: (provider) => new ResponsesReader(provider),
  readModel: ({ model }) => model,
  countsThoughts: false,
}
