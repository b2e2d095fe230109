/** The page to which an OpenID Connect provider sends the browser back. */
import { useMutation } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { request, setCsrfToken } from '../../api/client.ts'
import { announceSession, type Session } from '../../api/session.ts'
import { t } from '../../i18n.ts'
import { ErrorState, Skeleton } from '../../ui/states.tsx'
import { Frame, useOpened } from './frame.tsx'
import { forgetInvitation, takeOpenedInvitation, takeWay } from './remembered.ts'

const route = getRouteApi('/before-sign-in/sign-in/oidc/$id')

/** Returns whether the user opened an invitation that still has to be accepted, as existing users do. */
async function hasOpenInvitation({ user }: Session): Promise<boolean> {
  const token = takeOpenedInvitation()
  if (token === null) return false
  const looked = request('lookUpInvitation', { token })
  return looked.then(
    ({ email }) => email === user.email.toLowerCase(),
    () => false,
  )
}

export function ProviderReturn() {
  const { id } = route.useParams()
  const navigate = useNavigate()
  const isSent = useRef(false)
  const onSession = useOpened()
  const finish = useMutation({
    mutationFn: async () => {
      const way = takeWay()
      const query = location.search.slice(1)
      // The code is used up and must not stay in the history.
      history.replaceState(null, '', location.pathname)
      if (way === null) throw new Error(t('The sign-in did not start in this tab. Start again.'))
      const answer = { id, ticket: way.ticket, query }
      if (way.isConnecting) {
        await request('addIdentity', answer)
        await navigate({ to: way.next ?? '/', replace: true })
        return
      }
      const session = await request('signInByOidc', answer)
      if (way.next === null) {
        announceSession()
        window.close()
        return
      }
      setCsrfToken(session.csrf_token)
      if (await hasOpenInvitation(session)) return onSession(session, '/sign-up')
      forgetInvitation()
      await onSession(session, way.next)
    },
  })
  const { mutate } = finish
  useEffect(() => {
    if (isSent.current) return
    isSent.current = true
    mutate()
  }, [mutate])
  return (
    <Frame title={t('Sign in to Tollgate')}>
      {finish.error ? (
        <>
          <ErrorState error={finish.error} />
          <Link to="/sign-in" className="text-accent underline">
            {t('Sign in another way')}
          </Link>
        </>
      ) : finish.isSuccess ? (
        <p role="status">{t('You are signed in. You can close this window.')}</p>
      ) : (
        <Skeleton rows={2} />
      )}
    </Frame>
  )
}
