/** Operations of users and invitations: for operators, and for those who invite to an organization. */
import { z } from 'zod'
import { memberRole } from '../../accounts/organization.ts'
import { INSTALLATION_ROLES, instantText, operation, pageInput, toPageSchema } from '../operation.ts'
import { userSchema } from './sessions.ts'
import { emailText, localeName, userName } from './sign-in.ts'

const id = z.string()
const invitationId = z.string().describe('The invitation.')
const names = { account_id: 'organization' }
const INVITATION_COLUMNS = 'id email account_id role installation_role expires_at used_at revoked_at'
const installationRole = z.enum(INSTALLATION_ROLES).nullable()

const ofOperators = { scope: 'admin', allows: 'operators' } as const
const user = { name: 'User', schema: userSchema }

export const listUsers = operation('listUsers', {
  ...ofOperators,
  summary: 'List the users.',
  input: z.object({
    ...pageInput,
    search: z.string().max(200).optional().describe('Part of the email address, name or id.'),
  }),
  answer: { name: 'UserList', schema: toPageSchema(userSchema) },
  commands: [
    { words: 'user list', columns: 'id email name account_id installation_role enabled signed_in_at' },
  ],
})

export const showUser = operation('showUser', {
  ...ofOperators,
  summary: 'Show a user.',
  input: z.object({ id }),
  answer: user,
  commands: [{ words: 'user show' }],
})

export const createUser = operation('createUser', {
  ...ofOperators,
  summary: 'Create a user with a personal account and the trial credit. They sign in by a link.',
  input: z.object({
    email: emailText,
    name: userName.describe('Name to show.'),
    locale: localeName.default('en').describe('Language of the console and of emails.'),
    installation_role: installationRole.default(null).describe('The role in the installation. null: none.'),
    account_id: z
      .string()
      .nullable()
      .default(null)
      .describe('A personal account without a user. null: a new one.'),
  }),
  answer: user,
  isSensitive: true,
  isIdempotent: true,
  status: 201,
  commands: [{ words: 'user create', example: '--email ada@example.com --name Ada' }],
})

export const createSignInLink = operation('createSignInLink', {
  ...ofOperators,
  summary: 'Create a link that signs a user in once, within 15 minutes.',
  input: z.object({ id }),
  answer: {
    name: 'SignInLink',
    schema: z.object({ url: z.string(), minutes: z.number().int() }),
  },
  isSensitive: true,
  isSecret: true,
  status: 201,
  commands: [{ words: 'user link' }],
})

export const enableUser = operation('enableUser', {
  ...ofOperators,
  summary: 'Let a user sign in again.',
  input: z.object({ id }),
  answer: user,
  commands: [{ words: 'user enable' }],
})

export const disableUser = operation('disableUser', {
  ...ofOperators,
  summary: 'End the sessions of a user and refuse new ones. Their keys keep working.',
  input: z.object({ id }),
  answer: user,
  commands: [
    { words: 'user disable', effect: 'This would end the sessions of {email} ({id}) and refuse new ones' },
  ],
})

export const setInstallationRole = operation('setInstallationRole', {
  ...ofOperators,
  summary: 'Give a user a role in the installation, or remove it.',
  input: z.object({ id, installation_role: installationRole.describe('The role in the installation.') }),
  answer: user,
  isSensitive: true,
  commands: [{ words: 'user role', example: '--role auditor' }],
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
const invitationList = { name: 'InvitationList', schema: toPageSchema(invitationSchema) }

const withUrl = invitationSchema.extend({
  url: z
    .string()
    .nullable()
    .describe('Link to pass on. Shown once. null when the invitation was sent by email.'),
})

export const createInvitation = operation('createInvitation', {
  ...ofOperators,
  summary: 'Invite a person to become a user, by a link that works once, within 7 days.',
  input: z.object({
    email: emailText,
    installation_role: installationRole.default(null).describe('The role in the installation. null: none.'),
  }),
  answer: { name: 'CreatedInvitation', schema: withUrl },
  isSensitive: true,
  isSecret: true,
  status: 201,
  commands: [{ words: 'user invite' }],
})

export const listInvitations = operation('listInvitations', {
  ...ofOperators,
  summary: 'List the invitations to the installation.',
  input: z.object(pageInput),
  answer: invitationList,
  commands: [{ words: 'user invitations', columns: INVITATION_COLUMNS }],
})

export const inviteMember = operation('inviteMember', {
  summary: 'Invite a person to an organization, by a link that works once, within 7 days.',
  input: z.object({
    account_id: z.string().describe('The organization.'),
    email: emailText,
    role: memberRole.default('member').describe('The role in the organization.'),
  }),
  answer: { name: 'CreatedInvitation', schema: withUrl },
  scope: 'accounts',
  allows: ['owner', 'admin'],
  isSensitive: true,
  isSecret: true,
  status: 201,
  commands: [
    {
      words: 'user invite',
      summary:
        'Create a link that makes a person a user, or a member of an organization. It works once, within 7 days.',
      names: { ...names, role: 'as' },
      example: '--email ada@example.com --organization acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF --as admin',
    },
  ],
})

export const listMemberInvitations = operation('listMemberInvitations', {
  summary: 'List the invitations to an organization.',
  input: z.object({ account_id: z.string().describe('The organization.'), ...pageInput }),
  answer: invitationList,
  scope: 'read',
  allows: ['owner', 'admin'],
  commands: [
    {
      words: 'user invitations',
      summary: 'List the invitations to an organization, or those to the installation.',
      names,
      columns: INVITATION_COLUMNS,
    },
  ],
})

export const revokeInvitation = operation('revokeInvitation', {
  ...ofOperators,
  summary: 'Revoke an invitation.',
  input: z.object({ id: invitationId }),
  answer: { name: 'Invitation', schema: invitationSchema },
  commands: [{ words: 'user uninvite' }],
})

export const revokeMemberInvitation = operation('revokeMemberInvitation', {
  summary: 'Revoke an invitation to an organization.',
  input: z.object({ account_id: z.string().describe('The organization.'), id: invitationId }),
  answer: { name: 'Invitation', schema: invitationSchema },
  scope: 'accounts',
  allows: ['owner', 'admin'],
  commands: [
    {
      words: 'user uninvite',
      summary: 'Revoke an invitation.',
      names,
      example: 'inv_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
    },
  ],
})
