/** `POST /v1/embeddings`: reading a client's request, and what its answer used. */
import { Buffer } from 'node:buffer'
import { z } from 'zod'
import { embeddingsRequest, MAX_INPUT_TOKENS, MAX_INPUTS } from '../../../schemas/chat/passed.ts'
import { printNumber } from '../../core/call-log/detail-text.ts'
import { bytesOfTokens } from '../../core/pricing/text-tokens.ts'
import { NOTHING_METERED } from '../answer/reported-usage.ts'
import type { ChatCall, ClientRequest, Dialect, ProtocolAdapter } from '../dialect.ts'
import { invalidField, readListFields } from '../request/client-json.ts'
import { readServiceTier, withoutForeignFields } from '../request/foreign-fields.ts'
import { bytesOfField } from '../request/prompt-fields.ts'
import { meterPassed, passedBody, passedCall, passJson, readPassedAnswer } from './passed.ts'

const MOST_MS = 30_000

/** The contract apart from the lists of tokens: a schema would keep a complaint of each token. */
const request = withoutForeignFields('chat-completions', embeddingsRequest.extend({ input: z.unknown() }))

const isToken = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0
const isTokens = (value: unknown): value is readonly number[] => Array.isArray(value) && value.every(isToken)

/** Returns the texts, and the lists of tokens, of the input. @throws Failure `invalid_request` */
function listInputs(input: unknown): readonly (string | readonly number[])[] {
  const inputs = typeof input === 'string' || isTokens(input) ? [input] : input
  if (!Array.isArray(inputs))
    throw invalidField('input', 'it must be a text, or a list of texts or of tokens')
  if (inputs.length > MAX_INPUTS)
    throw invalidField('input', `it holds more than ${MAX_INPUTS} texts; send fewer`)
  for (const [index, one] of inputs.entries())
    if (typeof one !== 'string' && !isTokens(one))
      throw invalidField(`input[${index}]`, 'it must be a text or a list of tokens')
    else if (one.length === 0)
      throw invalidField(inputs === input ? `input[${index}]` : 'input', 'it is empty')
  const tokens = inputs.reduce((sum, one) => sum + (typeof one === 'string' ? 0 : one.length), 0)
  if (tokens > MAX_INPUT_TOKENS)
    throw invalidField('input', `it holds more than ${MAX_INPUT_TOKENS} tokens; send fewer`)
  return inputs
}

const countBytes = (one: string | readonly number[]): number =>
  typeof one === 'string' ? Buffer.byteLength(one) : bytesOfTokens(one.length)

function read({ body }: ClientRequest): ChatCall {
  const { request: asked, fields } = readListFields(request, body)
  const inputs = listInputs(asked.input)
  const bytes = inputs.every((one) => typeof one === 'string')
    ? bytesOfField(body, fields.get('input'))
    : inputs.reduce((sum, one) => sum + countBytes(one), 0)
  return {
    ...passedCall,
    ...{ model: asked.model, prompts: inputs.length, mostMs: MOST_MS },
    ...{ conversationBytes: bytes, promptBytes: bytes },
    ...readServiceTier('chat-completions', asked),
    settings: printNumber('messages', inputs.length),
    source: passedBody(body, fields),
  }
}

export const embeddings: Dialect<'embeddings'> = { protocol: 'embeddings', read }

export const embeddingsAdapter: ProtocolAdapter = passJson('embeddings', (_call, body) => {
  const answer = readPassedAnswer(body)
  return answer === null
    ? { body, metered: NOTHING_METERED, isAnswer: false }
    : { body, metered: meterPassed(answer, answer.read('usage')), isAnswer: answer.hasItems('data') }
})
