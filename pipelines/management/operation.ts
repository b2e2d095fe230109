/** Operations with the functions that implement them. HTTP, the console and the command line run the same function. */
import { createHash } from 'node:crypto'
import type { z } from 'zod'
import { Failure, type FailureCode } from '../../schemas/failure.ts'
import type { Operation } from '../../schemas/management/operation.ts'
import { PLAIN_ISSUES } from '../../src/core/plain-issues.ts'
import { listUnknownFields } from '../../src/core/unknown-fields.ts'
import type { FormContent } from '../../src/http/handler.ts'
import type { RefusalCode } from '../../src/postgres/billing/refusal.ts'
import type { Database, Repositories } from '../../src/postgres/database.ts'
import type { IdempotencyClaim } from '../../src/postgres/requests/idempotency.ts'
import { decideClaim, type KeyedRequest } from '../calls/idempotency.ts'
import { assertMayActIn, assertMayCall, type Caller } from './caller.ts'

/** The part of a request that operations use besides their input: those of signing in and out, and uploads. */
export interface Visit {
  readonly userAgent: string
  readonly address: string
  /** The address of the console, such as `https://gateway.example.com`; empty where no browser calls. */
  readonly origin: string
  /** The token of the present session; null without one. */
  readonly token: string | null
  /** The form of an upload, not read yet. */
  readonly form: FormContent | null
  /** Sets the cookie of the answer; null deletes it. */
  setToken(token: string | null): void
}

/** The visit of a command. */
const NO_VISIT: Visit = { userAgent: '', address: '', origin: '', token: null, form: null, setToken() {} }

/** What an operation that only reads uses. */
export interface ReadContext {
  readonly caller: Caller
  /** For reading. */
  readonly database: Database
  /** Epoch milliseconds. */
  readonly now: number
}

export interface Context extends ReadContext {
  readonly visit: Visit
  /**
   * Runs `work` in one transaction in the name of the caller, so that the audit record has the operation exactly if it
   * took place. An operation calls this at most once.
   */
  write<T>(work: (database: Repositories) => Promise<T>): Promise<T>
  /** For operations that store their answer themselves. */
  readonly idempotency: KeyedRequest | null
}

/** The same type, deeply readonly: what an operation returns need not be mutable. */
type Given<T> = T extends (infer Entry)[]
  ? readonly Given<Entry>[]
  : T extends object
    ? { readonly [Name in keyof T]: Given<T[Name]> }
    : T

/** An operation, and how its input names the account that it is about. */
export interface AboutAccount<O extends Operation = Operation> {
  readonly operation: O
  /** Returns the account, where the operation needs a role in one. */
  readonly findAccount: (database: Database, input: z.output<O['input']>) => Promise<string | null>
}

/** `Services` is what the function uses besides the database: written down where the operations of a domain are. */
export interface Implementation<Services = object, O extends Operation = Operation> extends AboutAccount<O> {
  readonly run: (
    context: Context,
    input: z.output<O['input']>,
    services: Services,
  ) => Promise<Given<z.input<O['answer']['schema']>>>
}

/** Returns `account_id` of the input. */
export const readInputAccount = async (_: unknown, input: unknown): Promise<string | null> =>
  (input as { account_id?: string }).account_id ?? null

/** Binds a function to an operation. Without `findAccount`, the account is `account_id` of the input. */
interface Implement<Services> {
  <O extends Operation>(operation: O, run: Implementation<Services, O>['run']): Implementation<Services, O>
  <O extends Operation>(
    operation: O,
    findAccount: AboutAccount<O>['findAccount'],
    run: Implementation<Services, O>['run'],
  ): Implementation<Services, O>
}

/**
 * Returns `implement` for operations that use these services.
 * @example const implement = implementWith<PaymentServices>()
 */
export const implementWith =
  <Services>(): Implement<Services> =>
  <O extends Operation>(
    operation: O,
    ...given:
      | [Implementation<Services, O>['run']]
      | [AboutAccount<O>['findAccount'], Implementation<Services, O>['run']]
  ): Implementation<Services, O> =>
    given.length === 1
      ? { operation, findAccount: readInputAccount, run: given[0] }
      : { operation, findAccount: given[0], run: given[1] }

export const implement = implementWith<object>()

/** Finds the implementation of an operation among those of its domain. */
export function findImplementation<Services, O extends Operation>(
  implementations: readonly { readonly operation: Operation }[],
  operation: O,
): Implementation<Services, O> {
  const found = implementations.find((one) => one.operation === operation)
  if (found === undefined) throw new Error(`Nothing implements ${operation.method} ${operation.path}`)
  return found as Implementation<Services, O>
}

