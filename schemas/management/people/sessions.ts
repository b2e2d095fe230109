/** Operations of signing in, and of the session that it opens. */
import { z } from 'zod'
import { accountKind } from '../../accounts/account.ts'
import { memberRole } from '../../accounts/organization.ts'
import { LOCALES } from '../../accounts/people.ts'
import { INSTALLATION_ROLES, instantText, operation } from '../operation.ts'

export const userSchema = z.object({
  id: z.string(),
  email: z.string(),
  name: z.string(),
  locale: z.enum(LOCALES),
  account_id: z.string().describe('The personal account of the user.'),
  installation_role: z.enum(INSTALLATION_ROLES).nullable(),
  enabled: z.boolean(),
  created_at: instantText,
  signed_in_at: instantText.nullable(),
})

/** An account that the user may act in. */
const accessSchema = z.object({
  account_id: z.string(),
  name: z.string(),
  kind: accountKind,
  role: memberRole,
})

export const sessionSchema = z.object({
  id: z.string(),
  user: userSchema,
  accounts: z.array(accessSchema),
  csrf_token: z.string().describe('For the header `X-CSRF-Token` of every request that changes something.'),
  confirmed_at: instantText.describe('When the user last proved who they are.'),
  expires_at: instantText.describe('Ends then, or earlier after twelve hours without a request.'),
})

export const showSession = operation('showSession', {
  summary: 'Show the session, its user, and the accounts that the user may act in.',
  input: z.object({}),
  answer: { name: 'Session', schema: sessionSchema },
  scope: 'read',
  allows: 'signed-in',
})

export const signInByLink = operation('signInByLink', {
  summary: 'Sign in by a link that works once.',
  input: z.object({ token: z.string().min(1).max(200) }),
  answer: { name: 'Session', schema: sessionSchema },
  scope: 'admin',
  allows: 'everyone',
})

export const signOut = operation('signOut', {
  summary: 'End the session.',
  input: z.object({}),
  answer: { name: 'SignedOut', schema: z.object({ signed_out: z.literal(true) }) },
  scope: 'admin',
  allows: 'signed-in',
})
