/** Turns an upstream's failure into the client's error and the call log's error. See docs/errors.md, "Catalog". */
import { performance } from 'node:perf_hooks'
import type { CallStatus } from '../../schemas/call-log/row.ts'
import type { ChannelEntry, ChannelProtocol } from '../../schemas/config/catalog.ts'
import { Failure, nameUpstreamStatus } from '../../schemas/failure.ts'
import { PROVIDERS } from '../../src/channels/providers/presets.ts'
import { maskValue, REDACTED_MAX_CHARS } from '../../src/core/call-log/redact.ts'
import { shorten } from '../../src/core/json/cut.ts'
import { LIMITED_KEY_REST_MS, REFUSED_KEY_REST_MS } from '../../src/core/routing/key-pools.ts'
import {
  type ErrorExtras,
  readBodyText,
  readErrorBody,
  readErrorObject,
} from '../../src/protocols/answer/error-body.ts'
import {
  accessStatus,
  errorNames,
  isOfRequest,
  isUnreadable,
} from '../../src/protocols/answer/request-errors.ts'
import type { UpstreamFailure } from '../../src/upstream/client.ts'

/** Failure of an attempt: its name for the row, and the reply if no other attempt follows. */
export interface AttemptFailure {
  readonly code: string
  readonly message: string
  /** Another channel may do better. */
  readonly isRetryable: boolean
  /** It counts against the channel: the customer's own mistake never does. Null: the channel was not put to the test. */
  readonly isChannelFault: boolean | null
  /** The gateway's own clock ran out. */
  readonly isTimeout: boolean
  /** The upstream refused what the request asks for: bad parameters, or its content. */
  readonly isRejected?: boolean
  /** The upstream refused the key: the time for which it is not used, if the channel has others. */
  readonly keyRestMs?: number
  /** The request parameter that the upstream names as the offence, in a field of its error body. */
  readonly parameter?: string | null
  /** Of an error event that is not for the client: it gets `error` in its place. */
  readonly hidesEvent?: boolean
  /** The upstream's own text, only for operators; null where `message` is that text. */
  readonly detail?: string | null
  readonly error: Failure | UpstreamRefusal
}

type NativeError = Readonly<Record<string, unknown>>

interface RefusalDetails extends ErrorExtras {
  readonly isPlain?: boolean | undefined
  readonly native?: NativeError | null
}

/** An upstream's own refusal, passed through: status unchanged, message unwrapped, its extras beside it. */
export class UpstreamRefusal extends Error {
  readonly status: number
  readonly code: string
  readonly type: string
  readonly headers: ReadonlyArray<readonly [string, string]>
  readonly extras: ErrorExtras
  /** Its text was no JSON. */
  readonly isPlain: boolean
  /** The upstream's own error object, for a client of its protocol; null where the client gets mapped names. */
  readonly native: NativeError | null

  constructor(
    status: number,
    message: string,
    headers: ReadonlyArray<readonly [string, string]>,
    { isPlain = false, native = null, ...extras }: RefusalDetails = {},
  ) {
    super(message)
    this.name = 'UpstreamRefusal'
    this.status = status
    const { code, type } = nameUpstreamStatus(status)
    this.code = code
    this.type = type
    this.headers = headers
    this.extras = extras
    this.isPlain = isPlain
    this.native = native
  }
}

/** Returns the failure of an attempt whose channel is at fault, and which no other follows, but for `more`. */
const attemptFailure = (
  error: Failure | UpstreamRefusal,
  more: Partial<AttemptFailure> = {},
): AttemptFailure => ({
  code: error.code,
  message: error.message,
  isRetryable: false,
  isChannelFault: true,
  isTimeout: false,
  error,
  ...more,
})

