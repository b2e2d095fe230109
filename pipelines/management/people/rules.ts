/** Rules that operations of people share: attempts, names that are read, invitations, one-time codes. */

import type { Invitation } from '../../../schemas/accounts/people.ts'
import type { ConfigFile, OidcProvider } from '../../../schemas/config/file.ts'
import { Failure } from '../../../schemas/failure.ts'
import { clientNetwork } from '../../../src/core/keys/address-prefix.ts'
import { isEmail, normalizeEmail } from '../../../src/core/people/email.ts'
import { findPasswordProblem } from '../../../src/core/people/password-policy.ts'
import { hashRecoveryCode, isRecoveryCode } from '../../../src/core/people/recovery-codes.ts'
import type { Identity } from '../../../src/identity/identity.ts'
import type { Repositories } from '../../../src/postgres/database.ts'
import type { Attempts } from '../../../src/postgres/people/repository.ts'
import { type Context, implementWith } from '../operation.ts'

export interface UserServices {
  readonly config: () => ConfigFile
  /** Base of the links that are handed out, without a slash at its end. */
  readonly publicUrl: string
  /** Whether a mail server is configured. */
  readonly hasMail: boolean
}

export interface PeopleServices extends UserServices {
  readonly identity: Identity
}

export const signInFailed = (message: string, internal?: unknown): Failure =>
  new Failure('sign_in_failed', message, internal === undefined ? {} : { internal: String(internal) })

export const signUpIsOff = (): Failure =>
  new Failure(
    'permission_denied',
    'Sign-up is by invitation: ask an operator, or an admin of your organization.',
  )

export const tooLate = (): Failure =>
  signInFailed('The sign-in took too long, or was done already: begin again.')

const invalid = (message: string): Failure => new Failure('invalid_request', message)

export const implementForPeople = implementWith<PeopleServices>()

/** Returns the session to open for a user. */
export const openSession = ({ visit: { userAgent, address } }: Context, hash: Buffer, userId: string) => ({
  tokenHash: hash,
  userId,
  userAgent,
  address,
})

/**
 * Runs `work` as an attempt to sign in, which counts unless it succeeds, or the service cannot check it.
 * @param account a normalized email or the id of a user; null: only the address counts
 * @throws Failure `rate_limit_exceeded`
 */
export async function runCountedAttempt<T>(
  { database, visit }: Context,
  account: string | null,
  work: () => Promise<T>,
): Promise<T> {
  const address = clientNetwork(visit.address)
  const ids = await countAttempt(database, { address, ...(account !== null && { account }) })
  const result = await takeBackUnchecked(database, ids, work)
  await database.attempts.takeBack(ids)
  return result
}

/** Runs `work` as a counted attempt, which is taken back where the service cannot check it. */
export async function takeBackUnchecked<T>(
  database: { readonly attempts: Attempts },
  ids: readonly bigint[],
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Failure && error.code === 'service_unavailable')
      await database.attempts.takeBack(ids)
    throw error
  }
}

/** Counts an attempt. @throws Failure `rate_limit_exceeded` */
export async function countAttempt(
  database: { readonly attempts: Attempts },
  subjects: { readonly account?: string; readonly address: string },
): Promise<readonly bigint[]> {
  const attempt = await database.attempts.take(subjects)
  if ('ids' in attempt) return attempt.ids
  throw tooMany('attempts to sign in', attempt.retryAfterSeconds)
}

/** Returns the refusal of what was done too often. */
export function tooMany(what: string, retryAfterSeconds: number): Failure {
  const minutes = Math.ceil(retryAfterSeconds / 60)
  return new Failure(
    'rate_limit_exceeded',
    `Too many ${what}. Try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.`,
    { headers: [['retry-after', String(retryAfterSeconds)]] },
  )
}

/** Returns the normalized email. @throws Failure `invalid_request` */
export function readEmail(text: string): string {
  const email = normalizeEmail(text)
  if (!isEmail(email)) throw invalid('email: is not an email address.')
  return email
}

/** @throws Failure `invalid_request` for a password that may not be chosen */
export function assertPassword(password: string, email: string): void {
  const problem = findPasswordProblem(password, email)
  if (problem !== null) throw invalid(problem)
}

/** @throws Failure `not_found` */
export function findProvider({ config }: UserServices, id: string): OidcProvider {
  const provider = config().sign_in.oidc.find((one) => one.id === id)
  if (provider === undefined) throw new Failure('not_found', `There is no sign-in provider ${id}.`)
  return provider
}

/** Makes the user a member, as the invitation says; part of the transaction that uses it up. */
export async function joinOrganization(
  database: Repositories,
  { accountId, role }: Invitation,
  personalAccountId: string,
): Promise<void> {
  if (accountId !== null && role !== null)
    await database.organizations.putMember(accountId, personalAccountId, role)
}

/**
 * Accepts a one-time code or a recovery code of a user, once: part of the transaction of what it opens.
 * @throws Failure `sign_in_failed`
 */
export async function acceptCode(
  database: Repositories,
  { totp }: Identity,
  now: number,
  { userId, secret, code }: { readonly userId: string; readonly secret: string; readonly code: string },
): Promise<void> {
  const period = totp.findTotpPeriod(secret, code, now)
  const isAccepted =
    period === null
      ? isRecoveryCode(code) && (await database.signIn.spendRecoveryCode(userId, hashRecoveryCode(code)))
      : await database.signIn.acceptTotpPeriod(userId, period)
  if (!isAccepted) throw signInFailed('The code is wrong, or was used before. Wait for the next one.')
}

const IP_ADDRESS = /^(\d+\.){3}\d+$|^\[/

/** Returns the origin that passkeys are bound to. @throws Failure `invalid_request` where browsers take none */
export function passkeyOrigin({ visit: { origin } }: Context): string {
  if (!URL.canParse(origin)) throw invalid('Passkeys need a browser.')
  const { hostname } = new URL(origin)
  if (IP_ADDRESS.test(hostname))
    throw invalid(
      'Browsers take no passkeys at an IP address: open the console by a host name, such as localhost.',
    )
  return new URL(origin).origin
}
