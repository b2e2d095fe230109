/** Operations of signing in at an OpenID Connect provider, and of connecting one. */
import { MAX_NAME_CHARS } from '../../../schemas/accounts/account.ts'
import type { User } from '../../../schemas/accounts/people.ts'
import type { OidcProvider } from '../../../schemas/config/file.ts'
import { Failure } from '../../../schemas/failure.ts'
import { addIdentity, beginIdentity, removeIdentity } from '../../../schemas/management/people/profile.ts'
import { beginOidcSignIn, signInByOidc } from '../../../schemas/management/people/sign-in.ts'
import { generateToken, hashToken } from '../../../src/core/keys/bearer-token.ts'
import type { OidcCheck, OidcPerson } from '../../../src/identity/oidc.ts'
import type { Repositories } from '../../../src/postgres/database.ts'
import type { Ticket } from '../../../src/postgres/people/tickets.ts'
import type { Context } from '../operation.ts'
import {
  findProvider,
  implementForPeople,
  joinOrganization,
  openSession,
  type PeopleServices,
  readEmail,
  runCountedAttempt,
  signInFailed,
  signUpIsOff,
  tooLate,
} from './rules.ts'
import { requireSignedIn, startSession } from './sessions.ts'

interface OidcTicket {
  readonly provider: string
  readonly check: OidcCheck
  readonly invitation: string | null
}

/** Cleans a provider's name for a user: drops control characters and broken characters, and cuts it to the limit. */
const toUserName = (name: string): string =>
  name
    .replace(/\p{Cc}/gu, '')
    .trim()
    .slice(0, MAX_NAME_CHARS)
    .replace(/\p{Cs}/gu, '')

/** Returns the user who is the person at the provider; creates or connects one where that is allowed. */
async function findUser(
  writing: Repositories,
  { config }: PeopleServices,
  { provider, invitation }: OidcTicket,
  { subject, verifiedEmail, name }: OidcPerson,
): Promise<User> {
  const known = await writing.signIn.findIdentity(provider, subject)
  if (known !== null) return known
  if (verifiedEmail === null)
    throw signInFailed('The provider does not confirm your email address: confirm it there first.')
  const email = readEmail(verifiedEmail)
  const { signup, trial_credit: credit } = config()
  let user = await writing.users.findByEmail(email)
  if (user === null) {
    if (signup === 'off' || (signup === 'invite' && invitation === null)) throw signUpIsOff()
    const offer = invitation === null ? null : await writing.invitations.redeem(hashToken(invitation))
    if (offer !== null && offer.email !== email)
      throw signInFailed(`The invitation is for another email address than ${email}.`)
    const installationRole = offer?.installationRole ?? null
    user = await writing.users.create({
      email,
      name: name === null ? email : toUserName(name) || email,
      installationRole,
      credit,
    })
    if (offer !== null) await joinOrganization(writing, offer, user.accountId)
  } else if (await writing.signIn.hasWay(user.id)) {
    // Where sign-up is open, another person may have signed up with this email.
    throw signInFailed(
      'A user with your email address signs in another way. Sign in that way, and connect the provider in your profile.',
    )
  }
  await writing.signIn.addIdentity(user.id, provider, subject)
  return user
}

const away = ({ name }: OidcProvider, reason: string): Failure =>
  new Failure('service_unavailable', `${name} does not answer: try again later, or sign in another way.`, {
    internal: reason,
  })

/** Remembers the way to the provider, and returns where to send the browser. */
async function begin(
  context: Context,
  services: PeopleServices,
  { id, invitation = null }: { readonly id: string; readonly invitation?: string | null | undefined },
  { purpose, userId }: Omit<Ticket, 'tokenHash'>,
) {
  const { visit, write } = context
  const { oidc } = services.identity
  const provider = findProvider(services, id)
  if (!URL.canParse(visit.origin))
    throw new Failure('invalid_request', 'Sign-in at a provider needs a browser.')
  const redirectUri = `${new URL(visit.origin).origin}/console/sign-in/oidc/${id}`
  let begun: Awaited<ReturnType<typeof oidc.begin>>
  try {
    begun = await oidc.begin(provider, redirectUri)
  } catch (error) {
    throw away(provider, oidc.explainAway(error) ?? String(error))
  }
  const ticket = generateToken()
  const data: OidcTicket = { provider: id, check: begun.check, invitation }
  await write((writing) => writing.tickets.create({ tokenHash: hashToken(ticket), purpose, userId }, data))
  return { ticket, url: begun.url }
}

/**
 * Returns whom the provider sent back, and the remembered way.
 * @throws Failure `sign_in_failed`; `service_unavailable` where the provider does not answer
 */
async function finish(
  context: Context,
  services: PeopleServices,
  { id, ticket, query }: { readonly id: string; readonly ticket: string; readonly query: string },
  expected: Omit<Ticket, 'tokenHash'>,
) {
  const { oidc } = services.identity
  const provider = findProvider(services, id)
  const kept = await context.database.tickets.take<OidcTicket>({ ...expected, tokenHash: hashToken(ticket) })
  if (kept?.provider !== id) throw tooLate()
  try {
    return { kept, person: await oidc.finish(provider, kept.check, query) }
  } catch (error) {
    const reason = oidc.explainAway(error)
    if (reason !== null) throw away(provider, reason)
    throw signInFailed(`${provider.name} did not confirm the sign-in: try again.`, error)
  }
}

const VISITING = { purpose: 'oidc', userId: null } as const
const bindIdentity = (context: Context) =>
  ({ purpose: 'new_identity', userId: requireSignedIn(context).user.id }) as const

export const oidcOperations = [
  implementForPeople(beginOidcSignIn, (context, input, services) =>
    begin(context, services, input, VISITING),
  ),
  implementForPeople(signInByOidc, (context, input, services) =>
    runCountedAttempt(context, null, async () => {
      const { kept, person } = await finish(context, services, input, VISITING)
      return startSession(context, async (writing, hash) => {
        const user = await findUser(writing, services, kept, person)
        if (!user.enabled) throw signInFailed('This user is disabled: ask an operator.')
        return writing.sessions.create(openSession(context, hash, user.id))
      })
    }),
  ),
  implementForPeople(beginIdentity, (context, input, services) =>
    begin(context, services, input, bindIdentity(context)),
  ),
  implementForPeople(addIdentity, async (context, input, services) => {
    const { person } = await finish(context, services, input, bindIdentity(context))
    const { user } = requireSignedIn(context)
    await context.write((writing) => writing.signIn.addIdentity(user.id, input.id, person.subject))
    return { id: input.id }
  }),
  implementForPeople(removeIdentity, async (context, { id }) => {
    const { user } = requireSignedIn(context)
    await context.write((writing) => writing.signIn.removeIdentity(user.id, id))
    return { removed: true as const }
  }),
]
