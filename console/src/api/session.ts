/** The session: who is signed in, and which account they use. */

import { queryOptions, useSuspenseQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import type { OperationPath } from '../../../schemas/routes.ts'
import { type AnswerOf, ApiError, isSessionEnd, request, setCsrfToken } from './client.ts'
import { readViewedAccount } from './viewing.ts'

export type Session = AnswerOf<'showSession'>

/** The session; null for someone who has not signed in. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  staleTime: 60_000,
  // Another tab may have renewed or ended it.
  refetchOnWindowFocus: 'always',
  queryFn: async ({ client, queryKey, signal }): Promise<Session | null> => {
    try {
      const session = await request('showSession', {}, { signal })
      setCsrfToken(session.csrf_token)
      return session
    } catch (error) {
      // If a session has ended, the error leads to the sign-in.
      if (isSessionEnd(error as Error) && !client.getQueryData(queryKey)) return null
      throw error
    }
  },
})

const SESSIONS = 'tollgate-sessions'

/** Tells the other tabs that a session has begun or ended. */
export function announceSession(): void {
  const channel = new BroadcastChannel(SESSIONS)
  channel.postMessage(null)
  channel.close()
}

/** Calls `onSession` when another tab begins or ends a session, until the function that it returns is called. */
export function onAnnouncedSession(onSession: () => void): () => void {
  const channel = new BroadcastChannel(SESSIONS)
  channel.onmessage = onSession
  return () => channel.close()
}

/** Returns the session on a page that needs one: the router sends everyone else to the sign-in. */
function useSignedIn(): Session {
  const { data } = useSuspenseQuery(sessionQuery)
  if (data === null) throw new ApiError(401, 'not_signed_in', 'Sign in first.', null)
  return data
}

/** Returns the session for a page. An operator who views an account has no role in the installation there. */
export function useSession(): Session {
  const session = useSignedIn()
  return readViewedAccount() === null
    ? session
    : { ...session, user: { ...session.user, installation_role: null } }
}

type Member = Session['accounts'][number]

/** The account of a page and the user's role in it. An auditor reads everything and changes nothing. */
export interface Access extends Omit<Member, 'role'> {
  readonly role: Member['role'] | 'auditor'
}

/**
 * Returns the account of the page: the one that the URL names, else the user's own. Operators may do in any account what
 * its owner may, auditors read it.
 * @throws ApiError `not_found` for an account that the user may not open
 */
export function useAccount(): Access {
  const { accounts, user } = useSignedIn()
  const { account } = useSearch({ strict: false })
  const own = account === undefined ? accounts[0] : accounts.find(({ account_id }) => account_id === account)
  const { installation_role: installation } = user
  const isForeign = own === undefined && installation !== null
  const { data: foreign } = useSuspenseQuery({
    queryKey: ['/accounts' satisfies OperationPath, isForeign ? account : null],
    queryFn: ({ signal }) =>
      isForeign && account ? request('showAccount', { id: account }, { signal }) : null,
  })
  const isView = readViewedAccount() !== null
  if (own !== undefined) {
    if (isView) return { ...own, role: 'auditor' }
    return installation === 'operator' ? { ...own, role: 'owner' } : own
  }
  if (foreign === null)
    throw new ApiError(
      404,
      'not_found',
      `You have no access to the account ${account}. Sign in as one of its members, or open the console without it.`,
      null,
    )
  const { id, name, kind } = foreign
  return { account_id: id, name, kind, role: isView || installation === 'auditor' ? 'auditor' : 'owner' }
}
