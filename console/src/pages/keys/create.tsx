/** Creates a key. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { instantOfField } from '../../time-zone.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { CheckField, DialogForm, Field } from '../../ui/form.tsx'
import { ExpiresField } from '../expires-field.tsx'
import { LimitFields } from './limits.tsx'
import type { Created } from './state.tsx'
import { limitsOf, NO_LIMITS } from './texts.ts'

interface CreateDialogProps {
  readonly accountId: string
  onClose(): void
  onCreated(key: Created): void
}

export function CreateDialog({ accountId, onClose, onCreated }: CreateDialogProps) {
  const [name, setName] = useState('')
  const [expires, setExpires] = useState('')
  const [accountLogs, setAccountLogs] = useState(false)
  const [limits, setLimits] = useState(NO_LIMITS)
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const creating = useMutation({
    meta: { changes: ['/keys'] },
    mutationFn: () =>
      request(
        'createKey',
        {
          account_id: accountId,
          name,
          account_logs: accountLogs,
          ...limitsOf(limits),
          expires_at: instantOfField(expires),
        },
        { idempotencyKey },
      ),
    onSuccess: (key) => {
      onClose()
      onCreated(key)
    },
  })
  return (
    <Dialog title={t('Create a key')} onClose={onClose}>
      <DialogForm sends={creating} act={t('Create')} onClose={onClose}>
        <Field
          label={t('Name')}
          hint={t('What uses it, such as a program or a machine.')}
          value={name}
          required
          maxLength={100}
          onText={setName}
        />
        <ExpiresField value={expires} onText={setExpires} />
        <LimitFields texts={limits} onChange={setLimits} />
        <CheckField
          label={t('May read the logs of the whole account')}
          checked={accountLogs}
          onCheck={setAccountLogs}
        />
      </DialogForm>
    </Dialog>
  )
}
