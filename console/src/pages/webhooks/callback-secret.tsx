/** The secret that signs the callbacks of an account's tasks. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { FormError, Panel } from '../../ui/states.tsx'

interface CallbackSecretProps {
  readonly accountId: string
  onSecret(secret: string): void
}

export function CallbackSecret({ accountId, onSecret }: CallbackSecretProps) {
  const onSuccess = ({ secret }: { readonly secret: string }) => onSecret(secret)
  const reveal = useMutation({
    mutationFn: () => request('revealCallbackSecret', { account_id: accountId }),
    onSuccess,
  })
  const [attempt, setAttempt] = useState(() => crypto.randomUUID())
  const rotate = useMutation({
    meta: { done: t('Secret rotated: for 24 hours the former one signs as well') },
    mutationFn: () => request('rotateCallbackSecret', { account_id: accountId }, { idempotencyKey: attempt }),
    onSuccess: (rotated) => {
      setAttempt(crypto.randomUUID())
      onSuccess(rotated)
    },
  })
  return (
    <Panel title={t('Callbacks of tasks')}>
      <div className="flex flex-col gap-3 p-4">
        <p className="text-quiet">
          {t('One secret signs what is posted to the callback_url of every task of the account.')}
        </p>
        <FormError error={reveal.error ?? rotate.error} />
        <div className="flex flex-wrap gap-2">
          <Button isBusy={reveal.isPending} onClick={() => reveal.mutate()}>
            {t('Show the secret')}
          </Button>
          <Button isBusy={rotate.isPending} onClick={() => rotate.mutate()}>
            {t('Rotate secret')}
          </Button>
        </div>
      </div>
    </Panel>
  )
}
