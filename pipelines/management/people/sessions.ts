/** Operations of signing in and out. */
import type { Session, SignedIn } from '../../../schemas/accounts/people.ts'
import { Failure } from '../../../schemas/failure.ts'
import { showSession, signInByLink, signOut } from '../../../schemas/management/people/sessions.ts'
import { deriveCsrfToken, generateToken, hashToken } from '../../../src/core/keys/bearer-token.ts'
import type { Repositories } from '../../../src/postgres/database.ts'
import { type Context, implement, type ReadContext } from '../operation.ts'
import { userShape } from '../shapes.ts'

const SESSION_MAX_MS = 30 * 24 * 60 * 60 * 1000

const sessionShape = ({ session, user, access }: SignedIn, token: string) => ({
  id: session.id,
  user: userShape(user),
  accounts: access.map(({ accountId, name, kind, role }) => ({ account_id: accountId, name, kind, role })),
  csrf_token: deriveCsrfToken(token),
  confirmed_at: session.confirmedAt.toISOString(),
  expires_at: new Date(session.createdAt.getTime() + SESSION_MAX_MS).toISOString(),
})

/**
 * Opens a session by `open`, sets its cookie, and returns the answer. The session that the browser had before ends:
 * a token from before the sign-in is worth nothing after it.
 */
export async function startSession(
  { database, write, visit, caller }: Context,
  open: (database: Repositories, tokenHash: Buffer) => Promise<Session>,
) {
  const token = generateToken()
  await write(async (writing) => {
    const session = await open(writing, hashToken(token))
    const former = caller.signedIn?.session
    if (former !== undefined) await writing.sessions.end(former.userId, { only: former.id })
    return session
  })
  visit.setToken(token)
  return sessionShape((await database.sessions.find(hashToken(token)))!, token)
}

/** Returns the session of the caller. @throws Failure `permission_denied` for a management token */
export function requireSignedIn({ caller }: ReadContext): SignedIn {
  if (caller.signedIn !== null) return caller.signedIn
  throw new Failure('permission_denied', 'Only a signed-in user may do this, not a management token.')
}

/**
 * Gives the session another token, in the transaction of what is done beside, and returns the session.
 * @param isConfirmed the user has just proved who they are
 */
export async function renewSession(
  context: Context,
  isConfirmed: boolean,
  work: (database: Repositories) => Promise<unknown> = async () => {},
) {
  const { database, write, visit } = context
  const token = generateToken()
  const { session } = requireSignedIn(context)
  await write(async (writing) => {
    await work(writing)
    await writing.sessions.rotate(session.id, hashToken(token), { isConfirmed })
  })
  visit.setToken(token)
  return sessionShape((await database.sessions.find(hashToken(token)))!, token)
}

export const sessionOperations = [
  implement(showSession, async (context) => sessionShape(requireSignedIn(context), context.visit.token!)),
  implement(signInByLink, (context, { token }) =>
    startSession(context, (database, hash) => {
      const { userAgent, address } = context.visit
      return database.sessions.signInByLink(hashToken(token), { tokenHash: hash, userAgent, address })
    }),
  ),
  implement(signOut, async (context) => {
    const { session } = requireSignedIn(context)
    await context.write((database) => database.sessions.end(session.userId, { only: session.id }))
    context.visit.setToken(null)
    return { signed_out: true as const }
  }),
]
