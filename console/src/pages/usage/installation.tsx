/** The usage of all accounts and the margin, by day and by account, model, key or channel. */

import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { parseCredits, printCredits } from '../../../../schemas/money.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { keepShown } from '../../api/read.ts'
import { printNumber, readZoneName, toZoneWindow } from '../../format.ts'
import { t } from '../../i18n.ts'
import { EmptyState, Panel, Stat } from '../../ui/states.tsx'
import type { Column } from '../../ui/table.tsx'
import { Money } from '../../ui/text.tsx'
import { nameCsvColumns, nameDimensions, SUM_COLUMNS, UsageFrame, usePeriod } from './frame.tsx'
import { Report } from './report.tsx'

const route = getRouteApi('/signed-in/usage')
const DIMENSIONS = ['account', 'model', 'key', 'channel'] as const
const COLUMNS = [...SUM_COLUMNS, 'requests_with_cost', 'revenue', 'upstream_cost', 'margin'] as const
type Dimension = (typeof DIMENSIONS)[number]

type Usage = AnswerOf<'showInstallationUsage'>
type Row = Usage['rows'][number]

const isDimension = (text: string | undefined): text is Dimension => DIMENSIONS.includes(text as Dimension)

const findId = ({ key_id, account_id, model, channel_id }: Row): string =>
  key_id ?? account_id ?? model ?? channel_id ?? ''

/** Adds the revenue of the calls whose provider cost is known, which are those of the margin. */
const addRevenue = <Sums extends Row | Usage['total']>(sums: Sums) => ({
  ...sums,
  revenue:
    sums.margin === null || sums.upstream_cost === null
      ? null
      : printCredits(parseCredits(sums.margin) + parseCredits(sums.upstream_cost)),
})

/** Adds the sums of the days to those of the groups. */
const joinDays = (groups: Usage, days: Usage) => ({
  ...groups,
  total: addRevenue(groups.total),
  groups: groups.rows.map((row) => ({ ...addRevenue(row), id: findId(row), name: row.name ?? findId(row) })),
  by_day: days.rows.map((row) => ({ ...row, date: row.day ?? '', group: '' })),
})
type Joined = ReturnType<typeof joinDays>
type Group = Joined['groups'][number]

/** Returns one record per group. */
const toLines = ({ groups }: Joined, by: Dimension) => [
  [by, 'name', ...(by === 'key' ? ['account'] : []), ...nameCsvColumns(COLUMNS)],
  ...groups.map((group) => [
    group.id,
    group.name,
    ...(by === 'key' ? [group.account_id ?? ''] : []),
    ...COLUMNS.map((column) => group[column]),
  ]),
]

/** Returns the columns of what the operator takes, pays and keeps, for calls whose provider cost is known. */
const marginColumns = (): Column<Group>[] => [
  { name: t('Revenue'), isNumber: true, cell: ({ revenue }) => <Money amount={revenue} /> },
  { name: t('Provider cost'), isNumber: true, cell: ({ upstream_cost }) => <Money amount={upstream_cost} /> },
  { name: t('Margin'), isNumber: true, cell: ({ margin }) => <Money amount={margin} /> },
]

function MarginStats({ revenue, upstream_cost, margin, requests_with_cost }: Joined['total']) {
  const note = t(
    'credits, {count, plural, one {# call with a known provider cost} other {# calls with a known provider cost}}',
    {
      count: requests_with_cost,
    },
  )
  return (
    <>
      <Stat name={t('Revenue')} value={<Money amount={revenue} />} note={note} />
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
  const query = useQuery({
    queryKey: ['installation usage', by, period],
    queryFn: async ({ signal }) => {
      const window = { ...toZoneWindow(period), timezone: readZoneName() }
      const read = (group: Dimension | 'day') =>
        request('showInstallationUsage', { by: group, ...window } as never, { signal })
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
    <UsageFrame
      by={by}
      dimensions={DIMENSIONS}
      query={keepShown(query)}
      toLines={(data) => toLines(data, by)}
    >
      {(data) =>
        by === 'channel' && data.groups.length === 0 ? (
          <Panel>
            <EmptyState title={t('No call in this period went to a channel whose cost is known.')}>
              {t(
                'To see revenue, provider cost and margin by channel, give each channel its cost in the catalog.',
              )}
            </EmptyState>
          </Panel>
        ) : (
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
            {by === 'channel' && data.groups.length > 0 && (
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
        )
      }
    </UsageFrame>
  )
}
