/**
 * Responses over WebSocket: an upgrade of `GET /v1/responses` opens a session, and each of its messages is a call of
 * `POST /v1/responses`. See docs/api-rules.md, "Responses over WebSocket".
 */
import { Buffer } from 'node:buffer'
import { Failure } from '../../schemas/failure.ts'
import { ulid } from '../../src/core/keys/ids.ts'
import type { Handler, SocketRequest, SocketSession } from '../../src/http/handler.ts'
import { parseFields, toText } from '../../src/protocols/loose.ts'
import { DIALECTS } from '../../src/protocols/registry.ts'
import { EXPIRED, printRefusal, TurnReply } from '../../src/protocols/responses/socket-replies.ts'
import { SocketTurns } from '../../src/protocols/responses/socket-turns.ts'
import { responseAsStream } from '../../src/protocols/responses/whole-as-stream.ts'
import { type AuthenticatedCall, authenticate } from '../calls/authenticate.ts'
import { answerOnce, calls } from '../calls/pipeline.ts'
import { rateLimit } from '../calls/rate-limit.ts'
import { type ChatDeps, chat } from './chat.ts'

/** Connections of one key, in each gateway process. An idle one costs memory, and nothing counts it otherwise. */
const MAX_CONNECTIONS_OF_KEY = 256
/** The only status at which clients that try a WebSocket first go on over HTTP at once. */
const HTTP_UPGRADE_REQUIRED = 426
const MS_PER_SECOND = 1000

/** Opens a new session for each upgrade. */
export function openResponseSocket(deps: ChatDeps): Handler {
  const open = new Map<string, number>()
  const count = (keyId: string, change: 1 | -1) => {
    const connections = (open.get(keyId) ?? 0) + change
    if (connections === 0) open.delete(keyId)
    else open.set(keyId, connections)
  }
  const warmUp = answerWarmUp(deps)
  const openSession = ({ known }: AuthenticatedCall): SocketSession => {
    const keyId = known.key.id
    if ((open.get(keyId) ?? 0) >= MAX_CONNECTIONS_OF_KEY) throw tooManyConnections()
    count(keyId, 1)
    return new ResponseSession(deps, warmUp, () => count(keyId, -1))
  }
  return calls(authenticate(deps.access))
    .then(rateLimit(deps.access))
    .then(
      answerOnce((call) => ({
        type: 'full',
        status: 101,
        headers: [],
        body: '',
        session: openSession(call),
      })),
    )
    .toHandler()
}

const tooManyConnections = (): Failure =>
  new Failure(
    'rate_limit_exceeded',
    `This API key has ${MAX_CONNECTIONS_OF_KEY} WebSockets open. Close some of them, or go on over HTTP.`,
    { status: HTTP_UPGRADE_REQUIRED },
  )

class ResponseSession implements SocketSession {
  readonly expired = EXPIRED
  readonly printRefusal = printRefusal
  readonly close: () => void
  readonly #turns = new SocketTurns()
  readonly #create: Handler
  readonly #warmUp: Handler

  constructor(deps: ChatDeps, warmUp: Handler, close: () => void) {
    const { forwarding } = deps
    const storeResponse: typeof forwarding.storeResponse = (response) => {
      if (response.id !== null) this.#turns.noteStored(response.id)
      return forwarding.storeResponse(response)
    }
    this.#create = chat({ ...deps, forwarding: { ...forwarding, storeResponse } }, DIALECTS.responses)
    this.#warmUp = warmUp
    this.close = close
  }

  get keptBytes(): number {
    return this.#turns.keptBytes
  }

  forget(): void {
    this.#turns.forget()
  }

  read(message: Buffer): SocketRequest | null {
    const turn = this.#turns.read(message)
    return (
      turn && {
        method: 'POST',
        handler: turn.generates ? this.#create : this.#warmUp,
        body: turn.body,
        openReply: (send) => new TurnReply(this.#turns, turn, send),
      }
    )
  }
}

/** Answers a turn that makes nothing: free, without an upstream and without a row. */
const answerWarmUp = ({ access }: ChatDeps): Handler =>
  calls(authenticate(access))
    .then(rateLimit(access))
    .then(
      answerOnce(({ request: { body, submittedAt } }) => ({
        type: 'full',
        status: 200,
        headers: [['content-type', 'text/event-stream']],
        body: responseAsStream(Buffer.from(JSON.stringify(makeWarmUp(body, submittedAt)))),
      })),
    )
    .toHandler()

/** Returns the response to a warm-up. @throws Failure `invalid_request` */
function makeWarmUp(body: Buffer, submittedAt: number): object {
  const fields = parseFields(body.toString('utf8'))
  if (fields === null) throw new Failure('invalid_request', 'The message is not valid JSON.')
  const none = { input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } }
  return {
    id: `resp_${ulid()}`,
    object: 'response',
    created_at: Math.floor(submittedAt / MS_PER_SECOND),
    status: 'completed',
    model: toText(fields.model),
    output: [],
    error: null,
    incomplete_details: null,
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
    metadata: {},
    usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0, ...none },
  }
}
