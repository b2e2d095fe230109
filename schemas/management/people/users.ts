/** Operations of users and invitations: for operators, and for those who invite to an organization. */
import { z } from 'zod'
import { memberRole } from '../../accounts/organization.ts'
import { INSTALLATION_ROLES, instantText, operation, pageInput, pageOf } from '../operation.ts'
import { userSchema } from './sessions.ts'
import { emailText, localeName, userName } from './sign-in.ts'

const id = z.string()
const installationRole = z.enum(INSTALLATION_ROLES).nullable()

const ofOperators = { scope: 'admin', allows: 'operators' } as const
const user = { name: 'User', schema: userSchema }

export const listUsers = operation({
  ...ofOperators,
  method: 'GET',
  path: '/users',
  summary: 'List the users.',
  input: z.object({
    ...pageInput,
    search: z.string().max(200).optional().describe('Part of email, name or id.'),
  }),
  answer: { name: 'UserList', schema: pageOf(userSchema) },
})

export const showUser = operation({
  ...ofOperators,
  method: 'GET',
  path: '/users/{id}',
  summary: 'Show a user.',
  input: z.object({ id }),
  answer: user,
})

export const createUser = operation({
  ...ofOperators,
  method: 'POST',
  path: '/users',
  summary: 'Create a user with a personal account and the trial credit; a link signs them in.',
  input: z.object({
    email: emailText,
    name: userName,
    locale: localeName.default('en'),
    installation_role: installationRole.default(null),
    account_id: z
      .string()
      .nullable()
      .default(null)
      .describe('A personal account without a user; null: a new one.'),
  }),
  answer: user,
  isSensitive: true,
  isIdempotent: true,
  status: 201,
})

export const createSignInLink = operation({
  ...ofOperators,
  method: 'POST',
  path: '/users/{id}/link',
  summary: 'Create a link that signs a user in once, within 15 minutes.',
  input: z.object({ id }),
  answer: {
    name: 'SignInLink',
    schema: z.object({ url: z.string(), minutes: z.number().int() }),
  },
  isSensitive: true,
  isSecret: true,
  status: 201,
})

export const enableUser = operation({
  ...ofOperators,
  method: 'POST',
  path: '/users/{id}/enable',
  summary: 'Let a user sign in again.',
  input: z.object({ id }),
  answer: user,
})

export const disableUser = operation({
  ...ofOperators,
  method: 'POST',
  path: '/users/{id}/disable',
  summary: 'End the sessions of a user, and refuse new ones. Their keys work on.',
  input: z.object({ id }),
  answer: user,
})

export const setInstallationRole = operation({
  ...ofOperators,
  method: 'PUT',
  path: '/users/{id}/role',
  summary: 'Give a user a role in the installation, or take it away.',
  input: z.object({ id, installation_role: installationRole }),
  answer: user,
  isSensitive: true,
})

const invitationSchema = z.object({
  id,
  email: z.string(),
  account_id: z.string().nullable(),
  role: memberRole.nullable(),
  installation_role: installationRole,
  created_by: z.string(),
  created_at: instantText,
  expires_at: instantText,
  used_at: instantText.nullable(),
  revoked_at: instantText.nullable(),
})

const withUrl = invitationSchema.extend({
  url: z.string().nullable().describe('To hand on. Shown once. null where the invitation was sent by email.'),
})

export const createInvitation = operation({
  ...ofOperators,
  method: 'POST',
  path: '/invitations',
  summary: 'Invite a person to become a user: a link that works once, within 7 days.',
  input: z.object({ email: emailText, installation_role: installationRole.default(null) }),
  answer: { name: 'CreatedInvitation', schema: withUrl },
  isSensitive: true,
  isSecret: true,
  status: 201,
})

export const listInvitations = operation({
  ...ofOperators,
  method: 'GET',
  path: '/invitations',
  summary: 'List the invitations that are to no organization.',
  input: z.object(pageInput),
  answer: { name: 'InvitationList', schema: pageOf(invitationSchema) },
})

export const inviteMember = operation({
  method: 'POST',
  path: '/organizations/{account_id}/invitations',
  summary: 'Invite a person to an organization: a link that works once, within 7 days.',
  input: z.object({ account_id: z.string(), email: emailText, role: memberRole.default('member') }),
  answer: { name: 'CreatedInvitation', schema: withUrl },
  scope: 'accounts',
  allows: ['owner', 'admin'],
  isSensitive: true,
  isSecret: true,
  status: 201,
})

export const listMemberInvitations = operation({
  method: 'GET',
  path: '/organizations/{account_id}/invitations',
  summary: 'List the invitations to an organization.',
  input: z.object({ account_id: z.string(), ...pageInput }),
  answer: { name: 'InvitationList', schema: pageOf(invitationSchema) },
  scope: 'read',
  allows: ['owner', 'admin'],
})

export const revokeInvitation = operation({
  ...ofOperators,
  method: 'POST',
  path: '/invitations/{id}/revoke',
  summary: 'Refuse an invitation from now on.',
  input: z.object({ id }),
  answer: { name: 'Invitation', schema: invitationSchema },
})

export const revokeMemberInvitation = operation({
  method: 'POST',
  path: '/organizations/{account_id}/invitations/{id}/revoke',
  summary: 'Refuse an invitation to an organization from now on.',
  input: z.object({ account_id: z.string(), id }),
  answer: { name: 'Invitation', schema: invitationSchema },
  scope: 'accounts',
  allows: ['owner', 'admin'],
})
