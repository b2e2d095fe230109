/** What the endpoints have in common whose requests pass to the same path of a channel, and whose answers pass back. */
import type { Buffer } from 'node:buffer'
import type { PassedEndpoint } from '../../../schemas/config/catalog.ts'
import { scanFields } from '../../core/json/scanner/tape.ts'
import { applySplices, type FieldSpan, type Splice } from '../../core/json/splice.ts'
import { MAX_REPORTED_TOKENS, NO_USAGE } from '../../core/pricing/usage.ts'
import { saysError } from '../answer/content.ts'
import { readAnswerModel } from '../answer/reported-usage.ts'
import type { ChatCall, Metered, ProtocolAdapter, WholeAnswer } from '../dialect.ts'
import { type LooseObject, parseValue, toFields } from '../loose.ts'
import { NO_LINKS } from '../request/linked-parts.ts'
import { findFault } from '../usage/faults.ts'

/** The client's body, byte for byte, and what of it an upstream gets otherwise. */
interface PassedBody {
  readonly body: Buffer
  readonly model: FieldSpan
  /** Changes besides the model's name. */
  readonly splices: readonly Splice[]
}

/** The fields that all calls without an output share. */
export const passedCall = {
  stream: false,
  outputLimit: null,
  choices: 0,
  links: NO_LINKS,
  builtInTools: [],
  toolCallLimit: null,
} as const satisfies Partial<ChatCall>

/** Returns the source of a call from a body that was parsed once. */
export const passedBody = (
  body: Buffer,
  fields: ReadonlyMap<string, FieldSpan>,
  splices: readonly Splice[] = [],
): PassedBody => ({ body, model: fields.get('model')!, splices })

/** Writes the client's bytes with the upstream's name of the model. */
function writeBody({ model, source }: ChatCall, upstreamModel: string): Buffer {
  const { body, model: span, splices } = source as PassedBody
  if (upstreamModel === model) return applySplices(body, splices)
  return applySplices(body, [...splices, { ...span, text: JSON.stringify(upstreamModel) }])
}

/** Returns the adapter of an endpoint whose request is JSON, and whose answer comes in one piece. */
export const passJson = (
  endpoint: PassedEndpoint,
  readWhole: (call: ChatCall, body: Buffer) => WholeAnswer,
): ProtocolAdapter => ({
  from: endpoint,
  to: endpoint,
  urlsToFetch: () => [],
  encodeRequest: (call, { upstreamModel }) => ({ body: writeBody(call, upstreamModel), dropped: [] }),
  streamContentType: () => null,
  keepAlive: () => null,
  openStream: () => {
    throw new Error(`Answers of ${endpoint} come in one piece`)
  },
  readWhole,
  wholeAsStream: (_call, body) => body,
})

/** Reads single fields of an answer, which may be tens of megabytes long. */
export interface PassedAnswer {
  /** Returns the value of a field; undefined without it. */
  readonly read: (name: string) => unknown
  /** Returns whether a field has a list that is not empty. */
  readonly hasItems: (name: string) => boolean
}

const LIST = /^\[\s*[^\s\]]/
/** White space may stand before the first item of a list. */
const LIST_START_BYTES = 64

/** Returns the fields of an answer; null for one that is no JSON object, or an error in spite of its status. */
export function readPassedAnswer(body: Buffer): PassedAnswer | null {
  const { fields } = scanFields(body)
  if (fields.size === 0) return null
  const read = (name: string) => {
    const span = fields.get(name)
    return span === undefined ? undefined : parseValue(body.toString('utf8', span.start, span.end))
  }
  if (saysError({ error: read('error'), base_resp: read('base_resp') })) return null
  const hasItems = (name: string) => {
    const { start, end } = fields.get(name) ?? { start: 0, end: 0 }
    return LIST.test(body.toString('latin1', start, Math.min(end, start + LIST_START_BYTES)))
  }
  return { read, hasItems }
}

/** Returns a count as upstreams report it; null for anything else. */
export const readCount = (value: unknown): number | null =>
  typeof value === 'number' && value >= 0 && value <= MAX_REPORTED_TOKENS ? value : null

/** Returns the tokens that a usage object reports in the first of these fields that has a count; null without one. */
function readTokens(usage: LooseObject, names: readonly string[]): number | null {
  for (const name of names) {
    const count = readCount(usage[name])
    if (count !== null) return Math.ceil(count)
  }
  return null
}

/** Returns the facts of an answer: the tokens of its prompt. */
export function meterPassed(answer: PassedAnswer, usage: unknown): Metered {
  const fields = toFields(usage)
  const prompt = readTokens(fields, ['prompt_tokens', 'input_tokens', 'total_tokens'])
  const fault = findFault(usage)
  return {
    usage: prompt === null ? null : { ...NO_USAGE, prompt },
    characters: 0,
    charactersSinceUsage: 0,
    isUsageWhole: prompt !== null,
    ...readAnswerModel(answer.read('model')),
    ...(usage != null && { reported: usage }),
    ...(fault !== '' && { suspect: fault }),
  }
}
