/**
 * Work on the whole body of a request: it is read, compared, written for an upstream. It takes time in proportion to the
 * body, so that of a long one runs in a thread; see `src/server/gateway/long-requests.ts`.
 */
import type { Buffer } from 'node:buffer'
import type { AgentFile } from '../../schemas/accounts/agent.ts'
import type { CallProtocol, ChannelProtocol, ChatProtocol } from '../../schemas/config/catalog.ts'
import { hashRequest } from '../core/json/canonical.ts'
import { agentBody, assemblesAnswer, readAgentRequest } from './chat-completions/agent-body.ts'
import { writeResponsesAsChat } from './chat-completions/responses-body.ts'
import { writePromptAsChat } from './chat-completions/text-completions.ts'
import type { ChatCall, ClientRequest, EncodedRequest, EncodeOptions, RewrittenBody } from './dialect.ts'
import { protocolAdapter, READERS, type ReaderName, readConversation } from './registry.ts'
import { estimateTokens, type FileTokens } from './translate/token-count.ts'

/** A longer body is not worked on by the event loop. */
const LONG_BODY_BYTES = 64 * 1024

interface AdapterOf {
  readonly client: CallProtocol
  readonly upstream: ChannelProtocol
  /** Without the body in its source, where the work is done in a thread. */
  readonly call: ChatCall
}

/** Endpoints that accept other bodies, each with the function that rewrites one as chat-completions; null: nothing to do. */
const REWRITERS = {
  completions: writePromptAsChat,
  'chat-completions': writeResponsesAsChat,
} as const satisfies Record<string, (given: Buffer) => RewrittenBody | null>
export type RewritingEndpoint = keyof typeof REWRITERS

/** An agent's body, and what is asked of it. */
export interface AgentBody {
  readonly body: Buffer
  readonly question: string
  readonly hasImages: boolean
  /** The client gets a whole answer, which is put together from a stream. */
  readonly isAssembled: boolean
}

/** The parts of the input of each, besides the body. */
export interface BodyInputs {
  readonly read: Omit<ClientRequest, 'body'> & { readonly reader: ReaderName }
  readonly hash: { readonly method: string; readonly path: string; readonly query: string }
  readonly agent: { readonly file: AgentFile; readonly knowledge: string | null }
  readonly urls: AdapterOf & { readonly provider: string | undefined }
  readonly encode: AdapterOf & { readonly options: EncodeOptions }
  readonly rewrite: { readonly endpoint: RewritingEndpoint }
  readonly count: Pick<AdapterOf, 'call'> & { readonly client: ChatProtocol; readonly files: FileTokens }
}

export interface BodyResults {
  readonly read: ChatCall
  readonly hash: Buffer
  readonly agent: AgentBody
  readonly urls: readonly string[]
  readonly encode: EncodedRequest
  readonly rewrite: RewrittenBody | null
  readonly count: number
}

export type BodyWorkName = keyof BodyInputs

/** Returns the call with this body in its source. */
export const withBody = (call: ChatCall, body: Buffer | null): ChatCall => ({
  ...call,
  source: { ...(call.source as object), body },
})

/** Each throws a `Failure` for a body that is refused. */
export const BODY_WORK: {
  readonly [Name in BodyWorkName]: (input: BodyInputs[Name], body: Buffer) => BodyResults[Name]
} = {
  read: ({ reader, model, query }, body) => READERS[reader].read({ model, query, body }),
  hash: ({ method, path, query }, body) => hashRequest(method, path, query, body),
  agent({ file, knowledge }, given) {
    const request = readAgentRequest(given)
    const { question, hasImages } = request
    const isAssembled = assemblesAnswer(request, file)
    return { body: agentBody(request, file, knowledge), question, hasImages, isAssembled }
  },
  urls: ({ client, upstream, call, provider }) =>
    protocolAdapter(client, upstream).urlsToFetch(call, provider),
  encode: ({ client, upstream, call, options }) =>
    protocolAdapter(client, upstream).encodeRequest(call, options),
  rewrite: ({ endpoint }, body) => REWRITERS[endpoint](body),
  count: ({ client, call, files }) => estimateTokens(readConversation(client, call), files),
}

/** Works on a long body off the event loop. Rejects with the Failure of the work, or with `service_unavailable`. */
export type WorkOnLongBody = <Name extends BodyWorkName>(
  accountId: string,
  name: Name,
  input: BodyInputs[Name],
  body: Buffer,
) => Promise<BodyResults[Name]>

export interface LongBodyWork {
  readonly workOnLongBody: WorkOnLongBody
}

/** Works on the body of an account's request: at once on a short one, off the event loop on a long one. @throws Failure */
export const workOnBody = <Name extends BodyWorkName>(
  { workOnLongBody }: LongBodyWork,
  accountId: string,
  name: Name,
  input: BodyInputs[Name],
  body: Buffer,
): BodyResults[Name] | Promise<BodyResults[Name]> =>
  body.length > LONG_BODY_BYTES ? workOnLongBody(accountId, name, input, body) : BODY_WORK[name](input, body)
