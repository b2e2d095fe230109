/** The dialog that creates a key. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { request } from '../../api/client.ts'
import { parseFieldTime } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { AmountField, CheckField, DialogForm, SelectField } from '../../ui/form.tsx'
import { type Budget, namePeriods } from '../budgets/bar.tsx'
import { ExpiresField, ModelsField, ProgramNameField } from '../token-fields.tsx'
import { LimitFields } from './limits.tsx'
import type { Created } from './status.tsx'
import { type KeyValues, NO_LIMITS, parseLimits } from './values.ts'

interface NewKey extends Omit<KeyValues, 'spend_cap'> {
  /** Credits for each period; empty for no budget. */
  readonly budget: string
  readonly period: Budget['period']
}

const NEW_KEY: NewKey = {
  name: '',
  allowed_models: null,
  budget: '',
  period: 'month',
  expires_at: '',
  account_logs: false,
  ...NO_LIMITS,
}

interface CreateDialogProps {
  readonly accountId: string
  onClose(): void
  onCreated(key: Created): void
}

/** Creates the key, and its budget if there is one. Sent again with the same idempotency key, it is the same key. */
async function createKey(accountId: string, values: NewKey, idempotencyKey: string): Promise<Created> {
  const { name, account_logs, allowed_models: models, expires_at, budget, period } = values
  const key = await request(
    'createKey',
    {
      ...parseLimits(values),
      account_id: accountId,
      name,
      account_logs,
      allowed_models: models && [...models],
      expires_at: parseFieldTime(expires_at),
    },
    { idempotencyKey },
  )
  if (budget !== '') {
    const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone
    await request('putBudget', { account_id: accountId, key_id: key.id, amount: budget, period, timezone })
  }
  return key
}

export function CreateDialog({ accountId, onClose, onCreated }: CreateDialogProps) {
  const form = useFields(`new key of ${accountId}`, NEW_KEY)
  const { values, field, check, set } = form
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const creating = useMutation({
    meta: { changes: ['/keys', '/budgets'] },
    mutationFn: () => createKey(accountId, values, idempotencyKey),
    onSuccess: (key) => {
      onClose()
      onCreated(key)
    },
  })
  return (
    <Dialog title={t('Create a key')} onClose={onClose}>
      <DialogForm sends={creating} fields={form} submit={t('Create')}>
        <ProgramNameField {...field('name')} />
        <ModelsField value={values.allowed_models} onChoose={(allowed_models) => set({ allowed_models })} />
        <div className="grid grid-cols-1 gap-3 sm:grid-cols-2">
          <AmountField
            label={t('Budget in credits')}
            hint={t('Leave empty for no budget.')}
            required={false}
            {...field('budget')}
          />
          <SelectField label={t('Period')} options={Object.entries(namePeriods())} {...field('period')} />
        </div>
        <ExpiresField {...field('expires_at')} />
        <LimitFields field={field} />
        <CheckField label={t('May read the logs of the whole account')} {...check('account_logs')} />
      </DialogForm>
    </Dialog>
  )
}
