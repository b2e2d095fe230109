/** The first page of an account: its balance, how long that lasts, and what was spent. */
import type { AnswerOf } from '../api/client.ts'
import { useGet, useList } from '../api/read.ts'
import { useAccount } from '../api/session.ts'
import { readViewedAccount } from '../api/viewing.ts'
import { printDay, printNumber, readZoneName, toDayStart } from '../format.ts'
import { t } from '../i18n.ts'
import { CallsChart, CostChart } from '../ui/call-charts.tsx'
import { PageHeader, Panel, QueryState, Stat } from '../ui/states.tsx'
import { Money, TextLink } from '../ui/text.tsx'
import { useCurrency } from './billing/currency.ts'
import { NamedBudgets } from './budgets/named.tsx'
import { FirstSteps } from './first-call/first-steps.tsx'
import { Requests } from './members/requests.tsx'
import { OpenAlert } from './open-alert.tsx'

type HomeData = AnswerOf<'showHome'>

const DAYS = 30
const CAP_PERCENT = 100
/** Beyond this, the spend of a few days says nothing. */
const LONGEST_RUNWAY_DAYS = 365

/** Returns the last thirty days; a day without calls is null. */
function listLastDays({ by_day }: HomeData) {
  const days = new Map(by_day.map((day) => [day.date, day]))
  const today = printDay(new Date().toISOString())
  return Array.from({ length: DAYS }, (_, index) => {
    const start = toDayStart(today, index + 1 - DAYS)
    return { at: start.getTime() / 1000, day: days.get(printDay(start.toISOString())) ?? null }
  })
}

function Runway({ runway_days }: HomeData) {
  if (runway_days === null) return t('Nothing spent')
  if (runway_days < 1) return t('Less than a day')
  if (runway_days > LONGEST_RUNWAY_DAYS) return t('More than a year')
  return t('{days, plural, one {# day} other {# days}}', { days: Math.floor(runway_days) })
}

/** Says which days the spend per day is an average of. */
function describeRates({ spend_days: days, runway_days: runway }: HomeData) {
  if (runway === null) return { lasts: t('in the last seven days'), spend: t('credits') }
  if (days === 0) return { lasts: t("at today's spend so far"), spend: t('credits, today so far') }
  if (days === 1) return { lasts: t("at yesterday's spend"), spend: t('credits, yesterday') }
  return {
    lasts: t('at the spend of the {days} days before today', { days }),
    spend: t('credits, average of the {days} days before today', { days }),
  }
}

function NearCap({ keys_near_cap: keys }: HomeData) {
  if (keys.length === 0) return null
  return (
    <Panel title={t('Keys near their cap')}>
      <ul className="divide-y divide-line">
        {keys.map(({ id, name, spent, spend_cap }) => {
          const share = Math.min(CAP_PERCENT, (Number(spent) / Number(spend_cap)) * CAP_PERCENT || 0)
          return (
            <li key={id} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2">
              <span className="min-w-32 font-medium">{name}</span>
              <meter
                className="h-2 min-w-32 flex-1"
                min={0}
                max={CAP_PERCENT}
                high={90}
                value={share}
                aria-label={t('Spent of cap')}
              />
              <span className="text-quiet text-sm">
                <Money amount={spent ?? '0'} /> / <Money amount={spend_cap ?? '0'} />
              </span>
            </li>
          )
        })}
      </ul>
    </Panel>
  )
}

export function Home() {
  const { account_id: accountId, name, role } = useAccount()
  // A call or a top-up may have changed it.
  const home = useGet(
    'showHome',
    { account_id: accountId, timezone: readZoneName() },
    { refetchOnMount: 'always' },
  )
  return (
    <>
      <PageHeader
        title={t('Home')}
        description={name}
        actions={<TextLink to="/status">{t('Which models work now')}</TextLink>}
      />
      <QueryState query={home} rows={8} />
      {home.data?.wallet && role !== 'admin' && <OpenAlert accountId={accountId} wallet={home.data.wallet} />}
      {home.data && <Figures accountId={accountId} data={home.data} />}
      {role === 'member' && (
        <div className="mt-6 flex flex-col gap-6">
          <Requests accountId={accountId} isDecider={false} mayAsk={readViewedAccount() === null} />
          <OwnBudgets accountId={accountId} />
        </div>
      )}
    </>
  )
}

/** The budgets of the user's own keys. */
function OwnBudgets({ accountId }: { readonly accountId: string }) {
  const list = useList('listBudgets', { account_id: accountId })
  return <NamedBudgets title={t('Budgets of your keys')} budgets={list.rows} />
}

interface FiguresProps {
  readonly accountId: string
  readonly data: HomeData
}

function Figures({ accountId, data }: FiguresProps) {
  const days = listLastDays(data)
  const times = days.map(({ at }) => at)
  const points = days.map(({ day }) => day)
  const notes = describeRates(data)
  const inCurrency = useCurrency(accountId)
  const total = points.reduce((sum, day) => sum + (day?.requests ?? 0), 0)
  const { wallet } = data
  return (
    <div className="flex flex-col gap-4">
      <dl className="grid gap-4 sm:grid-cols-2 xl:grid-cols-4">
        {wallet && (
          <Stat
            name={t('Balance')}
            value={<Money amount={wallet.balance} />}
            note={inCurrency(wallet.balance)}
          />
        )}
        {wallet && <Stat name={t('Lasts')} value={Runway(data)} note={notes.lasts} />}
        <Stat name={t('Spend per day')} value={<Money amount={data.spend_per_day} />} note={notes.spend} />
        {wallet ? (
          <Stat
            name={t('Held')}
            value={<Money amount={wallet.held} />}
            note={t('credits, for running tasks')}
          />
        ) : (
          <Stat name={t('Calls of your keys')} value={printNumber(total)} note={t('in the last 30 days')} />
        )}
      </dl>
      {total === 0 && wallet === null ? null : total === 0 ? (
        <FirstSteps accountId={accountId} />
      ) : (
        <div className="grid gap-4 lg:grid-cols-2">
          <CostChart title={t('Spend per day, in credits')} times={times} points={points} />
          <CallsChart title={t('Calls per day')} times={times} points={points} />
        </div>
      )}
      <NearCap {...data} />
      <NamedBudgets title={t('Budgets nearly spent')} budgets={data.budgets_near} />
    </div>
  )
}
