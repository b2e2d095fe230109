/** Sign-up, open or by invitation; an existing user accepts the invitation. */
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { sessionQuery } from '../../api/session.ts'
import { t, useLanguage } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Field, Form, FormProblem } from '../../ui/form.tsx'
import { FormError, Skeleton } from '../../ui/states.tsx'
import { EmailField, NewPasswordField } from './fields.tsx'
import { Frame, Or, Providers, useOpened } from './frame.tsx'
import { forgetInvitation, takeOpenedInvitation } from './remembered.ts'

interface SignUpProps {
  /** The email of the invitation; null if the user enters their own. */
  readonly invitedEmail: string | null
  readonly invitation: string | undefined
  /** The page to go to afterwards. */
  readonly next: string
}

function SignUpForm({ invitedEmail, invitation, next }: SignUpProps) {
  const locale = useLanguage()
  const onSession = useOpened(next)
  const [email, setEmail] = useState(invitedEmail ?? '')
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const create = useMutation({
    mutationFn: async () => {
      const person = { name, password, locale } as const
      const way = invitation === undefined ? { email } : { invitation }
      const made = await request('signUp', { ...person, ...way })
      const { session } = await request('signInByPassword', { email: made.email, password })
      return session
    },
    onSuccess: async (session) => {
      if (session === null) return
      forgetInvitation()
      await onSession(session)
    },
  })
  return (
    <Form className="flex flex-col gap-4" error={create.error} onSubmit={() => create.mutate()}>
      <EmailField readOnly={invitedEmail !== null} value={email} onText={setEmail} />
      <Field
        label={t('Name')}
        name="name"
        autoComplete="name"
        required
        maxLength={100}
        value={name}
        onText={setName}
      />
      <NewPasswordField label={t('Password')} name="password" value={password} onText={setPassword} />
      <FormProblem />
      <Button type="submit" kind="primary" isBusy={create.isPending}>
        {t('Create an account')}
      </Button>
    </Form>
  )
}

interface AcceptProps extends Pick<SignUpProps, 'next'> {
  readonly invitation: string
  readonly userName: string
}

function Accept({ invitation, userName, next }: AcceptProps) {
  const onSession = useOpened(next)
  const accept = useMutation({
    mutationFn: () => request('acceptInvitation', { token: invitation }),
    onSuccess: async (session) => {
      forgetInvitation()
      await onSession(session)
    },
  })
  return (
    <>
      <FormError error={accept.error} />
      <Button kind="primary" isBusy={accept.isPending} onClick={() => accept.mutate()}>
        {t('Accept as {name}', { name: userName })}
      </Button>
    </>
  )
}

export function SignUp() {
  const [invitation] = useState(takeOpenedInvitation)
  const session = useQuery(sessionQuery)
  const ways = useGet('signInWays', {})
  const offer = useQuery({
    queryKey: ['invitation', invitation],
    enabled: invitation !== null,
    queryFn: () => request('lookUpInvitation', { token: invitation ?? '' }),
  })
  // An accepted invitation leads to what it is for.
  const next = offer.data?.account_id ? `/?account=${offer.data.account_id}` : '/'
  const title = offer.data?.account_name
    ? t('Join {name}', { name: offer.data.account_name })
    : t('Create an account')
  if (session.isPending || ways.isPending || (invitation !== null && offer.isPending))
    return (
      <Frame title={title}>
        <Skeleton />
      </Frame>
    )
  const failed = session.error ?? ways.error ?? offer.error
  if (failed || !ways.data) return <Frame title={title}>{failed && <FormError error={failed} />}</Frame>
  if (invitation !== null && session.data)
    return (
      <Frame title={title} description={session.data.user.email}>
        <Accept invitation={invitation} next={next} userName={session.data.user.name} />
      </Frame>
    )
  if (invitation === null && ways.data.signup !== 'open')
    return (
      <Frame
        title={title}
        description={t('You need an invitation to sign up. Open the link that you were given.')}
      >
        {null}
      </Frame>
    )
  return (
    <Frame title={title}>
      <SignUpForm next={next} invitedEmail={offer.data?.email ?? null} invitation={invitation ?? undefined} />
      {ways.data.providers.length > 0 && <Or />}
      <Providers providers={ways.data.providers} next="/" invitation={invitation ?? undefined} />
      <p className="text-quiet text-sm">
        {t('Already have an account?')}{' '}
        <Link
          to="/sign-in"
          search={invitation === null ? {} : { next: '/sign-up' }}
          className="text-accent underline"
        >
          {t('Sign in')}
        </Link>
      </p>
    </Frame>
  )
}
