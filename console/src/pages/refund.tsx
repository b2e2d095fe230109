/** The refund of a charge, and the form with which an operator makes one. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { ShownRefund } from '../../../schemas/call-log/detail.ts'
import { request } from '../api/client.ts'
import { useSession } from '../api/session.ts'
import { printExact } from '../format.ts'
import { t } from '../i18n.ts'
import { Dialog, DialogButton } from '../ui/dialog.tsx'
import { useFields } from '../ui/fields.ts'
import { AmountField, DialogForm } from '../ui/form.tsx'
import { Fact } from '../ui/states.tsx'
import { Money, Time } from '../ui/text.tsx'
import { parseOrNull, useBalanceChange } from './balance-change.tsx'
import { ReasonField } from './reason-field.tsx'

export const RefundFact = ({ refund }: { readonly refund: ShownRefund | null }) =>
  refund && (
    <Fact
      name={t('Refunded')}
      value={
        <>
          <strong>
            <Money amount={refund.amount} /> {t('credits')}
          </strong>{' '}
          <Time at={refund.created_at} />
          <p className="text-quiet">{refund.reason}</p>
        </>
      }
    />
  )

interface RefundProps {
  readonly accountId: string
  /** The id of the task, or else of the request. */
  readonly refId: string
  readonly cost: string | null
  readonly refund: ShownRefund | null
  onDone(): void
}

/** A button for operators, shown if something was charged and nothing refunded yet. */
export function RefundButton({ refund, cost, ...props }: RefundProps) {
  const isOperator = useSession().user.installation_role === 'operator'
  if (!isOperator || refund !== null || cost === null || cost === '0') return null
  return (
    <DialogButton dialog={(onClose) => <RefundDialog {...props} cost={cost} onClose={onClose} />}>
      {t('Refund')}
    </DialogButton>
  )
}

interface RefundDialogProps extends Pick<RefundProps, 'accountId' | 'refId' | 'onDone'> {
  readonly cost: string
  onClose(): void
}

function RefundDialog({ accountId, refId, cost, onDone, onClose }: RefundDialogProps) {
  const form = useFields(`refund ${refId}`, { amount: cost, reason: '' })
  const { values, field } = form
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const book = useMutation({
    meta: { done: t('Refund booked'), changes: ['/accounts'] },
    mutationFn: () => request('refund', { id: accountId, ref: refId, ...values }, { idempotencyKey }),
    onSuccess: () => {
      onClose()
      onDone()
    },
  })
  const { sends, note, question } = useBalanceChange({
    accountId,
    change: parseOrNull(values.amount),
    operation: 'refund',
    amount: values.amount,
    title: t('Refund {amount} credits', { amount: printExact(values.amount) }),
    submit: t('Book it'),
    book,
  })
  return (
    <Dialog
      title={t('Refund')}
      description={t(
        'You can refund a charge once, up to its {cost} credits. The refund does not lower what the key has spent.',
        { cost: printExact(cost) },
      )}
      onClose={onClose}
    >
      <DialogForm sends={sends} fields={form} submit={t('Refund')}>
        <AmountField label={t('Credits')} {...field('amount')} />
        <ReasonField hint={t('The customer can read it.')} {...field('reason')} />
        {note}
      </DialogForm>
      {question}
    </Dialog>
  )
}