/** Returns the error with its public text masked: an upstream may quote its key, its host or its model. */
export function maskError(
  error: Failure | UpstreamRefusal,
  mask: (text: string) => string,
): Failure | UpstreamRefusal {
  const text = mask(error.message)
  if (error instanceof UpstreamRefusal) {
    const { status, headers, extras, isPlain, native } = error
    const shown = isPlain ? shorten(text, REDACTED_MAX_CHARS) : text
    return new UpstreamRefusal(
      status,
      shown,
      headers,
      maskValue({ ...extras, native }, mask) as RefusalDetails,
    )
  }
  const internal = error.internal === undefined ? undefined : mask(error.internal)
  if (text === error.message && internal === undefined) return error
  return new Failure(error.code, text, { status: error.status, internal, headers: error.headers })
}

/** Describes a refusal without a text by its status. */
const describeStatus = (status: number): string => `The upstream answered with status ${status}.`

const isRetryableStatus = (status: number): boolean => status === 408 || status === 429 || status >= 500
const MS_PER_SECOND = 1000
const FORBIDDEN = 403
/** Some upstreams answer 403 to a request whose content they refuse: that is about the request. */
const ABOUT_CONTENT =
  /moderat|flagged|safety|content.?(?:policy|filter)|sensitive|violat|prohibited|inappropriate/i

/** The client's message when the upstream refuses the operator's key or account. */
export const ACCESS_REFUSED =
  'The upstream refused the access of this service. Try again later, or ask the operator of the service.'

const BAD_REQUEST = 400
/** The refusals of every provider: a channel may lead to one without naming it. */
const ACCOUNT_REFUSALS = Object.values(PROVIDERS).flatMap(({ accountRefusal }) => accountRefusal ?? [])

/** Returns whether an upstream's refusal is about the operator's key or account, whatever the client asked for. */
export const isAboutAccess = (status: number, message: string): boolean =>
  status === 401 ||
  status === 402 ||
  (status === FORBIDDEN && !ABOUT_CONTENT.test(message)) ||
  (status === BAD_REQUEST && ACCOUNT_REFUSALS.some((refusal) => refusal.test(message)))

/** A channel. Where it leaves a setting out, the installation's applies. */
type Hiding = Pick<ChannelEntry, 'hide_auth_errors' | 'upstream_errors'>

/** Where an error comes from. */
export interface ErrorSource {
  readonly channel: Hiding
  readonly protocol: ChannelProtocol
  readonly isTranslated: boolean
}

/** Returns the upstream's error object for a client of its protocol; null where mapped names take its place. */
const readNativeError = (
  { channel, isTranslated }: Omit<ErrorSource, 'protocol'>,
  body: Buffer,
): NativeError | null =>
  channel.upstream_errors === 'native' && !isTranslated ? readErrorObject(body) : null

/** Returns whether such a refusal reaches the client as 502: the channel, or the installation, hides it. */
export const isHidden = ({ hide_auth_errors }: Hiding, status: number, message: string): boolean =>
  hide_auth_errors === true && isAboutAccess(status, message)

const ABOUT_REQUEST: ReadonlySet<number> = new Set([BAD_REQUEST, 413, 415, 422])

/**
 * Returns the status of the call-log row of a call that an upstream refused: `rejected` for bad parameters and for
 * content that is not taken, `error` for what is no fault of the request.
 */
export function chooseRefusedStatus(
  status: number,
  message: string,
): Extract<CallStatus, 'rejected' | 'error'> {
  if (isAboutAccess(status, message)) return 'error'
  return ABOUT_REQUEST.has(status) || status === FORBIDDEN ? 'rejected' : 'error'
}

const accessRefused = (status: number, detail: string): AttemptFailure =>
  accessRefusedBy(`The upstream refused the channel's access with status ${status}: ${detail}`)

const accessRefusedBy = (internal: string): AttemptFailure =>
  attemptFailure(new Failure('upstream_error', ACCESS_REFUSED, { internal }), {
    keyRestMs: REFUSED_KEY_REST_MS,
    detail: internal,
  })

