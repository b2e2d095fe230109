/** Sign-in by link, password and code, passkey or provider. The token of a link is behind `#`: no server sees it. */

import { useMutation } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import type { Session } from '../../api/session.ts'
import { t } from '../../i18n.ts'
import { FormError, Skeleton } from '../../ui/states.tsx'
import { Code } from '../../ui/text.tsx'
import { Frame, Providers, useOpened } from './frame.tsx'
import { SignInWays } from './ways.tsx'

const route = getRouteApi('/before-sign-in/sign-in')

const LINK = /^#link=([\w-]+)$/

interface LinkSignInProps {
  readonly link: string
  onSession(session: Session): Promise<void>
}

function LinkSignIn({ link, onSession }: LinkSignInProps) {
  const isSent = useRef(false)
  const signIn = useMutation({
    mutationFn: () => request('signInByLink', { token: link }),
    onSuccess: (session) => onSession(session),
  })
  const { mutate } = signIn
  useEffect(() => {
    // A link works once, and React runs effects twice in development.
    if (isSent.current) return
    isSent.current = true
    mutate()
  }, [mutate])
  return signIn.error ? <FormError error={signIn.error} /> : <Skeleton rows={2} />
}

/** Returns the token of the link that was opened, and removes it from the address. */
function takeOpenedLink(): string | null {
  const [, token = null] = LINK.exec(location.hash) ?? []
  if (token !== null) history.replaceState(null, '', location.pathname + location.search)
  return token
}

export function SignIn() {
  const { next = '/' } = route.useSearch()
  const onSession = useOpened(next)
  const [link] = useState(takeOpenedLink)
  const ways = useGet('signInWays', {})
  return (
    <Frame title={t('Sign in to Tollgate')}>
      {link !== null && <LinkSignIn link={link} onSession={onSession} />}
      <SignInWays
        onSession={onSession}
        recovery={
          ways.data?.recovery && (
            <Link to="/recovery" className="text-accent text-sm underline">
              {t('Forgot your password?')}
            </Link>
          )
        }
      >
        {ways.data && <Providers providers={ways.data.providers} next={next} />}
        {ways.data?.signup === 'open' && (
          <p className="text-quiet text-sm">
            {t('New here?')}{' '}
            <Link to="/sign-up" className="text-accent underline">
              {t('Create an account')}
            </Link>
          </p>
        )}
        <p className="text-sm">
          <Link to="/status" className="text-accent underline">
            {t('Which models work now')}
          </Link>
        </p>
        <p className="text-quiet text-sm">
          {t('Cannot sign in? Ask an operator for a link. On the machine of the service, run:')}{' '}
          <Code>tollgate user link</Code>
        </p>
      </SignInWays>
    </Frame>
  )
}
