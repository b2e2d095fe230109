/** Sign-in by link, password and code, passkey or provider. The token of a link is behind `#`: no server sees it. */

import { useMutation } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import type { Session } from '../../api/session.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Field, Form } from '../../ui/form.tsx'
import { FormError, Skeleton } from '../../ui/states.tsx'
import { Code } from '../../ui/text.tsx'
import { EmailField } from './fields.tsx'
import { Frame, Or, Providers, useOpened } from './frame.tsx'
import { provePasskey } from './passkey.ts'

const route = getRouteApi('/before-sign-in/sign-in')

const LINK = /^#link=([\w-]+)$/

type OnSession = (session: Session) => Promise<void>

function LinkSignIn({ link, onSession }: { readonly link: string; onSession: OnSession }) {
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

function CodeForm({
  ticket,
  onSession,
  onBack,
}: {
  readonly ticket: string
  onSession: OnSession
  onBack(): void
}) {
  const [code, setCode] = useState('')
  const signIn = useMutation({
    mutationFn: () => request('signInByTotp', { ticket, code }),
    onSuccess: (session) => onSession(session),
  })
  return (
    <Form className="flex flex-col gap-4" onSubmit={() => signIn.mutate()}>
      <Field
        label={t('One-time code')}
        hint={t('From your authenticator app, or one of your recovery codes.')}
        name="code"
        autoComplete="one-time-code"
        autoFocus
        required
        maxLength={40}
        value={code}
        onText={setCode}
      />
      <FormError error={signIn.error} />
      <Button type="submit" kind="primary" isBusy={signIn.isPending}>
        {t('Sign in')}
      </Button>
      <Button kind="quiet" onClick={onBack}>
        {t('Back')}
      </Button>
    </Form>
  )
}

function PasswordForm({ onSession, onTicket }: { onSession: OnSession; onTicket(ticket: string): void }) {
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const signIn = useMutation({
    mutationFn: () => request('signInByPassword', { email, password }),
    onSuccess: async ({ session, ticket }) => {
      if (session !== null) await onSession(session)
      else if (ticket !== null) onTicket(ticket)
    },
  })
  return (
    <Form className="flex flex-col gap-4" onSubmit={() => signIn.mutate()}>
      <EmailField value={email} onText={setEmail} />
      <Field
        label={t('Password')}
        name="password"
        type="password"
        autoComplete="current-password"
        required
        value={password}
        onText={setPassword}
      />
      <FormError error={signIn.error} />
      <Button type="submit" kind="primary" isBusy={signIn.isPending}>
        {t('Sign in')}
      </Button>
    </Form>
  )
}

function PasskeyButton({ onSession }: { onSession: OnSession }) {
  const signIn = useMutation({
    mutationFn: async () => {
      const begun = await request('beginPasskeySignIn', {})
      return request('signInByPasskey', await provePasskey(begun))
    },
    onSuccess: (session) => onSession(session),
  })
  return (
    <>
      <Button isBusy={signIn.isPending} onClick={() => signIn.mutate()}>
        {t('Sign in with a passkey')}
      </Button>
      <FormError error={signIn.error} />
    </>
  )
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
  const [ticket, setTicket] = useState<string | null>(null)
  const ways = useGet('signInWays', {})
  const title = t('Sign in to Tollgate')
  if (ticket !== null)
    return (
      <Frame title={title}>
        <CodeForm ticket={ticket} onSession={onSession} onBack={() => setTicket(null)} />
      </Frame>
    )
  return (
    <Frame title={title}>
      {link !== null && <LinkSignIn link={link} onSession={onSession} />}
      <PasswordForm onSession={onSession} onTicket={setTicket} />
      {ways.data?.recovery && (
        <Link to="/recovery" className="text-accent text-sm underline">
          {t('Forgot your password?')}
        </Link>
      )}
      <Or />
      <PasskeyButton onSession={onSession} />
      {ways.data && <Providers providers={ways.data.providers} next={next} />}
      {ways.data?.signup === 'open' && (
        <p className="text-quiet text-sm">
          {t('New here?')}{' '}
          <Link to="/sign-up" className="text-accent underline">
            {t('Create an account')}
          </Link>
        </p>
      )}
      <p className="text-quiet text-sm">
        {t('Cannot sign in? Ask an operator for a link. On the machine of the service, run:')}{' '}
        <Code>tollgate user link</Code>
      </p>
    </Frame>
  )
}
