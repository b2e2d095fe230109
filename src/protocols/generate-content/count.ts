/**
 * A request of the generate-content protocol to count tokens: only contents, or a whole request, which names its model
 * once more.
 */

import { countContentTokensRequest } from '../../../schemas/chat/generate-content.ts'
import { scanFields } from '../../core/json/scanner/tape.ts'
import { applySplices, assignment, type FieldSpan, type Splice } from '../../core/json/splice.ts'
import { resourceName, withoutCollection } from '../../core/routing/generate-model-name.ts'
import type { ChatCall, ClientRequest, Dialect } from '../dialect.ts'
import { invalidField, readJsonFields } from '../request/client-json.ts'
import { withoutForeignFields } from '../request/foreign-fields.ts'
import { COUNT_CONTENT_TOKENS_NAMES } from '../request/known-names.ts'
import { findFileParts } from '../request/linked-parts.ts'
import { readModel } from './dialect.ts'

interface CountSource {
  readonly body: Buffer
  /** The whole request that names the model once more; null where only the path names it. */
  readonly whole: FieldSpan | null
}

const WHOLE_REQUEST = ['generateContentRequest', 'generate_content_request'] as const

/** Inserts the model into the whole request at a span. */
function naming(body: Buffer, { start, end }: FieldSpan, upstreamModel: string): Splice {
  const { fields, open } = scanFields(body.subarray(start, end))
  const inside = assignment('model', JSON.stringify(resourceName(upstreamModel)), fields.get('model'), open)
  return { start: start + inside.start, end: start + inside.end, text: inside.text }
}

const contract = withoutForeignFields('generate-content', countContentTokensRequest)

function read(asked: ClientRequest): ChatCall {
  const { body } = asked
  const model = readModel(asked)
  const { request, fields } = readJsonFields(contract, body, COUNT_CONTENT_TOKENS_NAMES)
  const [name, second] = WHOLE_REQUEST.filter((each) => request[each] != null)
  const others = [second, request.contents == null ? undefined : 'contents'].filter(
    (one) => one !== undefined,
  )
  if (name === undefined && request.contents == null) throw invalidField('contents', 'it is missing')
  if (name !== undefined && others[0] !== undefined)
    throw invalidField(name, `it is given together with '${others[0]}'; give one of the two`)
  const inner = name === undefined ? undefined : request[name]?.model
  if (name !== undefined && inner != null && withoutCollection(inner) !== model)
    throw invalidField(`${name}.model`, 'it is not the model that the path names')
  const source: CountSource = {
    body,
    whole: name === undefined ? null : fields.get(name)!,
  }
  return {
    model,
    stream: false,
    outputLimit: null,
    choices: 1,
    conversationBytes: body.length,
    promptBytes: body.length,
    links: findFileParts(request),
    builtInTools: [],
    toolCallLimit: null,
    settings: '',
    source,
  }
}

export const generateContentCount: Dialect = { protocol: 'generate-content', read }

/** Returns the client's body with the upstream's name of the model. */
export function countBody(call: ChatCall, upstreamModel: string): Buffer {
  const { body, whole } = call.source as CountSource
  return whole === null ? body : applySplices(body, [naming(body, whole, upstreamModel)])
}

/** Returns the conversation of the client's body. */
export function getCountedBody(call: ChatCall): Buffer {
  const { body, whole } = call.source as CountSource
  return whole === null ? body : body.subarray(whole.start, whole.end)
}
