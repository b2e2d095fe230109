/** Operations of passkeys: sign-in, confirmation, and those of a user. */
import * as operations from '../../../schemas/management/people/profile.ts'
import { beginPasskeySignIn, signInByPasskey } from '../../../schemas/management/people/sign-in.ts'
import { clientNetwork } from '../../../src/core/keys/address-prefix.ts'
import { generateToken, hashToken } from '../../../src/core/keys/bearer-token.ts'
import type { Identity } from '../../../src/identity/identity.ts'
import type { Ticket } from '../../../src/postgres/people/tickets.ts'
import type { Context } from '../operation.ts'
import { passkeyShape } from '../shapes.ts'
import {
  countAttempt,
  implementForPeople,
  openSession,
  passkeyOrigin,
  runCountedAttempt,
  signInFailed,
  tooLate,
} from './rules.ts'
import { renewSession, requireSignedIn, startSession } from './sessions.ts'

interface Challenge {
  readonly challenge: string
  readonly origin: string
  /** The attempt that a visitor's challenge counts as, until they have signed in. */
  readonly counted: readonly string[]
}

/** Remembers the challenge, and returns what the browser gets. */
async function challengeFor(
  { write }: Context,
  { purpose, userId }: Omit<Ticket, 'tokenHash'>,
  origin: string,
  options: { readonly challenge: string },
  counted: readonly bigint[] = [],
) {
  const ticket = generateToken()
  const data: Challenge = { challenge: options.challenge, origin, counted: counted.map(String) }
  await write((writing) => writing.tickets.create({ tokenHash: hashToken(ticket), purpose, userId }, data))
  return { ticket, options: { ...options } }
}

/** Uses up the challenge. @throws Failure `sign_in_failed` */
async function takeChallenge(
  { database }: Context,
  ticket: string,
  expected: Omit<Ticket, 'tokenHash'>,
): Promise<Challenge> {
  const kept = await database.tickets.take<Challenge>({ ...expected, tokenHash: hashToken(ticket) })
  if (kept === null) throw tooLate()
  return kept
}

const wrongPasskey = () => signInFailed('The passkey is not known here, or its answer is wrong.')

/** Returns the passkey that signed the challenge, and its next counter. @throws Failure `sign_in_failed` */
async function provePasskey(
  { database }: Context,
  { passkeys }: Identity,
  { challenge, origin }: Challenge,
  response: Readonly<Record<string, unknown>>,
) {
  const passkey = typeof response.id === 'string' ? await database.signIn.findPasskey(response.id) : null
  if (passkey === null) throw wrongPasskey()
  const counter = await passkeys.verifyAuthentication(origin, challenge, response, passkey)
  if (counter === null) throw wrongPasskey()
  return { passkey, counter }
}

const VISITING = { purpose: 'passkey', userId: null } as const
const bindConfirmation = (context: Context) =>
  ({ purpose: 'confirm', userId: requireSignedIn(context).user.id }) as const
const bindAddition = (context: Context) =>
  ({ purpose: 'new_passkey', userId: requireSignedIn(context).user.id }) as const

export const passkeyOperations = [
  implementForPeople(beginPasskeySignIn, async (context, _, { identity }) => {
    const origin = passkeyOrigin(context)
    // Apart from the attempts that send an answer.
    const address = `passkey ${clientNetwork(context.visit.address)}`
    const counted = await countAttempt(context.database, { address })
    const options = await identity.passkeys.makeAuthenticationOptions(origin)
    return challengeFor(context, VISITING, origin, options, counted)
  }),
  implementForPeople(signInByPasskey, (context, { ticket, response }, { identity }) =>
    runCountedAttempt(context, null, async () => {
      const challenge = await takeChallenge(context, ticket, VISITING)
      const { passkey, counter } = await provePasskey(context, identity, challenge, response)
      const session = await startSession(context, async (writing, hash) => {
        if (!(await writing.signIn.advancePasskey(passkey, counter))) throw wrongPasskey()
        return writing.sessions.create(openSession(context, hash, passkey.userId))
      })
      await context.database.attempts.takeBack(challenge.counted.map(BigInt))
      return session
    }),
  ),
  implementForPeople(operations.beginPasskeyConfirm, async (context, _, { identity }) => {
    const origin = passkeyOrigin(context)
    const options = await identity.passkeys.makeAuthenticationOptions(origin)
    return challengeFor(context, bindConfirmation(context), origin, options)
  }),
  implementForPeople(operations.confirmByPasskey, (context, { ticket, response }, { identity }) =>
    runCountedAttempt(context, requireSignedIn(context).user.id, async () => {
      const challenge = await takeChallenge(context, ticket, bindConfirmation(context))
      const { passkey, counter } = await provePasskey(context, identity, challenge, response)
      if (passkey.userId !== requireSignedIn(context).user.id) throw wrongPasskey()
      return renewSession(context, true, async (writing) => {
        if (!(await writing.signIn.advancePasskey(passkey, counter))) throw wrongPasskey()
      })
    }),
  ),
  implementForPeople(operations.beginPasskey, async (context, _, { identity }) => {
    const { user } = requireSignedIn(context)
    const origin = passkeyOrigin(context)
    const { passkeys } = await context.database.signIn.listMethods(user.id)
    const options = await identity.passkeys.makeRegistrationOptions(origin, user, passkeys)
    return challengeFor(context, bindAddition(context), origin, options)
  }),
  implementForPeople(operations.addPasskey, async (context, { ticket, response, name }, { identity }) => {
    const { user } = requireSignedIn(context)
    const { challenge, origin } = await takeChallenge(context, ticket, bindAddition(context))
    const credential = await identity.passkeys.verifyRegistration(origin, challenge, response)
    if (credential === null) throw wrongPasskey()
    return passkeyShape(
      await context.write((writing) => writing.signIn.addPasskey({ ...credential, userId: user.id, name })),
    )
  }),
  implementForPeople(operations.renamePasskey, async (context, { id, name }) => {
    const { user } = requireSignedIn(context)
    return passkeyShape(await context.write((writing) => writing.signIn.renamePasskey(user.id, id, name)))
  }),
  implementForPeople(operations.removePasskey, async (context, { id }) => {
    const { user } = requireSignedIn(context)
    await context.write((writing) => writing.signIn.removePasskey(user.id, id))
    return { removed: true as const }
  }),
]
