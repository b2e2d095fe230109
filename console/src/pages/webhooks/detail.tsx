/** One delivery in full: its body, and each attempt with its headers and its answer. */
import { request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Action } from '../../ui/dialog.tsx'
import { Badge, Fact, FactPanel, Panel, QueryState, StatusBadge } from '../../ui/states.tsx'
import { CodeBlock, Id, Time } from '../../ui/text.tsx'
import { describeStatuses, WEBHOOKS } from './deliveries.tsx'

interface DeliveryDetailProps {
  readonly id: string
  readonly mayChange: boolean
}

const printHeaders = (headers: Readonly<Record<string, string>>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')

export function DeliveryDetail({ id, mayChange }: DeliveryDetailProps) {
  const delivery = useGet('showDelivery', { id })
  if (!delivery.isSuccess) return <QueryState query={delivery} rows={8} />
  const { data } = delivery
  return (
    <>
      <FactPanel>
        <Fact name={t('Status')} value={<StatusBadge statuses={describeStatuses()} status={data.state} />} />
        <Fact name={t('Event')} value={data.type} />
        <Fact name={t('Event id')} value={<Id id={data.event_id} />} />
        <Fact name={t('Address')} value={data.url} />
        <Fact name={t('Created')} value={<Time at={data.created_at} />} />
        {data.next_at && <Fact name={t('Next attempt')} value={<Time at={data.next_at} />} />}
      </FactPanel>
      {mayChange && (
        <div>
          <Action
            done={t('The event is being sent again')}
            changes={WEBHOOKS}
            run={() => request('replayDelivery', { id })}
          >
            {t('Resend')}
          </Action>
        </div>
      )}
      <CodeBlock label={t('Body')} code={JSON.stringify(JSON.parse(data.body), null, 2)} />
      {data.attempts_made.toReversed().map((attempt, index) => (
        <Panel key={attempt.at} title={t('Attempt {number}', { number: data.attempts_made.length - index })}>
          <div className="flex flex-col gap-3 p-4">
            <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
              <Badge tone={attempt.error === null ? 'good' : 'bad'}>{attempt.status ?? t('No answer')}</Badge>
              <Time at={attempt.at} />
              <span className="tabular text-quiet">{attempt.duration_ms} ms</span>
            </p>
            {attempt.error && <p className="text-bad">{attempt.error}</p>}
            {attempt.headers && (
              <CodeBlock isWrapped label={t('Headers')} code={printHeaders(attempt.headers)} />
            )}
            {attempt.answer && <CodeBlock isWrapped label={t('Answer')} code={attempt.answer} />}
          </div>
        </Panel>
      ))}
    </>
  )
}
