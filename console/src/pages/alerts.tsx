/** Sets the balance below which an account is notified. */
import { useMutation } from '@tanstack/react-query'
import { request } from '../api/client.ts'
import { useGet } from '../api/read.ts'
import { t } from '../i18n.ts'
import { useFields } from '../ui/fields.ts'
import { AmountField, CheckField, PageForm } from '../ui/form.tsx'
import { Panel, QueryState } from '../ui/states.tsx'
import { TextLink } from '../ui/text.tsx'

interface AlertsProps {
  readonly accountId: string
  readonly mayChange: boolean
}

/** The first value when the alert is switched on. */
const USUAL_THRESHOLD = '20'

function Threshold({ accountId, threshold, mayChange }: AlertsProps & { readonly threshold: string | null }) {
  const form = useFields(`alert of ${accountId}`, {
    isOn: threshold !== null,
    balance_low: threshold ?? USUAL_THRESHOLD,
  })
  const { isOn, balance_low } = form.values
  const save = useMutation({
    meta: { done: t('Alert changed'), changes: ['/alerts'] },
    mutationFn: () =>
      request('updateAlerts', { account_id: accountId, balance_low: isOn ? balance_low : null }),
  })
  return (
    <PageForm
      sends={save}
      fields={form}
      submit={mayChange ? t('Save') : null}
      className="flex max-w-md flex-col gap-3 p-4"
      note={
        <span className="text-quiet text-sm">
          <TextLink isAmongWords to="/profile" search={(all) => all}>
            {t('Choose your emails')}
          </TextLink>
          {' · '}
          <TextLink isAmongWords to="/webhooks" search={{ account: accountId }}>
            {t('Webhooks')}
          </TextLink>
        </span>
      }
    >
      <CheckField label={t('Notify when the balance is low')} disabled={!mayChange} {...form.check('isOn')} />
      {isOn && (
        <AmountField
          label={t('Below')}
          hint={t('In credits, including what is held.')}
          readOnly={!mayChange}
          {...form.field('balance_low')}
        />
      )}
    </PageForm>
  )
}

export function Alerts(props: AlertsProps) {
  const alerts = useGet('showAlerts', { account_id: props.accountId })
  return (
    <Panel title={t('Alerts')}>
      <QueryState query={alerts} rows={2} />
      {alerts.data && <Threshold {...props} threshold={alerts.data.balance_low} />}
    </Panel>
  )
}
