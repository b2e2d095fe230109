/** Requests to the management API, typed by its operations. */
import { onlineManager } from '@tanstack/react-query'
import type * as described from '../../../schemas/management/operation.ts'
import type * as operations from '../../../schemas/management/operations.ts'
import { MANAGEMENT_PATH, OPERATION_ROUTES, type OperationName } from '../../../schemas/routes.ts'
import { t } from '../i18n.ts'
import { readViewedAccount } from './viewing.ts'

export type InputOf<Name extends OperationName> = described.InputOf<(typeof operations)[Name]>
export type AnswerOf<Name extends OperationName> = described.AnswerOf<(typeof operations)[Name]>

/** Operations that only read. */
export type ReadName = {
  [Name in OperationName]: (typeof OPERATION_ROUTES)[Name][0] extends 'GET' ? Name : never
}[OperationName]

/** Operations on the user's own profile: they work while the user views another account. */
const OWN = /^\/(?:(?:me|session|email|sign-in|sign-up|sign-out)(?:\/|$)|invitations\/(?:accept|look-up)$)/

/** An error answer; `requestId` finds it in the log of the service. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly requestId: string | null

  constructor(status: number, code: string, message: string, requestId: string | null) {
    super(message)
    this.name = 'ApiError'
    this.status = status
    this.code = code
    this.requestId = requestId
  }
}

/** Returns whether the session has ended. */
export const isSessionEnd = (error: Error): boolean =>
  error instanceof ApiError && error.code === 'not_signed_in'

/** The status of a proxy that cannot reach the service. */
const UNREACHABLE = 503
const UNREACHABLE_CODE = 'unreachable'

/** Returns whether no answer came from the service. */
export const isUnreachable = (error: Error): boolean =>
  error instanceof ApiError && error.code === UNREACHABLE_CODE

/** Returns whether the service refused the request, and would again. */
export const isRefused = (error: Error): boolean => error instanceof ApiError && error.status < 500

let csrfToken: string | null = null

/** Keeps the token that every changing request sends. */
export function setCsrfToken(token: string | null): void {
  csrfToken = token
}

/** What the user is asked to do before a request continues, by the code of its refusal. */
const QUESTIONS = { reauthentication_required: 'confirm', not_signed_in: 'sign-in' } as const
export type Question = (typeof QUESTIONS)[keyof typeof QUESTIONS]

/** Asks the user; resolves with whether they did it. The dialog sets it. */
let ask: (question: Question) => Promise<boolean> = async () => false
export function onQuestion(answer: typeof ask): void {
  ask = answer
}

/** Returns the question that a refused request leads to. A visitor who never signed in has no session that ended. */
const findQuestion = ({ code }: ApiError): Question | undefined =>
  csrfToken === null ? undefined : QUESTIONS[code as keyof typeof QUESTIONS]

export async function readError(response: Response): Promise<ApiError> {
  const requestId = response.headers.get('x-gateway-trace')
  try {
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    return new ApiError(response.status, error.code, error.message, requestId)
  } catch {
    return new ApiError(response.status, 'unreadable', `The service answered ${response.status}.`, requestId)
  }
}

/** Fills the parameters of a path; returns it with the rest of the input. */
function fill(pattern: string, input: Record<string, unknown>): [path: string, rest: [string, unknown][]] {
  const inPath = new Set<string>()
  const path = pattern.replace(/\{(\w+)\}/g, (_, name: string) => {
    inPath.add(name)
    return encodeURIComponent(String(input[name]))
  })
  return [path, Object.entries(input).filter(([name, value]) => !inPath.has(name) && value !== undefined)]
}

function toUrl(path: string, parameters: readonly (readonly [string, unknown])[]): string {
  const query = new URLSearchParams(parameters.map(([name, value]) => [name, String(value)]))
  return `${MANAGEMENT_PATH}${path}${query.size > 0 ? `?${query}` : ''}`
}

/** Returns the URL of a request that a browser sends by itself. */
export function linkTo<Name extends OperationName>(name: Name, input: InputOf<Name>): string {
  return toUrl(...fill(OPERATION_ROUTES[name][1], input as Record<string, unknown>))
}

