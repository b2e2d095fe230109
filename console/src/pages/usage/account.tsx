/** What an account used: by day and by model, key, member or state. */
import { getRouteApi, Link } from '@tanstack/react-router'
import { USAGE_DIMENSIONS } from '../../../../schemas/management/calls/usage.ts'
import type { AnswerOf } from '../../api/client.ts'
import { useKeyNames } from '../../api/key-names.ts'
import { useGet } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { EmptyState } from '../../ui/states.tsx'
import { KeyField } from '../key-field.tsx'
import { dimensionNames, SUM_COLUMNS, UsageFrame, usePeriod } from './frame.tsx'
import { Report } from './report.tsx'

const route = getRouteApi('/signed-in/usage')

type Usage = AnswerOf<'showUsage'>
type Group = Usage['groups'][number]
type Dimension = (typeof USAGE_DIMENSIONS)[number]

const isDimension = (text: string | undefined): text is Dimension =>
  USAGE_DIMENSIONS.includes(text as Dimension)

/** Returns a record for each day and group. */
function linesOf({ by_day, groups }: Usage, by: Dimension) {
  const names = new Map(groups.map(({ id, name }) => [id, name]))
  const days = by_day.toSorted((a, b) => a.date.localeCompare(b.date))
  return [
    ['date', by, 'name', ...SUM_COLUMNS],
    ...days.map((day) => [
      day.date,
      day.group,
      names.get(day.group) ?? day.group,
      ...SUM_COLUMNS.map((column) => day[column]),
    ]),
  ]
}

export function AccountUsage() {
  const { account_id: accountId, kind, role } = useAccount()
  const { by: given, key_id: keyId } = route.useSearch()
  const by = isDimension(given) ? given : 'model'
  const period = usePeriod()
  const change = useChangeSearch()
  const keys = useKeyNames()
  // A member reads the usage of one key at a time.
  const key = keyId ?? (role === 'member' ? keys.data?.keys[0]?.id : undefined)
  const hasNoKey = role === 'member' && keys.isSuccess && key === undefined
  const usage = useGet('showUsage', { account_id: accountId, by, key_id: key, ...period } as never, {
    enabled: role !== 'member' || key !== undefined,
  })
  const nameOf = ({ id, name }: Group) => {
    const label = name === '' ? t('None') : name
    if (by === 'member') return label
    const filter = by === 'key' ? { key_id: id } : { [by]: id, key_id: key }
    return (
      <Link
        to="/calls"
        search={{ account: accountId, ...period, ...filter }}
        className="text-accent hover:underline"
      >
        {label}
      </Link>
    )
  }
  const keyField = role !== 'billing' && (
    <KeyField
      names={keys.data}
      value={key}
      hasAll={role !== 'member'}
      onChange={(text) => change({ key_id: text })}
    />
  )
  return (
    <>
      <UsageFrame
        by={by}
        dimensions={USAGE_DIMENSIONS.filter((name) => name !== 'member' || kind === 'organization')}
        query={usage}
        fields={keyField}
        linesOf={(data) => linesOf(data, by)}
      >
        {(data) => <Report usage={data} title={dimensionNames()[by]} nameOf={nameOf} />}
      </UsageFrame>
      {hasNoKey && <EmptyState title={t('You have no key yet.')} />}
    </>
  )
}
