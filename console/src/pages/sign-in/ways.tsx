/** Sign-in by password and code, or by passkey. */
import { type UseMutationResult, useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { request } from '../../api/client.ts'
import type { Session } from '../../api/session.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Field, Form, FormProblem } from '../../ui/form.tsx'
import { FormError } from '../../ui/states.tsx'
import { EmailField, PasswordField } from './fields.tsx'
import { Or } from './frame.tsx'
import { provePasskey } from './passkey.ts'

type OnSession = (session: Session) => Promise<void>

interface SignInWaysProps {
  /** The email of the one user who may sign in; default: anyone. */
  readonly email?: string | undefined
  /** Shown below the password. */
  readonly recovery?: ReactNode
  onSession: OnSession
  /** More ways. */
  readonly children: ReactNode
}

export function SignInWays({ email, recovery, onSession, children }: SignInWaysProps) {
  const [ticket, setTicket] = useState<string | null>(null)
  if (ticket !== null)
    return <CodeForm ticket={ticket} onSession={onSession} onBack={() => setTicket(null)} />
  return (
    <>
      <PasswordForm email={email} onSession={onSession} onTicket={setTicket} />
      {recovery}
      <Or />
      <PasskeyButton onSession={onSession} />
      {children}
    </>
  )
}

interface SignInFormProps {
  readonly signIn: Pick<UseMutationResult, 'error' | 'isPending'> & { mutate(): void }
  /** Shown below the button. */
  readonly foot?: ReactNode
  readonly children: ReactNode
}

const SignInForm = ({ signIn, foot, children }: SignInFormProps) => (
  <Form className="flex flex-col gap-4" error={signIn.error} onSubmit={() => signIn.mutate()}>
    {children}
    <FormProblem />
    <Button type="submit" kind="primary" isBusy={signIn.isPending}>
      {t('Sign in')}
    </Button>
    {foot}
  </Form>
)

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
    <SignInForm
      signIn={signIn}
      foot={
        <Button kind="quiet" onClick={onBack}>
          {t('Back')}
        </Button>
      }
    >
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
    </SignInForm>
  )
}

interface PasswordFormProps extends Pick<SignInWaysProps, 'email' | 'onSession'> {
  onTicket(ticket: string): void
}

function PasswordForm({ email: only, onSession, onTicket }: PasswordFormProps) {
  const [email, setEmail] = useState(only ?? '')
  const [password, setPassword] = useState('')
  const signIn = useMutation({
    mutationFn: () => request('signInByPassword', { email, password }),
    onSuccess: async ({ session, ticket }) => {
      if (session !== null) await onSession(session)
      else if (ticket !== null) onTicket(ticket)
    },
  })
  return (
    <SignInForm signIn={signIn}>
      <EmailField
        readOnly={only !== undefined}
        // What is to be typed gets the focus.
        tabIndex={only === undefined ? 0 : -1}
        value={email}
        onText={setEmail}
      />
      <PasswordField value={password} onText={setPassword} />
    </SignInForm>
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
