/** Lost submits: what providers may have begun for customers who have an error. For operators. */

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { OperationPath } from '../../../../schemas/routes.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { DialogForm, Field } from '../../ui/form.tsx'
import { Badge, ErrorState } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Id, Time } from '../../ui/text.tsx'

type LostSubmit = AnswerOf<'listLostSubmits'>['data'][number]

const PATH: OperationPath = '/installation/lost-submits'

/** Nothing where none is open. */
export function LostSubmits({ mayAct }: { readonly mayAct: boolean }) {
  const queries = useQueryClient()
  const list = useList('listLostSubmits', { state: 'open' })
  const [closing, setClosing] = useState<LostSubmit | null>(null)
  const check = useMutation({
    meta: { done: t('The provider is asked') },
    mutationFn: (id: string) => request('checkLostSubmit', { id }),
    onSettled: () => queries.invalidateQueries({ queryKey: [PATH] }),
  })
  if (list.rows.length === 0 && list.error === null) return null
  const columns: Column<LostSubmit>[] = [
    { name: t('Lost'), cell: ({ lost_at }) => <Time at={lost_at} /> },
    { name: t('Reference'), cell: ({ id }) => <Id id={id} /> },
    {
      name: t('State'),
      cell: ({ state }) => (
        <Badge tone="warn">{state === 'found' ? t('The provider has it') : t('Not known')}</Badge>
      ),
    },
    { name: t('Model'), cell: ({ model }) => model },
    { name: t('Channel'), cell: ({ channel_id }) => channel_id ?? '–' },
    {
      name: t('Task of the provider'),
      cell: ({ upstream_id }) => (upstream_id === null ? '–' : <Id id={upstream_id} />),
    },
    { name: t('Answered'), cell: ({ reason }) => reason },
    {
      name: t('Asked again'),
      cell: ({ next_check_at }) => (next_check_at === null ? '–' : <Time at={next_check_at} />),
    },
  ]
  if (mayAct)
    columns.push({
      name: t('Actions'),
      cell: (lost) => (
        <div className="flex gap-2">
          <Button isBusy={check.isPending} onClick={() => check.mutate(lost.id)}>
            {t('Ask the provider now')}
          </Button>
          <Button onClick={() => setClosing(lost)}>{t('Close')}</Button>
        </div>
      ),
    })
  return (
    <>
      <ErrorState error={check.error} />
      <ListPanel
        title={t('Lost submits')}
        caption={t('Lost submits')}
        list={list}
        columns={columns}
        empty={null}
        keyOf={({ id }) => id}
      />
      {closing && <CloseDialog lost={closing} onClose={() => setClosing(null)} />}
    </>
  )
}

function CloseDialog({ lost: { id }, onClose }: { readonly lost: LostSubmit; onClose(): void }) {
  const queries = useQueryClient()
  const [cost, setCost] = useState('')
  const [reason, setReason] = useState('')
  const close = useMutation({
    meta: { done: t('Lost submit closed') },
    mutationFn: () =>
      request('closeLostSubmit', { id, cost: cost.trim() === '' ? null : cost.trim(), reason }),
    onSuccess: onClose,
    onSettled: () => queries.invalidateQueries({ queryKey: [PATH] }),
  })
  return (
    <Dialog
      title={t('Close the lost submit')}
      description={t('No account is charged. The cost counts in the usage of the installation.')}
      onClose={onClose}
    >
      <DialogForm sends={close} act={t('Close')} onClose={onClose}>
        <Field
          label={t('Cost in credits')}
          hint={t('What the provider bills for it; empty: not known.')}
          value={cost}
          onText={setCost}
        />
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
