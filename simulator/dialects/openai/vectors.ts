/** `POST /v1/embeddings` in OpenAI's public shape, and `POST /v1/rerank` in that of Cohere and Jina. */

import { z } from 'zod'
import { findNamedModel, refuseBadKey } from '../../access.ts'
import { makeId, makeSeededRandom, toSeed } from '../../answers/words.ts'
import {
  type Dialect,
  failuresAs,
  jsonAnswer,
  type OpenedRequest,
  parseJsonObject,
  type ReceivedRequest,
} from '../../dialect.ts'
import type { Directives } from '../../directives/grammar.ts'
import { readAs } from '../../requests.ts'
import { directivesInTexts } from '../../tasks/work.ts'
import { errorBody } from '../chat-completions/error.ts'

const MAX_INPUTS = 2_048
const MAX_DIMENSIONS = 4_096
const USUAL_DIMENSIONS = 8
const DOCUMENTS_PER_SEARCH = 100
const NOT_SERVED = (model: string) => `The model \`${model}\` does not exist or you do not have access to it.`

export const vectors: Dialect = {
  name: 'vectors',
  endpoints: [
    { method: 'POST', path: /^\/v1\/embeddings$/, open: openEmbeddings },
    { method: 'POST', path: /^\/v1\/rerank$/, open: openRerank },
  ],
  failure: failuresAs(errorBody),
}

const token = z.int().min(0)
const text = z.string().min(1)

const embeddings = z.strictObject({
  model: text,
  input: z.union([
    text,
    z.array(token).min(1),
    z
      .array(z.union([text, z.array(token).min(1)]))
      .min(1)
      .max(MAX_INPUTS),
  ]),
  encoding_format: z.enum(['float', 'base64']).default('float'),
  dimensions: z.int().min(1).max(MAX_DIMENSIONS).default(USUAL_DIMENSIONS),
  user: z.string().optional(),
  simulate: z.unknown().optional(),
})
type Embeddings = z.infer<typeof embeddings>

const countTokens = (input: string | readonly number[]): number =>
  typeof input === 'string' ? Math.ceil(Buffer.byteLength(input) / 4) : input.length

function openEmbeddings({ headers, body }: ReceivedRequest): OpenedRequest {
  refuseBadKey(headers)
  const asked = readAs(embeddings, parseJsonObject(body))
  const { model, directives } = findNamedModel(asked.model, NOT_SERVED)
  const inputs: (string | number[])[] = isOne(asked.input) ? [asked.input] : asked.input
  const last = inputs.at(-1)
  return {
    model: asked.model,
    directives: [directives, typeof last === 'string' ? directivesInTexts(last) : null, asked.simulate],
    answer: (merged) => jsonAnswer(200, makeEmbeddings(model, inputs, asked, merged)),
  }
}

const isOne = (input: Embeddings['input']): input is string | number[] =>
  typeof input === 'string' || typeof input[0] === 'number'

function makeEmbeddings(
  model: string,
  inputs: readonly (string | number[])[],
  { dimensions, encoding_format: format }: Embeddings,
  directives: Directives,
): object {
  const count = directives.prompt_tokens ?? inputs.reduce((sum, input) => sum + countTokens(input), 0)
  const data = inputs.map((input, index) => {
    const draw = makeSeededRandom(directives.seed ?? toSeed(`${model}\n${input}`))
    const numbers = Float32Array.from({ length: dimensions }, () => 2 * draw() - 1)
    const embedding = format === 'float' ? [...numbers] : Buffer.from(numbers.buffer).toString('base64')
    return { object: 'embedding', index, embedding }
  })
  return { object: 'list', data, model, ...reportTokens(count, directives) }
}

/** The usage of the answer, where the directives let it have one. */
function reportTokens(count: number, { usage, usage_fault: fault }: Directives): object {
  if (usage === 'none') return {}
  const tokens = fault === 'negative' ? -count : usage === 'zero' ? 0 : count
  return { usage: { prompt_tokens: tokens, total_tokens: tokens } }
}

const document = z.union([z.string(), z.looseObject({ text: z.string().optional() })])

const rerank = z.strictObject({
  model: text,
  query: text,
  documents: z.array(document).min(1),
  top_n: z.int().min(1).optional(),
  return_documents: z.boolean().optional(),
  simulate: z.unknown().optional(),
})

function openRerank({ headers, body }: ReceivedRequest): OpenedRequest {
  refuseBadKey(headers)
  const asked = readAs(rerank, parseJsonObject(body))
  const { model, directives } = findNamedModel(asked.model, NOT_SERVED)
  return {
    model: asked.model,
    directives: [directives, directivesInTexts(asked.query), asked.simulate],
    answer: (merged) => jsonAnswer(200, makeRanking(model, asked, merged)),
  }
}

/** Scores are drawn; what is most alike comes first. `searches` are reported as Cohere does, `usage=none` as others do not. */
function makeRanking(
  model: string,
  { query, documents, top_n: most = documents.length, return_documents: shows }: z.infer<typeof rerank>,
  directives: Directives,
): object {
  const draw = makeSeededRandom(directives.seed ?? toSeed(`${model}\n${query}\n${JSON.stringify(documents)}`))
  const results = documents
    .map((document, index) => ({ index, relevance_score: draw(), ...(shows === true && { document }) }))
    .sort((one, other) => other.relevance_score - one.relevance_score)
    .slice(0, most)
  const searches = directives.searches ?? Math.ceil(documents.length / DOCUMENTS_PER_SEARCH)
  const meta = { api_version: { version: '2' }, billed_units: { search_units: searches } }
  return {
    ...{ id: makeId(query), model, results },
    ...(directives.usage !== 'none' && { meta }),
  }
}
