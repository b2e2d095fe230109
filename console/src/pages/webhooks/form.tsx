/** Adds or changes a webhook endpoint. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { listEvents } from '../../../../schemas/notifications/event.ts'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { CheckField, CheckFields, DialogForm, Field } from '../../ui/form.tsx'
import { type Endpoint, WEBHOOKS } from './deliveries.tsx'

interface EndpointDialogProps {
  readonly accountId: string
  /** Null for a new one. */
  readonly endpoint: Endpoint | null
  onClose(): void
  /** Called with the secret of a new endpoint. */
  onSecret(secret: string): void
}

export function EndpointDialog({ accountId, endpoint, onClose, onSecret }: EndpointDialogProps) {
  const form = useFields(`endpoint ${endpoint?.id ?? accountId}`, {
    url: endpoint?.url ?? '',
    description: endpoint?.description ?? '',
    isAll: endpoint === null || endpoint.events === null,
    chosen: endpoint?.events ?? ([] as readonly string[]),
  })
  const { field, check, set } = form
  const { isAll, chosen, ...texts } = form.values
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const all = listEvents(accountId)
  const events = isAll ? null : all.filter((event) => chosen.includes(event))
  const save = useMutation({
    meta: { changes: WEBHOOKS },
    mutationFn: async () => {
      if (endpoint === null) {
        const wanted = { account_id: accountId, ...texts, events }
        return (await request('createWebhook', wanted, { idempotencyKey })).secret
      }
      await request('updateWebhook', { id: endpoint.id, ...texts, events })
      return null
    },
    onSuccess: (secret) => {
      onClose()
      if (secret !== null) onSecret(secret)
    },
  })
  return (
    <Dialog title={endpoint === null ? t('Add an endpoint') : t('Edit the endpoint')} onClose={onClose}>
      <DialogForm
        sends={save}
        fields={form}
        submit={endpoint === null ? t('Add') : t('Save')}
        isDisabled={events !== null && events.length === 0}
      >
        <Field
          label={t('Address')}
          hint={t('The public http or https address of your receiver.')}
          type="url"
          required
          maxLength={2048}
          {...field('url')}
        />
        <Field label={t('Description')} maxLength={200} {...field('description')} />
        <fieldset className="flex flex-col gap-2">
          <legend className="mb-1 font-medium text-sm">{t('Events')}</legend>
          <CheckField label={t('All events')} {...check('isAll')} />
          {!isAll && (
            <CheckFields
              options={all.map((event) => [event, event])}
              chosen={chosen}
              onChoose={(chosen) => set({ chosen })}
            />
          )}
        </fieldset>
      </DialogForm>
    </Dialog>
  )
}
