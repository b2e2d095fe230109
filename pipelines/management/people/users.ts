/** Operations of users and invitations. */
import { Failure } from '../../../schemas/failure.ts'
import * as operations from '../../../schemas/management/people/users.ts'
import { generateToken, hashToken } from '../../../src/core/keys/bearer-token.ts'
import type { NewInvitation } from '../../../src/postgres/people/invitations.ts'
import { assertMayDecideOn } from '../accounts/ranks.ts'
import { type Context, implementWith } from '../operation.ts'
import { type PageInput, readPage, toPage } from '../page.ts'
import { invitationShape, userShape } from '../shapes.ts'
import { readEmail, tooMany, type UserServices } from './rules.ts'

const LINK_MINUTES = 15

const implement = implementWith<UserServices>()

/** Creates an invitation, and sends it, or returns it with the link to hand on. */
async function invite(
  { database, write, caller }: Context,
  { publicUrl, hasMail }: UserServices,
  { email, ...to }: Omit<NewInvitation, 'tokenHash'>,
) {
  const token = generateToken()
  const invitation = { ...to, email: readEmail(email), tokenHash: hashToken(token) }
  const url = `${publicUrl}/console/sign-up#invitation=${token}`
  if (hasMail) {
    const mail = { inviter: caller.actor, accountId: to.accountId, email: invitation.email }
    const counted = await database.attempts.takeInvitationMail(mail)
    if ('retryAfterSeconds' in counted)
      throw tooMany('invitations were sent by email', counted.retryAfterSeconds)
  }
  const created = await write(async (writing) => {
    const made = await writing.invitations.create(invitation)
    if (hasMail)
      await writing.deliveries.sendMail(made.email, {
        mail: 'invitation',
        locale: caller.signedIn?.user.locale ?? 'en',
        values: { to: made.accountName ?? 'Tollgate' },
        link: url,
      })
    return made
  })
  return { ...invitationShape(created), url: hasMail ? null : url }
}

/** Returns a page of the invitations to an organization, or of those to none, the newest first. */
async function listInvitationPage({ database }: Context, accountId: string | null, input: PageInput) {
  const found = await database.invitations.list(accountId, readPage(input))
  return toPage(found.map(invitationShape), input)
}

export const userOperations = [
  implement(operations.listUsers, async ({ database }, input) => {
    const found = await database.users.list({ search: input.search ?? null, ...readPage(input) })
    return toPage(found.map(userShape), input)
  }),
  implement(operations.showUser, async ({ database }, { id }) => userShape(await database.users.show(id))),
  implement(operations.createUser, async ({ write }, input, { config }) => {
    const { name, locale, installation_role: installationRole, account_id: accountId } = input
    const email = readEmail(input.email)
    const credit = config().trial_credit
    const user = { email, name, locale, installationRole, credit, ...(accountId !== null && { accountId }) }
    return userShape(
      await write(async (writing) => {
        if (accountId !== null && (await writing.accounts.show(accountId)).account.kind !== 'personal')
          throw new Failure(
            'invalid_request',
            `account_id: ${accountId} is an organization; invite a member.`,
          )
        return writing.users.create(user)
      }),
    )
  }),
  implement(operations.createSignInLink, async ({ write }, { id }, { publicUrl }) => {
    const token = generateToken()
    await write(async (writing) => {
      const { enabled } = await writing.users.show(id)
      if (!enabled) throw new Failure('conflict', `User ${id} is disabled: enable them first.`)
      await writing.sessions.createLink({ tokenHash: hashToken(token), userId: id, minutes: LINK_MINUTES })
    })
    return { url: `${publicUrl}/console/sign-in#link=${token}`, minutes: LINK_MINUTES }
  }),
  implement(operations.enableUser, async ({ write }, { id }) =>
    userShape(await write((writing) => writing.users.update(id, { enabled: true }))),
  ),
  implement(operations.disableUser, async ({ write }, { id }) =>
    userShape(await write((writing) => writing.users.update(id, { enabled: false }))),
  ),
  implement(operations.setInstallationRole, async ({ write }, { id, installation_role: installationRole }) =>
    userShape(
      await write(async (writing) => {
        const user = await writing.users.update(id, { installationRole })
        // Who has another role signs in again.
        await writing.sessions.end(id, { allBut: null })
        return user
      }),
    ),
  ),
  implement(
    operations.createInvitation,
    (context, { email, installation_role: installationRole }, services) =>
      invite(context, services, { email, installationRole, accountId: null, role: null }),
  ),
  implement(operations.listInvitations, (context, input) => listInvitationPage(context, null, input)),
  implement(operations.revokeInvitation, async ({ write }, { id }) =>
    invitationShape(await write((writing) => writing.invitations.revoke(id))),
  ),
  implement(operations.inviteMember, async (context, { email, account_id: accountId, role }, services) => {
    assertMayDecideOn(context, accountId, role)
    return invite(context, services, { email, accountId, role, installationRole: null })
  }),
  implement(operations.listMemberInvitations, (context, { account_id, ...input }) =>
    listInvitationPage(context, account_id, input),
  ),
  implement(operations.revokeMemberInvitation, async (context, { id, account_id: accountId }) =>
    invitationShape(
      await context.write(async (writing) => {
        const invitation = await writing.invitations.show(id)
        if (invitation.accountId !== accountId)
          throw new Failure('not_found', `There is no invitation ${id} in ${accountId}.`)
        assertMayDecideOn(context, accountId, invitation.role)
        return writing.invitations.revoke(id)
      }),
    ),
  ),
]