const FAILURE_OF: Readonly<Partial<Record<RefusalCode, FailureCode>>> = {
  idempotency_key_reuse: 'idempotency_key_reuse',
  not_an_admin: 'permission_denied',
  link_invalid: 'invalid_request',
  invitation_invalid: 'invalid_request',
  not_grantable: 'invalid_request',
  spend_cap_required: 'invalid_request',
  account_logs_not_allowed: 'invalid_request',
  draft_not_allowed: 'invalid_request',
  timezone_unknown: 'invalid_request',
  top_up_too_small: 'invalid_request',
  method_missing: 'invalid_request',
  invalid_amount: 'invalid_request',
  not_an_organization: 'invalid_request',
  not_a_personal_account: 'invalid_request',
}

/** Turns a refusal of the database into a failure with a status. */
export function toFailure(error: unknown): unknown {
  // By name: pipelines import no adapter.
  if (!(error instanceof Error) || error.name !== 'Refusal') return error
  const { code, message } = error as Error & { code: RefusalCode }
  const failure = FAILURE_OF[code] ?? (code.endsWith('_not_found') ? 'not_found' : 'conflict')
  return new Failure(failure, /[.!?]$/.test(message) ? message : `${message}.`)
}

interface RunOptions<Services> extends ReadContext {
  readonly services: Services
  /** Default: that of a command. */
  readonly visit?: Visit
  /** With it, the operation takes place once, however often the request is sent. */
  readonly idempotency?: KeyedRequest | null
}

/** Returns the field of a text that PostgreSQL cannot keep; null without one. */
function findUnstorableField(input: object): string | null {
  const values: (readonly [field: string, value: unknown])[] = Object.entries(input)
  for (const [field, value] of values) {
    if (typeof value === 'string' && (value.includes('\0') || !value.isWellFormed())) return field
    if (typeof value === 'object' && value !== null)
      for (const [name, inner] of Object.entries(value)) values.push([`${field}.${name}`, inner])
  }
  return null
}

function readInput<O extends Operation>({ input: schema }: O, given: object): z.output<O['input']> {
  const read = schema.safeParse(given, PLAIN_ISSUES)
  if (read.success) {
    const field = findUnstorableField(read.data)
    if (field === null) return read.data as z.output<O['input']>
    throw new Failure('invalid_request', `${field}: has a NUL or half a character in it. Leave it out.`)
  }
  const { issues } = read.error
  const unknown = issues.find((issue) => issue.code === 'unrecognized_keys')
  if (unknown !== undefined) throw new Failure('invalid_request', listUnknownFields(schema, unknown))
  const { path, message } = issues[0]!
  throw new Failure('invalid_request', `${path.length === 0 ? 'The request' : path.join('.')}: ${message}.`)
}

/**
 * Checks who calls and what they send; returns the input.
 * @throws Failure
 */
export async function admit<O extends Operation>(
  { operation, findAccount }: AboutAccount<O>,
  given: object,
  { database, caller, now }: ReadContext,
): Promise<z.output<O['input']>> {
  assertMayCall(caller, operation, now)
  const input = readInput(operation, given)
  if (Array.isArray(operation.allows)) {
    const accountId = await findAccount(database, input)
    if (accountId === null) throw new Failure('invalid_request', 'account_id: is missing.')
    const isNamed = Object.values(input).includes(accountId)
    const notFound = isNamed ? `There is no account ${accountId}.` : undefined
    assertMayActIn(caller, operation, accountId, notFound)
  }
  return input
}

/**
 * Checks who calls and what they send, and runs the operation.
 * @throws Failure
 */
export async function runImplementation<Services, O extends Operation>(
  implementation: Implementation<Services, O>,
  given: object,
  { database, services, caller, now, visit = NO_VISIT, idempotency = null }: RunOptions<Services>,
): Promise<z.output<O['answer']['schema']>> {
  const { operation, run } = implementation
  try {
    const input = await admit(implementation, given, { database, caller, now })
    const runOn = async (reading: Database, write: Context['write']) => {
      const context: Context = { caller, visit, database: reading, write, now, idempotency }
      const answer = await run(context, input, services)
      return operation.answer.schema.parse(answer) as z.output<O['answer']['schema']>
    }
    if (idempotency === null || operation.isIdempotent !== true)
      return await runOn(database, (work) => database.transactAs(caller.actor, work))
    return await database.transactAs(caller.actor, async (writing) => {
      const requestHash = createHash('sha256')
        .update(`${operation.method} ${operation.path} ${JSON.stringify(given)}`)
        .digest()
      const claim: IdempotencyClaim = { ...idempotency, scope: `actor:${caller.actor}`, requestHash }
      const earlier = decideClaim(claim, await writing.idempotency.claim(claim))
      if (earlier !== null) return JSON.parse(String(earlier.body))
      // A read on another connection would wait forever while such requests hold every connection of the pool.
      const answer = await runOn({ ...database, ...writing }, (work) => work(writing))
      const body = Buffer.from(JSON.stringify(answer))
      await writing.idempotency.store(claim, { status: operation.status ?? 200, headers: [], body })
      return answer
    })
  } catch (error) {
    throw toFailure(error)
  }
}
