/** Which models work now, and how they did in the last 30 days. Everybody may read it, without a session. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Fragment, type ReactNode } from 'react'
import { MODEL_STATUSES, type ServiceStatus } from '../../../../schemas/status.ts'
import { sessionQuery } from '../../api/session.ts'
import { statusQuery } from '../../api/status.ts'
import { readZoneName } from '../../format.ts'
import { t } from '../../i18n.ts'
import { PageHeader, Panel, QueryState, StatusBadge, type Statuses } from '../../ui/states.tsx'
import { Time } from '../../ui/text.tsx'
import { DayBars } from './days.tsx'
import { Notes } from './notes.tsx'

type Model = ServiceStatus['models'][number]

const nameStatuses = (): Statuses<Model['status']> => ({
  failing: ['bad', t('Failing')],
  degraded: ['warn', t('Degraded')],
  operational: ['good', t('Operational')],
  no_recent_calls: ['neutral', t('No recent calls')],
})

const TONES = {
  failing: 'border-bad bg-bad-wash text-bad',
  degraded: 'border-warn bg-warn-wash text-warn',
  operational: 'border-good bg-good-wash text-good',
  no_recent_calls: 'border-line bg-surface text-quiet',
} as const

function summarize({ status, models }: ServiceStatus): string {
  const count = models.filter((model) => model.status === status).length
  if (status === 'failing')
    return t('{count, plural, one {# model is failing} other {# models are failing}}', { count })
  if (status === 'degraded')
    return t('{count, plural, one {# model fails some calls} other {# models fail some calls}}', {
      count,
    })
  if (status === 'operational') return t('All models that were called lately work')
  return t('There were no calls in the last 15 minutes')
}

const ModelRow = ({ id, display_name: name, status, success_rate, days }: Model) => (
  <li className="grid gap-x-6 gap-y-2 px-4 py-3 sm:grid-cols-[minmax(0,1fr)_minmax(0,1.4fr)]">
    <div className="min-w-0">
      <h3 className="flex flex-wrap items-center gap-x-2 gap-y-1">
        <span className="min-w-0 break-words font-medium">{name}</span>
        <StatusBadge statuses={nameStatuses()} status={status} />
      </h3>
      <p className="mt-0.5 break-words text-quiet text-sm">
        {id !== name && `${id} · `}
        {success_rate === null
          ? t('No calls in 15 minutes')
          : t('{rate}% of calls succeeded in 15 minutes', { rate: success_rate })}
      </p>
    </div>
    <DayBars model={name} days={days} />
  </li>
)

const sortModels = (models: readonly Model[]): Model[] =>
  [...models].sort((a, b) => MODEL_STATUSES.indexOf(a.status) - MODEL_STATUSES.indexOf(b.status))

function Measured({ data }: { readonly data: ServiceStatus }) {
  return (
    <>
      <p role="status" className={`rounded-md border p-3 font-medium text-lg ${TONES[data.status]}`}>
        {summarize(data)}
      </p>
      <Notes notes={data.notes} part="now" />
      <Panel title={t('Models')}>
        <p className="border-line border-b px-4 py-2 text-quiet text-sm">
          {t(
            'The share of calls that succeeded in the last 15 minutes, and on each of the last 30 days (UTC).',
          )}
        </p>
        <ul className="divide-y divide-line">
          {sortModels(data.models).map((model) => (
            <ModelRow key={model.id} {...model} />
          ))}
        </ul>
      </Panel>
      <Notes notes={data.notes} part="past" />
      <p className="text-quiet text-sm">
        {t('Measured at')} <Time at={data.measured_at} />.{' '}
        {t('All times are in the time zone {zone}.', { zone: readZoneName() })}
      </p>
    </>
  )
}

/** The frame of the page for those without a session. */
const Alone = ({ children }: { readonly children: ReactNode }) => (
  <main className="mx-auto w-full max-w-4xl px-4 py-6">
    <p className="mb-6 flex items-center justify-between gap-3">
      <span className="font-semibold text-accent">Tollgate</span>
      <Link to="/sign-in" className="text-accent text-sm hover:underline">
        {t('Sign in')}
      </Link>
    </p>
    {children}
  </main>
)

export function Status() {
  const status = useQuery(statusQuery)
  const { data: session } = useQuery(sessionQuery)
  const Frame = session ? Fragment : Alone
  return (
    <Frame>
      <PageHeader title={t('Status')} description={t('Which models work now.')} />
      {status.data ? (
        <div className="flex flex-col gap-4">
          <Measured data={status.data} />
        </div>
      ) : (
        <QueryState query={status} rows={8} />
      )}
    </Frame>
  )
}
