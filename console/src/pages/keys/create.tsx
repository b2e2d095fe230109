/** The dialog that creates a key. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { request } from '../../api/client.ts'
import { parseFieldTime } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { CheckField, DialogForm, useFields } from '../../ui/form.tsx'
import { ExpiresField, ProgramNameField } from '../token-fields.tsx'
import { LimitFields } from './limits.tsx'
import type { Created } from './status.tsx'
import { NO_LIMITS, parseLimits } from './texts.ts'

interface CreateDialogProps {
  readonly accountId: string
  onClose(): void
  onCreated(key: Created): void
}

export function CreateDialog({ accountId, onClose, onCreated }: CreateDialogProps) {
  const { texts, field } = useFields({ name: '', expires: '', ...NO_LIMITS })
  const [accountLogs, setAccountLogs] = useState(false)
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const creating = useMutation({
    meta: { changes: ['/keys'] },
    mutationFn: () => {
      const wanted = { account_id: accountId, name: texts.name, account_logs: accountLogs }
      const limits = { ...parseLimits(texts), expires_at: parseFieldTime(texts.expires) }
      return request('createKey', { ...wanted, ...limits }, { idempotencyKey })
    },
    onSuccess: (key) => {
      onClose()
      onCreated(key)
    },
  })
  return (
    <Dialog title={t('Create a key')} onClose={onClose}>
      <DialogForm sends={creating} submit={t('Create')} onClose={onClose}>
        <ProgramNameField {...field('name')} />
        <ExpiresField {...field('expires')} />
        <LimitFields field={field} />
        <CheckField
          label={t('May read the logs of the whole account')}
          checked={accountLogs}
          onCheck={setAccountLogs}
        />
      </DialogForm>
    </Dialog>
  )
}
