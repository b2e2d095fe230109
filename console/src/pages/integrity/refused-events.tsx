/** Payment events that contradict a payment: an operator resolves each at the provider and closes it with a reason. */
import { useMutation } from '@tanstack/react-query'
import { type AnswerOf, request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Dialog, DialogButton } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { DialogForm } from '../../ui/form.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Code, Id, Time } from '../../ui/text.tsx'
import { ReasonField } from '../reason-field.tsx'

type RefusedEvent = AnswerOf<'listRefusedEvents'>['data'][number]

/** Renders nothing while no event is open. */
export function RefusedEvents({ mayChange }: { readonly mayChange: boolean }) {
  const list = useList('listRefusedEvents', { state: 'open' })
  if (list.rows.length === 0 && list.error === null) return null
  const columns: Column<RefusedEvent>[] = [
    { name: t('Received'), isTime: true, cell: ({ received_at }) => <Time at={received_at} /> },
    { name: t('Event'), cell: ({ id }) => <Id id={id} /> },
    { name: t('Kind'), cell: ({ type }) => <Code>{type}</Code> },
    { name: t('Account'), cell: ({ account_id }) => <Id id={account_id} /> },
    { name: t('Payment'), cell: ({ payment_id }) => <Id id={payment_id} /> },
    { name: t('Contradiction'), cell: ({ refusal }) => refusal },
  ]
  if (mayChange)
    columns.push({
      name: t('Actions'),
      cell: ({ id }) => (
        <DialogButton dialog={(onClose) => <CloseDialog id={id} onClose={onClose} />}>
          {t('Close')}
        </DialogButton>
      ),
    })
  return <ListPanel title={t('Refused payment events')} list={list} columns={columns} empty={null} />
}

function CloseDialog({ id, onClose }: { readonly id: string; onClose(): void }) {
  const form = useFields(`refused event ${id}`, { reason: '' })
  const close = useMutation({
    meta: { done: t('Payment event closed'), changes: ['/installation/refused-payment-events'] },
    mutationFn: () => request('closeRefusedEvent', { id, ...form.values }),
    onSuccess: onClose,
  })
  return (
    <Dialog
      title={t('Close the event')}
      description={t(
        'Nothing is booked. If the payment must go back, refund it at the provider first: after this, verify no longer reports {id}.',
        { id },
      )}
      onClose={onClose}
    >
      <DialogForm sends={close} fields={form} submit={t('Close')}>
        <ReasonField
          hint={t('What was done about it. This goes into the audit record.')}
          {...form.field('reason')}
        />
      </DialogForm>
    </Dialog>
  )
}