const TOO_MANY_REQUESTS = 429
/** Names of a 429 that is about an account without credit. */
const WITHOUT_CREDIT: readonly unknown[] = Object.values(PROVIDERS).flatMap(
  ({ withoutCredit = [] }) => withoutCredit,
)

/** Returns the time that a `retry-after` names, in seconds or as a date. */
function readRetryAfter(retryAfter: string | null): number {
  const seconds = Number(retryAfter ?? Number.NaN)
  const ms = Number.isNaN(seconds) ? Date.parse(retryAfter ?? '') - Date.now() : seconds * MS_PER_SECOND
  return Number.isFinite(ms) && ms > 0 ? ms : LIMITED_KEY_REST_MS
}

const isRedirect = (status: number): boolean => status >= 300 && status < 400

/** Returns the failure of a redirect. It is not followed: it may lead the channel's key to another host. */
function refuseRedirect(status: number): AttemptFailure {
  const message = `The upstream answered with a redirect (${status}), which is not followed.`
  return { ...unusable(message), detail: `${message} Set base_url of the channel to where it leads.` }
}

/**
 * Returns the failure of an answer with an error status, as its channel lets the client see it.
 * @param isTranslated the client speaks another protocol
 */
export function readUpstreamRefusal(
  channel: Hiding,
  status: number,
  body: Buffer,
  retryAfter: string | null,
  isTranslated = false,
): AttemptFailure {
  if (isRedirect(status)) return refuseRedirect(status)
  const { message, parameter, names, extras, isPlain } = readErrorBody(body, describeStatus(status))
  const isWithoutCredit = status === TOO_MANY_REQUESTS && names.some((name) => WITHOUT_CREDIT.includes(name))
  const isAccess = isWithoutCredit || isAboutAccess(status, message)
  const isRetryable = isRetryableStatus(status)
  if (isAccess && channel.hide_auth_errors) return { ...accessRefused(status, message), isRetryable }
  const headers: [string, string][] = retryAfter === null ? [] : [['retry-after', retryAfter]]
  const native = readNativeError({ channel, isTranslated }, body)
  const error = new UpstreamRefusal(status, message, headers, { ...extras, isPlain, native })
  const isRejected = chooseRefusedStatus(status, message) === 'rejected'
  const more = { isRetryable, isChannelFault: isRetryable || isAccess, isRejected, parameter }
  if (isAccess) return attemptFailure(error, { ...more, keyRestMs: REFUSED_KEY_REST_MS })
  return attemptFailure(
    error,
    status === TOO_MANY_REQUESTS ? { ...more, keyRestMs: readRetryAfter(retryAfter) } : more,
  )
}

/** Returns the failure of a 200 without a usable answer. */
const unusable = (message: string): AttemptFailure =>
  attemptFailure(new Failure('upstream_error', message), { isRetryable: true })

export const NO_ANSWER = 'The upstream answered with neither content nor usage.'

/** Returns the failure of an error event, as the channel of this protocol lets the client see it. */
export function toStreamFailure(event: Buffer, source: ErrorSource): AttemptFailure {
  const { protocol, channel } = source
  const { message, parameter } = readBodyText(event) ?? {
    message: 'The upstream answered with an error.',
    parameter: null,
  }
  const names = errorNames(event)
  const status = accessStatus(names)
  if (isAboutAccess(status, message)) {
    const { hide_auth_errors: hidesEvent = false } = channel
    const failure = hidesEvent ? accessRefused(status, message) : unusable(message)
    return { ...failure, hidesEvent, isRetryable: true, keyRestMs: REFUSED_KEY_REST_MS }
  }
  if (isUnreadable(names)) return { ...unusable(message), hidesEvent: true }
  if (!isOfRequest(names, protocol)) return unusable(message)
  const native = readNativeError(source, event)
  const error =
    native === null
      ? new Failure('invalid_request', message)
      : new UpstreamRefusal(BAD_REQUEST, message, [], { native })
  return { ...attemptFailure(error, { parameter }), isChannelFault: false, isRejected: true }
}

