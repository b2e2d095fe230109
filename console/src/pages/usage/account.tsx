/** The usage of an account by day and by model, key, member or status, or by session. */
import { getRouteApi, Link } from '@tanstack/react-router'
import { USAGE_DIMENSIONS } from '../../../../schemas/management/calls/usage.ts'
import type { AnswerOf } from '../../api/client.ts'
import { useKeyNames } from '../../api/key-names.ts'
import { useGet } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { readZoneName, toZoneWindow } from '../../format.ts'
import { t } from '../../i18n.ts'
import { EmptyState } from '../../ui/states.tsx'
import { KeyFilter } from '../filters.tsx'
import {
  type AccountReportProps,
  nameCsvColumns,
  nameDimensions,
  SUM_COLUMNS,
  UsageFrame,
  usePeriod,
} from './frame.tsx'
import { Report } from './report.tsx'
import { Sessions } from './sessions.tsx'

const route = getRouteApi('/signed-in/usage')

type Usage = AnswerOf<'showUsage'>
type Group = Usage['groups'][number]
type Dimension = (typeof USAGE_DIMENSIONS)[number]
const ACCOUNT_DIMENSIONS = [...USAGE_DIMENSIONS, 'session'] as const

const isDimension = (text: string | undefined): text is Dimension =>
  USAGE_DIMENSIONS.includes(text as Dimension)

/** Returns one record per day and group. */
function toLines({ by_day, groups }: Usage, by: Dimension) {
  const names = new Map(groups.map(({ id, name }) => [id, name]))
  const days = by_day.toSorted((a, b) => a.date.localeCompare(b.date))
  return [
    ['date', by, 'name', ...nameCsvColumns(SUM_COLUMNS)],
    ...days.map((day) => [
      day.date,
      day.group,
      names.get(day.group) ?? day.group,
      ...SUM_COLUMNS.map((column) => day[column]),
    ]),
  ]
}

function Groups({ by, input, isReady, frame }: AccountReportProps & { by: Dimension }) {
  const period = usePeriod()
  const asked = { by, ...input, ...toZoneWindow(period), timezone: readZoneName() }
  const usage = useGet('showUsage', asked as never, { enabled: isReady })
  const { account_id: account, key_id } = input
  const renderName = ({ id, name }: Group) => {
    const label = name === '' ? t('None') : name
    if (by === 'member') return label
    const filter = by === 'key' ? { key_id: id } : { [by]: id, key_id }
    return (
      <Link to="/calls" search={{ account, ...period, ...filter }} className="text-accent hover:underline">
        {label}
      </Link>
    )
  }
  return (
    <UsageFrame by={by} {...frame} query={usage} toLines={(data) => toLines(data, by)}>
      {(data) => <Report usage={data} title={nameDimensions()[by]} renderName={renderName} />}
    </UsageFrame>
  )
}

export function AccountUsage() {
  const { account_id, kind, role } = useAccount()
  const { by, key_id: keyId } = route.useSearch()
  const keys = useKeyNames()
  // A member may read only one key at a time.
  const key_id = keyId ?? (role === 'member' ? keys.data?.keys[0]?.id : undefined)
  const isReady = role !== 'member' || key_id !== undefined
  const report = {
    input: { account_id, key_id },
    isReady,
    frame: {
      dimensions: ACCOUNT_DIMENSIONS.filter((name) => name !== 'member' || kind === 'organization'),
      fields: role !== 'billing' && <KeyFilter names={keys.data} value={key_id} hasAll={role !== 'member'} />,
    },
  }
  return (
    <>
      {by === 'session' ? (
        <Sessions {...report} />
      ) : (
        <Groups by={isDimension(by) ? by : 'model'} {...report} />
      )}
      {keys.isSuccess && !isReady && <EmptyState title={t('You have no key yet.')} />}
    </>
  )
}
