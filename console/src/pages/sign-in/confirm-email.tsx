/** Confirms a new email address. The token is behind `#`, so that no server sees it. */
import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { FormError } from '../../ui/states.tsx'
import { Frame } from './frame.tsx'

const TOKEN = /^#token=([\w-]+)$/

export function ConfirmEmail() {
  const [token] = useState(() => TOKEN.exec(location.hash)?.[1] ?? '')
  const confirm = useMutation({
    mutationFn: () => request('confirmEmail', { token }),
  })
  return (
    <Frame title={t('Confirm your email address')}>
      {confirm.data ? (
        <p role="status">{t('From now on you sign in with {email}.', { email: confirm.data.email })}</p>
      ) : (
        <Button kind="primary" isBusy={confirm.isPending} onClick={() => confirm.mutate()}>
          {t('Confirm the address')}
        </Button>
      )}
      <FormError error={confirm.error} />
      <Link to="/" className="text-accent text-sm underline">
        {t('Go to the console')}
      </Link>
    </Frame>
  )
}
