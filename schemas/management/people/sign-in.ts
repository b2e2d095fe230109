/** Operations of becoming a user and of signing in: password, one-time code, passkey, OpenID Connect. */
import { z } from 'zod'
import { MAX_NAME_CHARS } from '../../accounts/account.ts'
import { memberRole } from '../../accounts/organization.ts'
import { LOCALES } from '../../accounts/people.ts'
import { SIGN_UPS } from '../../config/file.ts'
import { INSTALLATION_ROLES, instantText, operation } from '../operation.ts'
import { sessionSchema } from './sessions.ts'

/** Longer than any address or password that is taken, so that their own rules answer. */
const MAX_TEXT_CHARS = 1000
const MAX_CODE_CHARS = 40
const MAX_QUERY_CHARS = 8000

export const emailText = z.string().max(MAX_TEXT_CHARS).describe('An email address, in upper or lower case.')
export const passwordText = z.string().max(MAX_TEXT_CHARS)
export const userName = z
  .string()
  .trim()
  .min(1)
  .max(MAX_NAME_CHARS)
  .regex(/^\P{Cc}*$/u, 'has control characters')
export const localeName = z.enum(LOCALES)
const secretToken = z.string().min(1).max(200)
export const codeText = z
  .string()
  .min(1)
  .max(MAX_CODE_CHARS)
  .describe('A code of 6 digits, or a recovery code.')
export const ticketText = secretToken.describe('`ticket` of the step before; in force for ten minutes.')
export const browserAnswer = z
  .record(z.string(), z.unknown())
  .describe('The answer of the browser, as `@simplewebauthn/browser` returns it.')

export const browserOptionsSchema = z.object({
  ticket: z.string(),
  options: z.record(z.string(), z.unknown()).describe('The options of the browser (WebAuthn, JSON form).'),
})

export const providerRedirectSchema = z.object({
  ticket: z.string().describe('Kept by the page until the browser is back.'),
  url: z.string().describe('The address at the provider to send the browser to.'),
})

export const oidcReturn = {
  ticket: ticketText,
  query: z
    .string()
    .max(MAX_QUERY_CHARS)
    .describe('Query of the address to which the provider sent the browser.'),
}

const ofEveryone = { scope: 'admin', allows: 'everyone' } as const

export const signInWays = operation('signInWays', {
  summary: 'Show the ways to sign in.',
  input: z.object({}),
  answer: {
    name: 'SignInWays',
    schema: z.object({
      signup: z.enum(SIGN_UPS).describe('Who may sign up: everyone, those who were invited, or none.'),
      providers: z.array(z.object({ id: z.string(), name: z.string() })).describe('OpenID Connect.'),
      recovery: z.boolean().describe('Whether a link to sign in with is sent by email.'),
    }),
  },
  scope: 'read',
  allows: 'everyone',
})

export const signUp = operation('signUp', {
  ...ofEveryone,
  summary: 'Sign up with a password.',
  details:
    'The answer is the same if a user with this email exists, but nothing is changed. An invitation has its own email.',
  input: z.object({
    email: emailText.optional(),
    name: userName,
    password: passwordText,
    locale: localeName.default('en'),
    invitation: secretToken.optional().describe('The token of an invitation.'),
  }),
  answer: { name: 'SignedUp', schema: z.object({ email: z.string() }) },
})

export const recover = operation('recover', {
  ...ofEveryone,
  summary: 'Ask for a link by email that signs in once, within 15 minutes.',
  details: 'The answer is the same if no user has this email, but nothing is sent.',
  input: z.object({ email: emailText }),
  answer: { name: 'RecoveryAsked', schema: z.object({ email: z.string() }) },
})

export const confirmEmail = operation('confirmEmail', {
  ...ofEveryone,
  summary: 'Confirm a new email address with the token that was sent to it.',
  input: z.object({ token: secretToken }),
  answer: { name: 'ConfirmedEmail', schema: z.object({ email: z.string() }) },
})

export const signInByPassword = operation('signInByPassword', {
  ...ofEveryone,
  summary: 'Sign in with email and password.',
  details: 'Where one-time codes are set up, the answer has a ticket for the code and no session yet.',
  input: z.object({ email: emailText, password: passwordText }),
  answer: {
    name: 'PasswordSignIn',
    schema: z.object({
      session: sessionSchema.nullable(),
      ticket: z.string().nullable().describe('For `/sign-in/totp`.'),
    }),
  },
  failures: ['sign_in_failed'],
})

export const signInByTotp = operation('signInByTotp', {
  ...ofEveryone,
  summary: 'Give the one-time code after the password.',
  input: z.object({ ticket: ticketText, code: codeText }),
  answer: { name: 'Session', schema: sessionSchema },
  failures: ['sign_in_failed'],
})

export const beginPasskeySignIn = operation('beginPasskeySignIn', {
  ...ofEveryone,
  summary: 'Begin to sign in with a passkey.',
  input: z.object({}),
  answer: { name: 'BrowserOptions', schema: browserOptionsSchema },
})

export const signInByPasskey = operation('signInByPasskey', {
  ...ofEveryone,
  summary: 'Sign in with a passkey.',
  input: z.object({ ticket: ticketText, response: browserAnswer }),
  answer: { name: 'Session', schema: sessionSchema },
  failures: ['sign_in_failed'],
})

export const beginOidcSignIn = operation('beginOidcSignIn', {
  ...ofEveryone,
  summary: 'Begin to sign in at an OpenID Connect provider.',
  input: z.object({ id: z.string(), invitation: secretToken.optional() }),
  answer: { name: 'ProviderRedirect', schema: providerRedirectSchema },
})

export const signInByOidc = operation('signInByOidc', {
  ...ofEveryone,
  summary: 'Sign in after the provider sent the browser back.',
  details: 'Creates the user where the email is verified and they may sign up.',
  input: z.object({ id: z.string(), ...oidcReturn }),
  answer: { name: 'Session', schema: sessionSchema },
  failures: ['sign_in_failed'],
})

export const lookUpInvitation = operation('lookUpInvitation', {
  summary: 'Show what an invitation invites to.',
  input: z.object({ token: secretToken }),
  answer: {
    name: 'InvitationOffer',
    schema: z.object({
      email: z.string(),
      account_id: z.string().nullable().describe('The organization; null: none.'),
      account_name: z.string().nullable(),
      role: memberRole.nullable(),
      installation_role: z.enum(INSTALLATION_ROLES).nullable(),
      expires_at: instantText,
    }),
  },
  scope: 'read',
  allows: 'everyone',
})

export const acceptInvitation = operation('acceptInvitation', {
  summary: 'Accept an invitation as an existing user.',
  input: z.object({ token: secretToken }),
  answer: { name: 'Session', schema: sessionSchema },
  scope: 'admin',
  allows: 'signed-in',
})
