/** The balance below which an account is notified. */
import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { request } from '../api/client.ts'
import { useGet } from '../api/read.ts'
import { t } from '../i18n.ts'
import { Button } from '../ui/button.tsx'
import { CheckField, Field, Form } from '../ui/form.tsx'
import { FormError, Panel, QueryState } from '../ui/states.tsx'

interface ThresholdProps {
  readonly accountId: string
  readonly threshold: string | null
  readonly mayChange: boolean
}

/** Offered where the alert is switched on. */
const USUAL_THRESHOLD = '20'

function Threshold({ accountId, threshold, mayChange }: ThresholdProps) {
  const [isOn, setOn] = useState(threshold !== null)
  const [amount, setAmount] = useState(threshold ?? USUAL_THRESHOLD)
  const save = useMutation({
    meta: { done: t('Alert changed'), changes: ['/alerts'] },
    mutationFn: () => request('updateAlerts', { account_id: accountId, balance_low: isOn ? amount : null }),
  })
  return (
    <Form className="flex max-w-md flex-col gap-3 p-4" onSubmit={() => mayChange && save.mutate()}>
      <CheckField
        label={t('Notify when the balance is low')}
        checked={isOn}
        disabled={!mayChange}
        onCheck={setOn}
      />
      {isOn && (
        <Field
          label={t('Below')}
          hint={t('Credits, what is held included.')}
          inputMode="decimal"
          required
          readOnly={!mayChange}
          value={amount}
          onText={setAmount}
        />
      )}
      <FormError error={save.error} />
      <div className="flex flex-wrap items-center gap-3">
        {mayChange && (
          <Button type="submit" isBusy={save.isPending}>
            {t('Save')}
          </Button>
        )}
        <span className="text-quiet text-sm">
          <Link to="/profile" search={(all) => all} className="text-accent underline">
            {t('Choose your emails')}
          </Link>
          {' · '}
          <Link to="/webhooks" search={{ account: accountId }} className="text-accent underline">
            {t('Webhooks')}
          </Link>
        </span>
      </div>
    </Form>
  )
}

export function Alerts({
  accountId,
  mayChange,
}: {
  readonly accountId: string
  readonly mayChange: boolean
}) {
  const alerts = useGet('showAlerts', { account_id: accountId })
  return (
    <Panel title={t('Alerts')}>
      <QueryState query={alerts} rows={2} />
      {alerts.data && (
        <Threshold accountId={accountId} threshold={alerts.data.balance_low} mayChange={mayChange} />
      )}
    </Panel>
  )
}
