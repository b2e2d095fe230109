/** What was given back of a charge, and the form by which an operator gives it back. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { ShownRefund } from '../../../schemas/call-log/detail.ts'
import { request } from '../api/client.ts'
import { useSession } from '../api/session.ts'
import { t } from '../i18n.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { AmountField, DialogForm, Field } from '../ui/form.tsx'
import { Fact } from '../ui/states.tsx'
import { Money, Time } from '../ui/text.tsx'

/** A line of a list of facts. */
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

/** A button for operators, while something was charged and nothing was given back. */
export function RefundButton({ refund, cost, ...props }: RefundProps) {
  const [isOpen, setOpen] = useState(false)
  const isOperator = useSession().user.installation_role === 'operator'
  if (!isOperator || refund !== null || cost === null || cost === '0') return null
  return (
    <div>
      <Button onClick={() => setOpen(true)}>{t('Refund')}</Button>
      {isOpen && <RefundDialog {...props} cost={cost} onClose={() => setOpen(false)} />}
    </div>
  )
}

interface RefundDialogProps extends Pick<RefundProps, 'accountId' | 'refId' | 'onDone'> {
  readonly cost: string
  onClose(): void
}

function RefundDialog({ accountId, refId, cost, onDone, onClose }: RefundDialogProps) {
  const [amount, setAmount] = useState(cost)
  const [reason, setReason] = useState('')
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const book = useMutation({
    meta: { done: t('Refund booked') },
    mutationFn: () => request('refund', { id: accountId, ref: refId, amount, reason }, { idempotencyKey }),
    onSuccess: () => {
      onClose()
      onDone()
    },
  })
  return (
    <Dialog
      title={t('Refund')}
      description={t('Once, and at most the charge of {cost} credits. The key has spent it all the same.', {
        cost,
      })}
      onClose={onClose}
    >
      <DialogForm sends={book} act={t('Refund')} onClose={onClose}>
        <AmountField label={t('Credits')} value={amount} onText={setAmount} />
        <Field
          label={t('Reason')}
          hint={t('The customer reads it.')}
          required
          maxLength={500}
          value={reason}
          onText={setReason}
        />
      </DialogForm>
    </Dialog>
  )
}
