/** Operations of the signed-in user on themselves: profile, ways to sign in, sessions. */
import { z } from 'zod'
import { instantText, operation, toPageSchema } from '../operation.ts'
import { sessionSchema, userSchema } from './sessions.ts'
import {
  browserAnswer,
  browserOptionsSchema,
  codeText,
  emailText,
  localeName,
  oidcReturn,
  passwordText,
  providerRedirectSchema,
  ticketText,
  userName,
} from './sign-in.ts'

const MAX_PASSKEY_NAME_CHARS = 60

const passkeyName = z.string().trim().min(1).max(MAX_PASSKEY_NAME_CHARS)
const id = z.string()
const nothing = z.object({})

const passkeySchema = z.object({
  id,
  name: z.string(),
  created_at: instantText,
  last_used_at: instantText.nullable(),
})

const ofUser = { scope: 'admin', allows: 'signed-in' } as const

export const updateProfile = operation('updateProfile', {
  ...ofUser,
  summary: 'Change your name or language. What is left out stays the same.',
  input: z.object({ name: userName.optional(), locale: localeName.optional() }),
  answer: { name: 'User', schema: userSchema },
})

export const changeEmail = operation('changeEmail', {
  ...ofUser,
  summary:
    'Change your email address. The change takes effect when the link sent to the new address is opened, within 24 hours.',
  details: 'The answer is the same if another user has the address, but nothing is sent.',
  input: z.object({ email: emailText }),
  answer: { name: 'EmailAsked', schema: z.object({ email: z.string() }) },
  isSensitive: true,
})

export const showSecurity = operation('showSecurity', {
  ...ofUser,
  summary: 'Show your ways to sign in.',
  input: nothing,
  answer: {
    name: 'SignInMethods',
    schema: z.object({
      may_change_email: z.boolean().describe('Whether the installation sends the link that this takes.'),
      password_set_at: instantText.nullable(),
      totp_confirmed_at: instantText.nullable().describe('null: no one-time codes are asked for.'),
      recovery_codes: z.number().int().describe('How many are unused.'),
      passkeys: z.array(passkeySchema),
      providers: z.array(z.object({ id, name: z.string(), connected_at: instantText })),
    }),
  },
})

export const confirmByPassword = operation('confirmByPassword', {
  ...ofUser,
  summary: 'Confirm with your password that it is you. Sensitive operations are allowed for ten minutes.',
  details: 'The session continues with a new token and a new CSRF token.',
  input: z.object({ password: passwordText }),
  answer: { name: 'Session', schema: sessionSchema },
})

export const beginPasskeyConfirm = operation('beginPasskeyConfirm', {
  ...ofUser,
  summary: 'Begin to confirm with a passkey.',
  input: nothing,
  answer: { name: 'BrowserOptions', schema: browserOptionsSchema },
})

export const confirmByPasskey = operation('confirmByPasskey', {
  ...ofUser,
  summary: 'Confirm with a passkey that it is you.',
  input: z.object({ ticket: ticketText, response: browserAnswer }),
  answer: { name: 'Session', schema: sessionSchema },
  failures: ['sign_in_failed'],
})

export const setPassword = operation('setPassword', {
  ...ofUser,
  summary: 'Set or change your password. All other sessions end.',
  input: z.object({ password: passwordText }),
  answer: { name: 'Session', schema: sessionSchema },
  isSensitive: true,
})

export const beginPasskey = operation('beginPasskey', {
  ...ofUser,
  summary: 'Begin to add a passkey.',
  input: nothing,
  answer: { name: 'BrowserOptions', schema: browserOptionsSchema },
  isSensitive: true,
})

export const addPasskey = operation('addPasskey', {
  ...ofUser,
  summary: 'Add a passkey.',
  input: z.object({ ticket: ticketText, response: browserAnswer, name: passkeyName }),
  answer: { name: 'Passkey', schema: passkeySchema },
  isSensitive: true,
  status: 201,
  failures: ['sign_in_failed'],
})

export const renamePasskey = operation('renamePasskey', {
  ...ofUser,
  summary: 'Rename a passkey.',
  input: z.object({ id, name: passkeyName }),
  answer: { name: 'Passkey', schema: passkeySchema },
})

const removedSchema = z.object({ removed: z.literal(true) })

export const removePasskey = operation('removePasskey', {
  ...ofUser,
  summary: 'Remove a passkey, unless it is the last way to sign in.',
  input: z.object({ id }),
  answer: { name: 'Removed', schema: removedSchema },
  isSensitive: true,
})

export const beginIdentity = operation('beginIdentity', {
  ...ofUser,
  summary: 'Begin to connect an OpenID Connect provider.',
  input: z.object({ id }),
  answer: { name: 'ProviderRedirect', schema: providerRedirectSchema },
  isSensitive: true,
})

export const addIdentity = operation('addIdentity', {
  ...ofUser,
  summary: 'Connect the provider after it sent the browser back.',
  input: z.object({ id, ...oidcReturn }),
  answer: { name: 'ConnectedProvider', schema: z.object({ id }) },
  isSensitive: true,
  failures: ['sign_in_failed'],
})

export const removeIdentity = operation('removeIdentity', {
  ...ofUser,
  summary: 'Disconnect a provider, unless it is the last way to sign in.',
  input: z.object({ id }),
  answer: { name: 'Removed', schema: removedSchema },
  isSensitive: true,
})

export const enrolTotp = operation('enrolTotp', {
  ...ofUser,
  summary: 'Begin to set up one-time codes.',
  input: nothing,
  answer: {
    name: 'TotpSecret',
    schema: z.object({
      secret: z.string().describe('In base 32, for typing into an authenticator app.'),
      uri: z.string().describe('`otpauth://...`, for a QR code.'),
    }),
  },
  isSensitive: true,
})

const recoveryCodesSchema = z.object({
  recovery_codes: z.array(z.string()).describe('Each takes the place of a code once. Shown once.'),
})

export const confirmTotp = operation('confirmTotp', {
  ...ofUser,
  summary: 'Turn on one-time codes with a first code. All other sessions end.',
  input: z.object({ code: codeText }),
  answer: { name: 'RecoveryCodes', schema: recoveryCodesSchema },
  isSensitive: true,
  failures: ['sign_in_failed'],
})

export const renewRecoveryCodes = operation('renewRecoveryCodes', {
  ...ofUser,
  summary: 'Replace the recovery codes.',
  input: nothing,
  answer: { name: 'RecoveryCodes', schema: recoveryCodesSchema },
  isSensitive: true,
})

export const removeTotp = operation('removeTotp', {
  ...ofUser,
  summary: 'Turn off one-time codes.',
  input: nothing,
  answer: { name: 'Removed', schema: removedSchema },
  isSensitive: true,
})

export const listSessions = operation('listSessions', {
  ...ofUser,
  summary: 'List your sessions.',
  input: nothing,
  answer: {
    name: 'SessionList',
    schema: toPageSchema(
      z.object({
        id,
        is_current: z.boolean(),
        user_agent: z.string(),
        address: z.string(),
        created_at: instantText,
        last_seen_at: instantText,
      }),
    ),
  },
})

export const endSession = operation('endSession', {
  ...ofUser,
  summary: 'End one of your sessions.',
  input: z.object({ id }),
  answer: { name: 'Removed', schema: removedSchema },
})

export const endOtherSessions = operation('endOtherSessions', {
  ...ofUser,
  summary: 'End all your sessions except this one.',
  input: nothing,
  answer: { name: 'EndedSessions', schema: z.object({ ended: z.number().int() }) },
})
