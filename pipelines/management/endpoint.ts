/** Serves an operation as an endpoint of the management API, opened by the console's session or by a management token. */
import { concatMap, from, of } from 'rxjs'
import { Failure } from '../../schemas/failure.ts'
import type { Operation } from '../../schemas/management/operation.ts'
import { isTooDeep } from '../../src/core/json/exact.ts'
import { MAX_JSON_LEVELS } from '../../src/core/json/scanner/tape.ts'
import type { GatewayRequest, Handler, HeaderList } from '../../src/http/handler.ts'
import { compressReply } from '../calls/compression.ts'
import { readIdempotencyKey } from '../calls/idempotency.ts'
import { Answered, calls, type Stage } from '../calls/pipeline.ts'
import { jsonReply } from '../calls/replies.ts'
import { type CallerCall, identify, type ManagementAccess } from './identify.ts'
import { type Implementation, runImplementation, type Visit } from './operation.ts'
import { printSessionCookie } from './session.ts'

const JSON_TYPE = /^application\/json *(;|$)/i
const NO_STORE: HeaderList = [['cache-control', 'no-store']]

/** Reads the JSON body. A form of another origin can send JSON too, as text/plain, without asking the browser. */
function readBody({ body, header }: GatewayRequest): Record<string, unknown> {
  if (body.length === 0) return {}
  if (!JSON_TYPE.test(header('content-type')))
    throw new Failure('invalid_request', 'Content-Type: is not application/json.')
  const text = body.toString()
  if (isTooDeep(text))
    throw new Failure('invalid_request', `The body nests deeper than ${MAX_JSON_LEVELS} levels.`)
  try {
    const read: unknown = JSON.parse(text)
    if (typeof read === 'object' && read !== null && !Array.isArray(read))
      return read as Record<string, unknown>
  } catch {
    // Reported below.
  }
  throw new Failure('invalid_request', 'The body is not a JSON object.')
}

/** Returns parameters of the path, and those of the query or the fields of the body. */
function readInput({ method, isUpload }: Operation, request: GatewayRequest): object {
  const isInQuery = method === 'GET' || method === 'DELETE' || isUpload
  const query = new Map(new URLSearchParams(request.query))
  const [misplaced] = query.keys()
  if (!isInQuery && misplaced !== undefined)
    throw new Failure(
      'invalid_request',
      `${misplaced}: is in the query. ${method} reads its fields from the body.`,
    )
  const given: Record<string, unknown> = isInQuery ? Object.fromEntries(query) : readBody(request)
  const inPath: Readonly<Record<string, string>> = request.params
  const differing = Object.keys(inPath).find(
    (name) => Object.hasOwn(given, name) && given[name] !== inPath[name],
  )
  if (differing !== undefined)
    throw new Failure('invalid_request', `${differing}: differs from the one in the path.`)
  return { ...given, ...inPath }
}

const PAGE_HEADERS: HeaderList = [
  ['content-type', 'text/html; charset=utf-8'],
  [
    'content-security-policy',
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  ],
]

const toPageReply = (html: string) => ({
  type: 'full' as const,
  status: 200,
  headers: PAGE_HEADERS,
  body: html,
})

/**
 * Returns whether answers may be compressed: those that read and hold no secret. The length of a compressed secret would tell
 * about it, beside text that someone else chose; the session holds the token against forged requests.
 */
const isCompressible = ({ method, name, isSecret }: Operation): boolean =>
  method === 'GET' && isSecret === undefined && name !== 'showSession'

/** Runs the operation and answers with what it returns. */
const answer =
  <Services>(
    access: ManagementAccess,
    implementation: Implementation<Services>,
    services: Services,
  ): Stage<CallerCall, never> =>
  (call) => {
    const { request, caller, token } = call
    const { operation } = implementation
    const cookies: HeaderList[number][] = []
    const visit: Visit = {
      userAgent: request.header('user-agent'),
      address: request.address?.() ?? '',
      origin: request.header('origin'),
      token,
      form: request.form ?? null,
      setToken: (next) => void cookies.push(printSessionCookie(access, request.header, next)),
    }
    const running = runImplementation(implementation, readInput(operation, request), {
      database: access.database,
      services,
      caller,
      visit,
      now: request.submittedAt,
      idempotency: readIdempotencyKey(request),
    })
    return from(running).pipe(
      concatMap(async (body) => {
        const plain = operation.isPage === undefined ? jsonReply(body) : toPageReply(body as string)
        const headers = [...plain.headers, ...NO_STORE, ...cookies]
        const reply = { ...plain, status: operation.status ?? plain.status, headers }
        const accepted = request.header('accept-encoding')
        return new Answered(
          call,
          of(isCompressible(operation) ? await compressReply(reply, accepted) : reply),
        )
      }),
    )
  }

/** Makes the handler of an operation. */
export const serveOperation = <Services>(
  access: ManagementAccess,
  implementation: Implementation<Services>,
  services: Services,
): Handler =>
  calls(identify(access))
    .then(answer(access, implementation, services))
    .toHandler()
