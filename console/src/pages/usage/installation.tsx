/** The usage of all accounts and the margin, by day and by account, model, key or channel. */

import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { type AnswerOf, request } from '../../api/client.ts'
import { printNumber } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Stat } from '../../ui/states.tsx'
import type { Column } from '../../ui/table.tsx'
import { Money } from '../../ui/text.tsx'
import { nameDimensions, SUM_COLUMNS, UsageFrame, usePeriod } from './frame.tsx'
import { Report } from './report.tsx'

const route = getRouteApi('/signed-in/usage')
const DIMENSIONS = ['account', 'model', 'key', 'channel'] as const
const COLUMNS = [...SUM_COLUMNS, 'upstream_cost', 'margin', 'requests_with_cost'] as const
type Dimension = (typeof DIMENSIONS)[number]

type Usage = AnswerOf<'showInstallationUsage'>
type Row = Usage['rows'][number]

const isDimension = (text: string | undefined): text is Dimension => DIMENSIONS.includes(text as Dimension)

const findId = ({ key_id, account_id, model, channel_id }: Row): string =>
  key_id ?? account_id ?? model ?? channel_id ?? ''

/** Adds the sums of the days to those of the groups. */
const joinDays = (groups: Usage, days: Usage) => ({
  ...groups,
  groups: groups.rows.map((row) => ({ ...row, id: findId(row), name: row.name ?? findId(row) })),
  by_day: days.rows.map((row) => ({ ...row, date: row.day ?? '', group: '' })),
})
type Joined = ReturnType<typeof joinDays>
type Group = Joined['groups'][number]

/** Returns one record per group. */
const toLines = ({ groups }: Joined, by: Dimension) => [
  [by, 'name', ...(by === 'key' ? ['account'] : []), ...COLUMNS],
  ...groups.map((group) => [
    group.id,
    group.name,
    ...(by === 'key' ? [group.account_id ?? ''] : []),
    ...COLUMNS.map((column) => group[column]),
  ]),
]

/** Returns the columns of what the operator pays and keeps, for calls with a known cost. */
const marginColumns = (): Column<Group>[] => [
  { name: t('Provider cost'), isNumber: true, cell: ({ upstream_cost }) => <Money amount={upstream_cost} /> },
  { name: t('Margin'), isNumber: true, cell: ({ margin }) => <Money amount={margin} /> },
]

function MarginStats({ upstream_cost, margin, requests_with_cost }: Usage['total']) {
  const note = t('of {count} calls with a known cost', { count: printNumber(requests_with_cost) })
  return (
    <>
      <Stat name={t('Provider cost')} value={<Money amount={upstream_cost} />} note={note} />
      <Stat name={t('Margin')} value={<Money amount={margin} />} note={note} />
    </>
  )
}

/** The cost of work that providers may have begun although the customer got an error. */
const LostStat = ({ submits, upstream_cost }: Usage['lost_submits']) => (
  <Stat
    name={t('Cost of lost submits')}
    value={<Money amount={upstream_cost} />}
    note={t('{count} submits, included in no other total', { count: printNumber(submits) })}
  />
)

export function InstallationUsage() {
  const { by: given } = route.useSearch()
  const by = isDimension(given) ? given : 'account'
  const period = usePeriod()
  const usage = useQuery({
    queryKey: ['installation usage', by, period],
    queryFn: async ({ signal }) => {
      const read = (group: Dimension | 'day') =>
        request('showInstallationUsage', { by: group, ...period } as never, { signal })
      const [groups, days] = await Promise.all([read(by), read('day')])
      return joinDays(groups, days)
    },
  })
  const renderName = ({ id, name, account_id: account }: Group) => {
    if (account === undefined) return name
    const search = { account, ...period }
    const className = 'text-accent hover:underline'
    return by === 'key' ? (
      <Link to="/calls" search={{ ...search, key_id: id }} className={className}>
        {name}
      </Link>
    ) : (
      <Link to="/usage" search={search} className={className}>
        {name}
      </Link>
    )
  }
  return (
    <UsageFrame by={by} dimensions={DIMENSIONS} query={usage} toLines={(data) => toLines(data, by)}>
      {(data) => (
        <>
          <Report
            usage={data}
            title={nameDimensions()[by]}
            renderName={renderName}
            columns={data.total.upstream_cost === null ? [] : marginColumns()}
            stats={
              <>
                {data.total.upstream_cost !== null && <MarginStats {...data.total} />}
                {data.lost_submits.submits > 0 && <LostStat {...data.lost_submits} />}
              </>
            }
          />
          {by === 'channel' && (
            <p className="mt-3 text-quiet">
              {t(
                'The list and the totals include only calls whose channel has a cost; the charts include all calls.',
              )}
            </p>
          )}
          {data.has_more && (
            <p className="mt-3 text-quiet">
              {t('The first {count} rows are shown. The totals include all rows.', {
                count: printNumber(data.groups.length),
              })}
            </p>
          )}
        </>
      )}
    </UsageFrame>
  )
}
