/** Payment events that contradict a payment: an operator deals with each at the provider, and closes it with a reason. */

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { OperationPath } from '../../../../schemas/routes.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { DialogForm, Field } from '../../ui/form.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Id, Time } from '../../ui/text.tsx'

type RefusedEvent = AnswerOf<'listRefusedEvents'>['data'][number]

const PATH: OperationPath = '/installation/refused-payment-events'

/** Nothing where no event is open. */
export function RefusedEvents({ mayAct }: { readonly mayAct: boolean }) {
  const list = useList('listRefusedEvents', { state: 'open' })
  const [closing, setClosing] = useState<RefusedEvent | null>(null)
  if (list.rows.length === 0 && list.error === null) return null
  const columns: Column<RefusedEvent>[] = [
    { name: t('Received'), cell: ({ received_at }) => <Time at={received_at} /> },
    { name: t('Event'), cell: ({ id }) => <Id id={id} /> },
    { name: t('Kind'), cell: ({ type }) => <code className="font-mono text-xs">{type}</code> },
    { name: t('Account'), cell: ({ account_id: id }) => (id === null ? '–' : <Id id={id} />) },
    { name: t('Payment'), cell: ({ payment_id: id }) => (id === null ? '–' : <Id id={id} />) },
    { name: t('Contradiction'), cell: ({ refusal }) => refusal },
  ]
  if (mayAct)
    columns.push({
      name: t('Actions'),
      cell: (event) => <Button onClick={() => setClosing(event)}>{t('Close')}</Button>,
    })
  return (
    <>
      <ListPanel
        title={t('Refused payment events')}
        caption={t('Refused payment events')}
        list={list}
        columns={columns}
        empty={null}
        keyOf={({ id }) => id}
      />
      {closing && <CloseDialog event={closing} onClose={() => setClosing(null)} />}
    </>
  )
}

function CloseDialog({ event: { id }, onClose }: { readonly event: RefusedEvent; onClose(): void }) {
  const queries = useQueryClient()
  const [reason, setReason] = useState('')
  const close = useMutation({
    meta: { done: t('Payment event closed') },
    mutationFn: () => request('closeRefusedEvent', { id, reason }),
    onSuccess: onClose,
    onSettled: () => queries.invalidateQueries({ queryKey: [PATH] }),
  })
  return (
    <Dialog
      title={t('Close the event')}
      description={t(
        'Nothing is booked. Refund such a payment at the provider first; verify names {id} no more.',
        {
          id,
        },
      )}
      onClose={onClose}
    >
      <DialogForm sends={close} act={t('Close')} onClose={onClose}>
        <Field
          label={t('Reason')}
          hint={t('What was done about it. The audit record has it.')}
          required
          maxLength={500}
          value={reason}
          onText={setReason}
        />
      </DialogForm>
    </Dialog>
  )
}
