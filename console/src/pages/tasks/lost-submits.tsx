/** Lost submits, for operators: work that providers may have begun although the customer got an error. */
import { useMutation } from '@tanstack/react-query'
import type { OperationPath } from '../../../../schemas/routes.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Action, Dialog, DialogButton } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { AmountField, DialogForm } from '../../ui/form.tsx'
import { Badge } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Id, NONE, Time } from '../../ui/text.tsx'
import { ReasonField } from '../reason-field.tsx'

type LostSubmit = AnswerOf<'listLostSubmits'>['data'][number]

const CHANGED: readonly OperationPath[] = ['/installation/lost-submits']

/** Renders nothing while none is open. */
export function LostSubmits({ mayChange }: { readonly mayChange: boolean }) {
  const list = useList('listLostSubmits', { state: 'open' })
  if (list.rows.length === 0 && list.error === null) return null
  const columns: Column<LostSubmit>[] = [
    { name: t('Lost'), isTime: true, cell: ({ lost_at }) => <Time at={lost_at} /> },
    { name: t('Reference'), cell: ({ id }) => <Id id={id} /> },
    {
      name: t('Status'),
      cell: ({ state }) => (
        <Badge tone="warn">{state === 'found' ? t('The provider has it') : t('Unknown')}</Badge>
      ),
    },
    { name: t('Model'), cell: ({ model }) => model },
    { name: t('Channel'), cell: ({ channel_id }) => channel_id ?? NONE },
    { name: t('Provider task'), cell: ({ upstream_id }) => <Id id={upstream_id} /> },
    { name: t('Answered'), cell: ({ reason }) => reason },
    { name: t('Next check'), isTime: true, cell: ({ next_check_at }) => <Time at={next_check_at} /> },
  ]
  if (mayChange) columns.push({ name: t('Actions'), cell: ({ id }) => <LostActions id={id} /> })
  return <ListPanel title={t('Lost submits')} list={list} columns={columns} empty={null} />
}

const LostActions = ({ id }: Pick<LostSubmit, 'id'>) => (
  <div className="flex gap-2">
    <Action
      done={t('The provider is being asked')}
      changes={CHANGED}
      run={() => request('checkLostSubmit', { id })}
    >
      {t('Ask the provider now')}
    </Action>
    <DialogButton dialog={(onClose) => <CloseDialog id={id} onClose={onClose} />}>{t('Close')}</DialogButton>
  </div>
)

function CloseDialog({ id, onClose }: { readonly id: string; onClose(): void }) {
  const form = useFields(`lost submit ${id}`, { cost: '', reason: '' })
  const { values, field } = form
  const close = useMutation({
    meta: { done: t('Lost submit closed'), changes: CHANGED },
    mutationFn: () => request('closeLostSubmit', { id, ...values, cost: values.cost || null }),
    onSuccess: onClose,
  })
  return (
    <Dialog
      title={t('Close the lost submit')}
      description={t('No account is charged. The cost counts toward the usage of the installation.')}
      onClose={onClose}
    >
      <DialogForm sends={close} fields={form} submit={t('Close')}>
        <AmountField
          label={t('Cost in credits')}
          required={false}
          hint={t('What the provider bills for it. Leave it empty if you do not know.')}
          {...field('cost')}
        />
        <ReasonField
          hint={t('What was done about it. This goes into the audit record.')}
          {...field('reason')}
        />
      </DialogForm>
    </Dialog>
  )
}
