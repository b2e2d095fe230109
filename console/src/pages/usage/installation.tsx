/** What all accounts used: by day and by account, model or key. */
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { showInstallationUsage } from '../../../../schemas/management/calls/usage.ts'
import type { AnswerOf } from '../../../../schemas/management/operation.ts'
import { get } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { dimensionNames, SUM_COLUMNS, UsageFrame, usePeriod } from './frame.tsx'
import { Report } from './report.tsx'

const route = getRouteApi('/signed-in/usage')
const PATH = '/installation/usage'
const DIMENSIONS = ['account', 'model', 'key'] as const
type Dimension = (typeof DIMENSIONS)[number]

type Usage = AnswerOf<typeof showInstallationUsage>
type Row = Usage['rows'][number]

const isDimension = (text: string | undefined): text is Dimension => DIMENSIONS.includes(text as Dimension)

const idOf = ({ key_id, account_id, model }: Row): string => key_id ?? account_id ?? model ?? ''

/** Returns the sums of the groups with those of the days. */
const joined = (groups: Usage, days: Usage) => ({
  ...groups,
  groups: groups.rows.map((row) => ({ ...row, id: idOf(row), name: row.name ?? idOf(row) })),
  by_day: days.rows.map((row) => ({ ...row, date: row.day ?? '', group: '' })),
})
type Joined = ReturnType<typeof joined>
type Group = Joined['groups'][number]

/** Returns a record for each group. */
const linesOf = ({ groups }: Joined, by: Dimension) => [
  [by, 'name', ...(by === 'key' ? ['account'] : []), ...SUM_COLUMNS],
  ...groups.map((group) => [
    group.id,
    group.name,
    ...(by === 'key' ? [group.account_id ?? ''] : []),
    ...SUM_COLUMNS.map((column) => group[column]),
  ]),
]

export function InstallationUsage() {
  const { by: given } = route.useSearch()
  const by = isDimension(given) ? given : 'account'
  const period = usePeriod()
  const usage = useQuery({
    queryKey: [PATH, by, period],
    queryFn: async ({ signal }) => {
      const read = (group: Dimension | 'day') =>
        get<typeof showInstallationUsage>(PATH, { by: group, ...period } as never, signal)
      const [groups, days] = await Promise.all([read(by), read('day')])
      return joined(groups, days)
    },
  })
  const nameOf = ({ id, name, account_id: account }: Group) => {
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
    <UsageFrame by={by} dimensions={DIMENSIONS} query={usage} linesOf={(data) => linesOf(data, by)}>
      {(data) => (
        <>
          <Report usage={data} title={dimensionNames()[by]} nameOf={nameOf} />
          {data.has_more && (
            <p className="mt-3 text-quiet">
              {t('The first {count} rows are shown; the totals count all.', {
                count: data.groups.length.toLocaleString('en'),
              })}
            </p>
          )}
        </>
      )}
    </UsageFrame>
  )
}
