/** Adds or changes a webhook endpoint. */

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { type EventType, listEvents } from '../../../../schemas/notifications/event.ts'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { CheckField, DialogForm, Field } from '../../ui/form.tsx'
import { type Endpoint, WEBHOOKS } from './deliveries.tsx'

interface EndpointDialogProps {
  readonly accountId: string
  /** null: a new one. */
  readonly endpoint: Endpoint | null
  onClose(): void
  /** Called with the secret of a new one. */
  onSaved(secret: string | null): void
}

export function EndpointDialog({ accountId, endpoint, onClose, onSaved }: EndpointDialogProps) {
  const [url, setUrl] = useState(endpoint?.url ?? '')
  const [description, setDescription] = useState(endpoint?.description ?? '')
  const [isAll, setAll] = useState(endpoint === null || endpoint.events === null)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(endpoint?.events))
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const events = isAll ? null : listEvents(accountId).filter((event) => chosen.has(event))
  const toggle = (event: EventType) =>
    setChosen(new Set(chosen.has(event) ? [...chosen].filter((one) => one !== event) : [...chosen, event]))
  const save = useMutation({
    meta: { changes: WEBHOOKS },
    mutationFn: async () => {
      if (endpoint !== null) {
        const changes = { id: endpoint.id, url, description, events }
        await request('updateWebhook', changes)
        return null
      }
      const wanted = { account_id: accountId, url, description, events }
      return (await request('createWebhook', wanted, { idempotencyKey })).secret
    },
    onSuccess: onSaved,
  })
  return (
    <Dialog title={endpoint === null ? t('Add an endpoint') : t('Edit the endpoint')} onClose={onClose}>
      <DialogForm
        sends={save}
        act={endpoint === null ? t('Add') : t('Save')}
        isDisabled={events !== null && events.length === 0}
        onClose={onClose}
      >
        <Field
          label={t('Address')}
          hint={t('A public http or https address of your receiver.')}
          type="url"
          name="url"
          required
          maxLength={2048}
          value={url}
          onText={setUrl}
        />
        <Field label={t('Description')} maxLength={200} value={description} onText={setDescription} />
        <fieldset className="flex flex-col gap-2">
          <legend className="mb-1 font-medium text-sm">{t('Events')}</legend>
          <CheckField label={t('All events')} checked={isAll} onCheck={setAll} />
          {!isAll &&
            listEvents(accountId).map((event) => (
              <CheckField
                key={event}
                label={event}
                checked={chosen.has(event)}
                onCheck={() => toggle(event)}
              />
            ))}
        </fieldset>
      </DialogForm>
    </Dialog>
  )
}
