/** Operations of the signed-in user on themselves. */
import { Failure } from '../../../schemas/failure.ts'
import * as operations from '../../../schemas/management/people/profile.ts'
import { normalizeEmail } from '../../../src/core/people/email.ts'
import { generateRecoveryCodes, hashRecoveryCode } from '../../../src/core/people/recovery-codes.ts'
import { toWholeList } from '../page.ts'
import { passkeyShape, printInstantOrNull, userShape } from '../shapes.ts'
import { acceptCode, assertPassword, implementForPeople, runCountedAttempt } from './rules.ts'
import { renewSession, requireSignedIn } from './sessions.ts'

export const profileOperations = [
  implementForPeople(operations.updateProfile, async (context, changes) => {
    const { user } = requireSignedIn(context)
    return userShape(await context.write((writing) => writing.users.update(user.id, changes)))
  }),
  implementForPeople(operations.showSecurity, async (context, _, { config, hasMail }) => {
    const methods = await context.database.signIn.listMethods(requireSignedIn(context).user.id)
    const names = new Map(config().sign_in.oidc.map(({ id, name }) => [id, name]))
    return {
      may_change_email: hasMail,
      password_set_at: printInstantOrNull(methods.passwordSetAt),
      totp_confirmed_at: printInstantOrNull(methods.totpConfirmedAt),
      recovery_codes: methods.recoveryCodes,
      passkeys: methods.passkeys.map(passkeyShape),
      providers: methods.identities.map(({ provider, createdAt }) => ({
        id: provider,
        name: names.get(provider) ?? provider,
        connected_at: createdAt.toISOString(),
      })),
    }
  }),
  implementForPeople(operations.confirmByPassword, (context, { password }, { identity }) => {
    const { user } = requireSignedIn(context)
    // Not by the email: strangers who try to sign in with it do not lock out the user who is.
    return runCountedAttempt(context, user.id, async () => {
      const found = await context.database.signIn.findPassword(normalizeEmail(user.email))
      if (!(await identity.passwords.verify(found?.passwordHash ?? null, password)))
        throw new Failure('sign_in_failed', 'The password is wrong.', { status: 403 })
      return renewSession(context, true)
    })
  }),
  implementForPeople(operations.setPassword, async (context, { password }, { identity }) => {
    const { user, session } = requireSignedIn(context)
    assertPassword(password, normalizeEmail(user.email))
    const hash = await identity.passwords.hash(password)
    return renewSession(context, false, async (writing) => {
      await writing.signIn.setPassword(user.id, hash)
      await writing.sessions.end(user.id, { allBut: session.id })
    })
  }),
  implementForPeople(operations.enrolTotp, async (context, _, { identity }) => {
    const { user } = requireSignedIn(context)
    const enrolment = identity.totp.enrolTotp(user.email)
    await context.write((writing) => writing.signIn.enrolTotp(user.id, enrolment.secret))
    return enrolment
  }),
  implementForPeople(operations.confirmTotp, (context, { code }, { identity }) => {
    const { database, write, now } = context
    const { user, session } = requireSignedIn(context)
    return runCountedAttempt(context, user.id, async () => {
      const secret = await database.signIn.findTotpSecret(user.id, { isConfirmed: false })
      if (secret === null)
        throw new Failure('conflict', 'There is no new secret to confirm: set up one-time codes first.')
      const codes = generateRecoveryCodes()
      await write(async (writing) => {
        await acceptCode(writing, identity, now, { userId: user.id, secret, code })
        await writing.signIn.confirmTotp(user.id)
        await writing.signIn.setRecoveryCodes(user.id, codes.map(hashRecoveryCode))
        await writing.sessions.end(user.id, { allBut: session.id })
      })
      return { recovery_codes: codes }
    })
  }),
  implementForPeople(operations.renewRecoveryCodes, async (context) => {
    const { user } = requireSignedIn(context)
    const { totpConfirmedAt } = await context.database.signIn.listMethods(user.id)
    if (totpConfirmedAt === null)
      throw new Failure('conflict', 'Recovery codes go with one-time codes: set those up first.')
    const codes = generateRecoveryCodes()
    await context.write((writing) => writing.signIn.setRecoveryCodes(user.id, codes.map(hashRecoveryCode)))
    return { recovery_codes: codes }
  }),
  implementForPeople(operations.removeTotp, async (context) => {
    const { user } = requireSignedIn(context)
    await context.write((writing) => writing.signIn.removeTotp(user.id))
    return { removed: true as const }
  }),
  implementForPeople(operations.listSessions, async (context) => {
    const { user, session } = requireSignedIn(context)
    const sessions = await context.database.sessions.list(user.id)
    return toWholeList(
      sessions.map((one) => ({
        id: one.id,
        is_current: one.id === session.id,
        user_agent: one.userAgent,
        address: one.address,
        created_at: one.createdAt.toISOString(),
        last_seen_at: one.lastSeenAt.toISOString(),
      })),
    )
  }),
  implementForPeople(operations.endSession, async (context, { id }) => {
    const { user } = requireSignedIn(context)
    const ended = await context.write((writing) => writing.sessions.end(user.id, { only: id }))
    if (ended === 0) throw new Failure('not_found', `You have no session ${id}.`)
    return { removed: true as const }
  }),
  implementForPeople(operations.endOtherSessions, async (context) => {
    const { user, session } = requireSignedIn(context)
    return { ended: await context.write((writing) => writing.sessions.end(user.id, { allBut: session.id })) }
  }),
]
