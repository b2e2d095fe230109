/** Operations of becoming a user and of signing in. No answer tells whether an email exists, nor does its time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../../../schemas/failure.ts'
import * as operations from '../../../schemas/management/people/sign-in.ts'
import { clientNetwork } from '../../../src/core/keys/address-prefix.ts'
import { generateToken, hashToken } from '../../../src/core/keys/bearer-token.ts'
import { normalizeEmail } from '../../../src/core/people/email.ts'
import type { Context } from '../operation.ts'
import {
  acceptCode,
  assertPassword,
  countAttempt,
  implementForPeople,
  joinOrganization,
  openSession,
  type PeopleServices,
  readEmail,
  runCountedAttempt,
  signInFailed,
  signUpIsOff,
  takeBackUnchecked,
  tooLate,
} from './rules.ts'
import { renewSession, requireSignedIn, startSession } from './sessions.ts'

/** Longer than a sign-up takes: whether it creates a user is not seen by its time. */
const SIGN_UP_MS = 500

const isTaken = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'email_taken'

async function signUpByPassword(
  { database, visit, write }: Context,
  input: {
    readonly email?: string | undefined
    readonly name: string
    readonly password: string
    readonly locale: 'en' | 'zh'
    readonly invitation?: string | undefined
  },
  { config, identity }: PeopleServices,
): Promise<{ email: string }> {
  const { name, password, locale, invitation } = input
  const { signup, trial_credit: credit } = config()
  if (signup === 'off' || (signup === 'invite' && invitation === undefined)) throw signUpIsOff()
  const over = sleep(SIGN_UP_MS)
  const counted = await countAttempt(database, { address: clientNetwork(visit.address) })
  const invited = invitation === undefined ? null : hashToken(invitation)
  const email =
    invited === null ? readEmail(input.email ?? '') : (await database.invitations.find(invited)).email
  assertPassword(password, email)
  const passwordHash = await takeBackUnchecked(database, counted, () => identity.passwords.hash(password))
  try {
    await write(async (writing) => {
      const offer = invited === null ? null : await writing.invitations.redeem(invited)
      const installationRole = offer?.installationRole ?? null
      const user = await writing.users.create({ email, name, locale, installationRole, credit })
      await writing.signIn.setPassword(user.id, passwordHash)
      if (offer === null) await writing.users.recordUnprovenEmail(user.id)
      else await joinOrganization(writing, offer, user.accountId)
    })
    // Invitations are counted where they are made. Open sign-ups are limited here: each has the trial credit.
    if (invited !== null) await database.attempts.takeBack(counted)
  } catch (error) {
    if (!isTaken(error)) throw error
  }
  await over
  return { email }
}

export const signInOperations = [
  implementForPeople(operations.signInWays, async (_, __, { config, hasMail }) => {
    const { signup, sign_in } = config()
    return { signup, providers: sign_in.oidc.map(({ id, name }) => ({ id, name })), recovery: hasMail }
  }),
  implementForPeople(operations.signUp, signUpByPassword),
  implementForPeople(operations.signInByPassword, (context, input, { identity }) => {
    const { database, write } = context
    const email = normalizeEmail(input.email)
    return runCountedAttempt(context, email, async () => {
      const found = await database.signIn.findPassword(email)
      const isRight = await identity.passwords.verify(found?.passwordHash ?? null, input.password)
      if (found === null || !isRight || !found.user.enabled)
        throw signInFailed('The email or the password is wrong.')
      const userId = found.user.id
      if (!found.hasTotp) {
        const session = await startSession(context, (writing, hash) =>
          writing.sessions.create(openSession(context, hash, userId)),
        )
        return { session, ticket: null }
      }
      const ticket = generateToken()
      await write((writing) =>
        writing.tickets.create({ tokenHash: hashToken(ticket), purpose: 'totp', userId }),
      )
      return { session: null, ticket }
    })
  }),
  implementForPeople(operations.signInByTotp, async (context, { ticket, code }, { identity }) => {
    const { database, now } = context
    const waiting = { tokenHash: hashToken(ticket), purpose: 'totp' } as const
    const userId = await database.tickets.findUser(waiting)
    if (userId === null) throw tooLate()
    return runCountedAttempt(context, userId, async () => {
      const secret = await database.signIn.findTotpSecret(userId, { isConfirmed: true })
      if (secret === null) throw tooLate()
      return startSession(context, async (writing, hash) => {
        await acceptCode(writing, identity, now, { userId, secret, code })
        if ((await writing.tickets.take({ ...waiting, userId })) === null) throw tooLate()
        return writing.sessions.create(openSession(context, hash, userId))
      })
    })
  }),
  implementForPeople(operations.lookUpInvitation, async ({ database }, { token }) => {
    const { email, accountId, accountName, role, installationRole, expiresAt } =
      await database.invitations.find(hashToken(token))
    const expires_at = expiresAt.toISOString()
    const account = { account_id: accountId, account_name: accountName }
    return { email, ...account, role, installation_role: installationRole, expires_at }
  }),
  implementForPeople(operations.acceptInvitation, (context, { token }) => {
    const { user, session, access } = requireSignedIn(context)
    return renewSession(context, false, async (writing) => {
      const offer = await writing.invitations.redeem(hashToken(token))
      if (offer.email !== normalizeEmail(user.email))
        throw new Failure('permission_denied', 'The invitation is for another email address than yours.')
      if (access.some(({ accountId }) => accountId === offer.accountId))
        throw new Failure('conflict', `You are a member of ${offer.accountName} already.`)
      await joinOrganization(writing, offer, user.accountId)
      const isMore = offer.installationRole !== null && user.installationRole !== 'operator'
      if (!isMore) return
      await writing.users.update(user.id, { installationRole: offer.installationRole })
      await writing.sessions.end(user.id, { allBut: session.id })
    })
  }),
]
