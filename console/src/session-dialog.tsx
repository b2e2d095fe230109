/** The dialogs over a page in which a user confirms their identity, or signs in again after their session has ended. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { type Question, request } from './api/client.ts'
import { useGet } from './api/read.ts'
import { onAnnouncedSession, type Session, sessionQuery } from './api/session.ts'
import { t } from './i18n.ts'
import { PasswordField } from './pages/sign-in/fields.tsx'
import { Providers } from './pages/sign-in/frame.tsx'
import { provePasskey } from './pages/sign-in/passkey.ts'
import { SignInWays } from './pages/sign-in/ways.tsx'
import { Button } from './ui/button.tsx'
import { Dialog } from './ui/dialog.tsx'
import { Actions, Form, FormProblem } from './ui/form.tsx'
import { FormError, QueryState } from './ui/states.tsx'

interface AnswerProps {
  onSession(session: Session): void
  /** The user does not do it. */
  onRefused(): void
}

function Confirmation({ onSession, onRefused }: AnswerProps) {
  const [password, setPassword] = useState('')
  const ways = useGet('showSecurity', {})
  const byPassword = useMutation({
    mutationFn: () => request('confirmByPassword', { password }),
    onSuccess: onSession,
  })
  const byPasskey = useMutation({
    mutationFn: async () => {
      const begun = await request('beginPasskeyConfirm', {})
      return request('confirmByPasskey', await provePasskey(begun))
    },
    onSuccess: onSession,
  })
  if (!ways.isSuccess) return <QueryState query={ways} />
  const hasPassword = ways.data.password_set_at !== null
  const hasPasskey = ways.data.passkeys.length > 0
  return (
    <Form error={byPassword.error} onSubmit={() => hasPassword && byPassword.mutate()}>
      {hasPassword && <PasswordField value={password} onText={setPassword} />}
      {!hasPassword && !hasPasskey && <p>{t('Sign out, sign in again, and then try again.')}</p>}
      <FormProblem />
      <FormError error={byPasskey.error} />
      <Actions>
        <Button onClick={onRefused}>{t('Cancel')}</Button>
        {hasPasskey && (
          <Button
            kind={hasPassword ? 'plain' : 'primary'}
            isBusy={byPasskey.isPending}
            onClick={() => byPasskey.mutate()}
          >
            {t('Use a passkey')}
          </Button>
        )}
        {hasPassword && (
          <Button type="submit" kind="primary" isBusy={byPassword.isPending}>
            {t('Confirm')}
          </Button>
        )}
      </Actions>
    </Form>
  )
}

function SignInAgain({ onSession, onRefused }: AnswerProps) {
  const former = useQueryClient().getQueryData(sessionQuery.queryKey)
  const ways = useGet('signInWays', {})
  const [take] = useState(() => (session: Session) => {
    if (former == null || session.user.id === former.user.id) return onSession(session)
    // What is on the page belongs to someone else.
    sessionStorage.clear()
    location.assign('/console/')
  })
  useEffect(() => {
    const check = () => void request('showSession', {}, { isSilent: true }).then(take, () => undefined)
    addEventListener('focus', check)
    const stop = onAnnouncedSession(check)
    return () => {
      removeEventListener('focus', check)
      stop()
    }
  }, [take])
  return (
    <div className="flex flex-col gap-4">
      <SignInWays email={former?.user.email} onSession={async (session) => take(session)}>
        {ways.data && <Providers providers={ways.data.providers} next={null} />}
        <p className="text-quiet text-sm">
          {t('If you sign in by a link, open it in another tab. This page then continues.')}
        </p>
        <Button kind="quiet" onClick={onRefused}>
          {t('Sign in as someone else')}
        </Button>
      </SignInWays>
    </div>
  )
}

export function SessionDialog({ question, ...answers }: AnswerProps & { readonly question: Question }) {
  return question === 'confirm' ? (
    <Dialog
      title={t('Confirm that it is you')}
      description={t('This step requires that you have confirmed your identity within the last ten minutes.')}
      onClose={answers.onRefused}
    >
      <Confirmation {...answers} />
    </Dialog>
  ) : (
    <Dialog
      title={t('Your session has ended')}
      description={t('Sign in again to continue. What you typed is still here.')}
      // Without a session, nothing on the page works.
      onClose={() => undefined}
    >
      <SignInAgain {...answers} />
    </Dialog>
  )
}