/** An answer that no page has taken by then is dropped: it may no longer be true. */
const EARLY_MS = 10_000

/** Answers that were asked for before their pages could ask, by URL; each is taken once. */
const early = new Map<string, Promise<Response>>()

/** Sends a request that a page will make, while the code of the page is loading. */
export function requestEarly<Name extends ReadName>(name: Name, input: InputOf<Name>): void {
  const url = linkTo(name, input)
  const answer = fetch(url, { credentials: 'same-origin' })
  // The page that takes it says what went wrong.
  answer.catch(() => undefined)
  early.set(url, answer)
  setTimeout(() => early.delete(url), EARLY_MS)
}

function takeEarly(url: string): Promise<Response> | undefined {
  const answer = early.get(url)
  early.delete(url)
  return answer
}

interface RequestOptions {
  readonly signal?: AbortSignal
  /** Makes the operation take place once, however often the request is sent. */
  readonly idempotencyKey?: string
  /** Fails instead of asking the user. */
  readonly isSilent?: boolean
}

interface Sent extends RequestOptions {
  readonly query: readonly (readonly [string, unknown])[]
  readonly headers?: Record<string, string>
  readonly body?: string | FormData
}

/** Asks the service, and notes whether it answers. @throws ApiError without an answer */
export async function reach(url: string, init: RequestInit): Promise<Response> {
  try {
    const response = await ((init.method === 'GET' && takeEarly(url)) || fetch(url, init))
    onlineManager.setOnline(true)
    return response
  } catch (error) {
    if (init.signal?.aborted) throw error
    onlineManager.setOnline(false)
    const message = t('The service cannot be reached. Check your connection, and try again.')
    throw new ApiError(UNREACHABLE, UNREACHABLE_CODE, message, null)
  }
}

/** A session may end between two questions. */
const MAX_QUESTIONS = 2

/**
 * Sends a request; if the session has ended, or the service wants to know who is there, asks the user and sends it again.
 * While the user views an account, refuses requests that change something.
 */
async function send<Answer>(method: string, path: string, sent: Sent): Promise<Answer> {
  if (method !== 'GET' && readViewedAccount() !== null && !OWN.test(path))
    throw new ApiError(
      403,
      'permission_denied',
      t('You cannot change anything while you view an account. End the view first.'),
      null,
    )
  const attempt = () =>
    reach(toUrl(path, sent.query), {
      method,
      credentials: 'same-origin',
      headers: {
        ...sent.headers,
        ...(method !== 'GET' && csrfToken !== null && { 'x-csrf-token': csrfToken }),
        ...(sent.idempotencyKey !== undefined && { 'idempotency-key': sent.idempotencyKey }),
      },
      body: sent.body,
      signal: sent.signal,
    })
  for (let asked = 0; ; asked += 1) {
    const response = await attempt()
    if (response.ok) return (await response.json()) as Answer
    const error = await readError(response)
    const question = sent.isSilent || asked === MAX_QUESTIONS ? undefined : findQuestion(error)
    if (question === undefined || !(await ask(question))) throw error
  }
}

/**
 * Sends the request of an operation.
 * @throws ApiError
 */
export function request<Name extends OperationName>(
  name: Name,
  input: InputOf<Name>,
  options: RequestOptions = {},
): Promise<AnswerOf<Name>> {
  const [method, pattern] = OPERATION_ROUTES[name]
  const [path, rest] = fill(pattern, input as Record<string, unknown>)
  if (method === 'GET' || method === 'DELETE') return send(method, path, { ...options, query: rest })
  const body = JSON.stringify(Object.fromEntries(rest))
  return send(method, path, { ...options, query: [], headers: { 'content-type': 'application/json' }, body })
}

/**
 * Uploads files under their names. The input is in path and query.
 * @throws ApiError
 */
export function upload<Name extends OperationName>(
  name: Name,
  input: InputOf<Name>,
  files: readonly (readonly [name: string, content: File])[],
): Promise<AnswerOf<Name>> {
  const [method, pattern] = OPERATION_ROUTES[name]
  const [path, query] = fill(pattern, input as Record<string, unknown>)
  const body = new FormData()
  for (const [file, content] of files) body.append('file', content, file)
  return send(method, path, { query, body })
}