/** Returns the failure of a 200 whose body is an error or no answer. */
export const unusableAnswer = (body: Buffer, source: ErrorSource): AttemptFailure =>
  readBodyText(body) === null ? unusable(NO_ANSWER) : toStreamFailure(body, source)

/** Returns the failure of a 200 whose stream ended in good order before any content and usage. */
export const endedWithoutAnswer = (): AttemptFailure => unusable(NO_ANSWER)

export const INCOMPLETE = 'The upstream ended the stream before it was complete.'

/** Returns the error of a stream that ends before it is whole: what the client has of it must not be kept. */
export const brokenOff = (): Failure => new Failure('upstream_error', INCOMPLETE)

/** Returns the failure of a stream that ended in good order before it was whole, and of which nothing was sent. */
export const incompleteAnswer = (): AttemptFailure => unusable(INCOMPLETE)

/** Returns the failure of a 200 that the meter cannot read, in spite of `accept-encoding: identity`. */
export const compressedAnswer = (): AttemptFailure =>
  unusable('The upstream compressed its answer though it was asked not to.')

/** Returns the failure of an answer over the limit; no retry: another channel's would be no smaller. */
export const tooLargeAnswer = (): AttemptFailure => ({
  ...unusable('The response of the upstream is too large.'),
  isRetryable: false,
})

/** Returns the failure of a call that could not be journaled: nothing was sent upstream. */
export const notJournaled = (cause: Error): Failure =>
  new Failure('service_unavailable', 'The service cannot take calls at the moment. Try again in a minute.', {
    internal: `journal: ${cause.message}`,
  })

/** Returns the failure of an answered call whose settlement JetStream has not stored in time: the journal has it. */
export const notStored = (cause: Error): Failure =>
  new Failure(
    'service_unavailable',
    'The call was answered and is charged, but not stored in time. Its row follows.',
    { internal: cause.message },
  )

const TIMEOUTS: ReadonlySet<string> = new Set(['head_timeout', 'idle_timeout', 'deadline'])

/**
 * Returns the failure when the gateway has run out of connections: no channel is at fault, and none would do better.
 */
function noConnectionLeft(failure: UpstreamFailure): AttemptFailure {
  const error = new Failure(
    'service_unavailable',
    'The service has no connection to spare at the moment. Try again shortly.',
    { internal: failure.message, headers: [['retry-after', '1']] },
  )
  return attemptFailure(error, { isChannelFault: null })
}

/**
 * A kept connection that breaks this soon after a call was sent on it had been closed by the upstream before; a call
 * that ran longer may have been worked on.
 */
export const STALE_WITHIN_MS = 1_000

export const isStale = ({ mayBeStale }: UpstreamFailure, sentAt: number): boolean =>
  mayBeStale && performance.now() - sentAt < STALE_WITHIN_MS

export function toConnectionFailure(failure: UpstreamFailure): AttemptFailure {
  if (failure.kind === 'exhausted') return noConnectionLeft(failure)
  // The upstream has processed nothing: another channel may be authorized.
  if (failure.kind === 'authorization') return { ...accessRefusedBy(failure.message), isRetryable: true }
  const isTimeout = TIMEOUTS.has(failure.kind)
  return attemptFailure(noAnswer(isTimeout, failure.message), { isRetryable: !isTimeout, isTimeout })
}

/** Returns the failure of a stream without an event for the time that it may be silent. */
export const noEvent = (): AttemptFailure =>
  attemptFailure(noAnswer(true, 'no event came in time'), { isRetryable: false, isTimeout: true })

/** Returns the client's failure for a call that brought no answer. */
export const noAnswer = (isTimeout: boolean, internal: string): Failure =>
  isTimeout
    ? new Failure('upstream_timeout', 'The upstream did not answer in time.', { internal })
    : new Failure('upstream_unreachable', 'The connection to the upstream failed.', { internal })
