/** The dialog in which the user confirms their identity when a sensitive request requires it. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { onReauthentication, request, setCsrfToken } from './api/client.ts'
import { useGet } from './api/read.ts'
import { type Session, sessionQuery } from './api/session.ts'
import { t } from './i18n.ts'
import { Button } from './ui/button.tsx'
import { Dialog } from './ui/dialog.tsx'
import { Actions, Field, Form } from './ui/form.tsx'
import { FormError, QueryState } from './ui/states.tsx'

function Ways({ onConfirmed, onCancel }: { onConfirmed(session: Session): void; onCancel(): void }) {
  const [password, setPassword] = useState('')
  const ways = useGet('showSecurity', {})
  const byPassword = useMutation({
    mutationFn: () => request('confirmByPassword', { password }),
    onSuccess: onConfirmed,
  })
  const byPasskey = useMutation({
    mutationFn: async () => {
      const { provePasskey } = await import('./pages/sign-in/passkey.ts')
      const begun = await request('beginPasskeyConfirm', {})
      const proof = await provePasskey(begun)
      return request('confirmByPasskey', proof)
    },
    onSuccess: onConfirmed,
  })
  if (!ways.isSuccess) return <QueryState query={ways} />
  const hasPassword = ways.data.password_set_at !== null
  const hasPasskey = ways.data.passkeys.length > 0
  return (
    <Form onSubmit={() => hasPassword && byPassword.mutate()}>
      {hasPassword && (
        <Field
          label={t('Password')}
          name="password"
          type="password"
          autoComplete="current-password"
          required
          value={password}
          onText={setPassword}
        />
      )}
      {!hasPassword && !hasPasskey && <p>{t('Sign out, sign in again, and repeat what you did.')}</p>}
      <FormError error={byPassword.error ?? byPasskey.error} />
      <Actions>
        <Button onClick={onCancel}>{t('Cancel')}</Button>
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

/** Stands above every page. Requests wait while it is open, and are sent again once the user has confirmed. */
export function ConfirmIdentity() {
  const queries = useQueryClient()
  const [isOpen, setOpen] = useState(false)
  const waiting = useRef<((isConfirmed: boolean) => void)[]>([])
  useEffect(() => {
    onReauthentication(
      () =>
        new Promise((resolve) => {
          waiting.current.push(resolve)
          setOpen(true)
        }),
    )
    return () => onReauthentication(async () => false)
  }, [])
  const close = (isConfirmed: boolean) => {
    setOpen(false)
    for (const resolve of waiting.current.splice(0)) resolve(isConfirmed)
  }
  return (
    <Dialog
      title={t('Confirm that it is you')}
      description={t('For this, you must have confirmed your identity in the last ten minutes.')}
      isOpen={isOpen}
      onClose={() => close(false)}
    >
      <Ways
        onConfirmed={(session) => {
          setCsrfToken(session.csrf_token)
          queries.setQueryData(sessionQuery.queryKey, session)
          close(true)
        }}
        onCancel={() => close(false)}
      />
    </Dialog>
  )
}
