/** The rows of the call log. Only those in view are rendered, however many were read. */

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, useSyncExternalStore } from 'react'
import type { PublicModel } from '../../../../schemas/accounts/models.ts'
import type { LogRow } from '../../../../schemas/call-log/columns.ts'
import { catalogQuery } from '../../api/catalog.ts'
import { nameInZone, printNumber } from '../../format.ts'
import { t } from '../../i18n.ts'
import { StatusBadge } from '../../ui/states.tsx'
import { Money, NONE, Time } from '../../ui/text.tsx'
import { printUnits } from '../../ui/units.ts'
import { describeStatuses } from './filters.tsx'

/** The id of a call that is not in the log yet: its request id finds it. */
export const NOT_LOGGED = 0

const ROW_PX = 40
const CARD_PX = 84
const OVERSCAN_ROWS = 12
/** Below this width each call is a card. */
const NARROW = matchMedia('(max-width: 639px)')

const useIsNarrow = (): boolean =>
  useSyncExternalStore(
    (onChange) => {
      NARROW.addEventListener('change', onChange)
      return () => NARROW.removeEventListener('change', onChange)
    },
    () => NARROW.matches,
  )

/** Prints the usage: tokens in and out, or units such as images. */
const printUsage = (row: LogRow, models: readonly PublicModel[]): string => {
  const { model, unit_count, unit_type, input_tokens, output_tokens } = row
  if (unit_type === null || unit_count === null)
    return `${printNumber(input_tokens)} → ${printNumber(output_tokens)}`
  return printUnits(Number(unit_count), models.find(({ id }) => id === model)?.pricing?.unit, unit_type)
}

interface LogProps {
  readonly rows: readonly LogRow[]
  readonly hasMore: boolean
  readonly isLoading: boolean
  onEnd(): void
}

export function Log({ rows, hasMore, isLoading, onEnd }: LogProps) {
  const { data: models = [] } = useQuery(catalogQuery)
  const isNarrow = useIsNarrow()
  const box = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => (isNarrow ? CARD_PX : ROW_PX),
    overscan: OVERSCAN_ROWS,
  })
  useEffect(() => {
    if (isNarrow !== undefined) virtual.measure()
  }, [isNarrow, virtual])
  const shown = virtual.getVirtualItems()
  const last = shown.at(-1)?.index ?? 0
  const isAtEnd = hasMore && !isLoading && last >= rows.length - OVERSCAN_ROWS
  useEffect(() => {
    if (isAtEnd) onEnd()
  }, [isAtEnd, onEnd])
  const before = shown[0]?.start ?? 0
  const after = virtual.getTotalSize() - (shown.at(-1)?.end ?? 0)
  const inView = shown.map(({ index }) => rows[index]!)
  return (
    <section ref={box} aria-label={t('Calls')} className="isolate max-h-[70vh] overflow-auto rounded-lg">
      {isNarrow ? (
        <ul style={{ paddingTop: before, paddingBottom: after }}>
          {inView.map((row) => (
            <Card key={row.request_id} row={row} models={models} />
          ))}
        </ul>
      ) : (
        <CallTable
          rows={inView}
          rowCount={hasMore ? -1 : rows.length}
          space={{ before, after }}
          // Most accounts never name a session.
          hasSession={rows.some(({ session_id }) => session_id !== null)}
          models={models}
        />
      )}
    </section>
  )
}

interface CallTableProps {
  /** Those in view. */
  readonly rows: readonly LogRow[]
  readonly rowCount: number
  readonly space: { readonly before: number; readonly after: number }
  readonly hasSession: boolean
  readonly models: readonly PublicModel[]
}

/** On a narrower page the less important columns are left out; the call in full has them. */
const WIDE_ONLY = 'hidden xl:table-cell'
/** Sessions take the place of keys. */
const chooseKeyWidth = (hasSession: boolean) => (hasSession ? 'hidden 2xl:table-cell' : WIDE_ONLY)

function CallTable({ rows, rowCount, space, hasSession, models }: CallTableProps) {
  const columns = [
    { name: nameInZone(t('Time')), width: 'w-44' },
    { name: t('Status'), width: 'w-32' },
    { name: t('Model'), width: '' },
    ...(hasSession ? [{ name: t('Session'), width: `w-32 ${WIDE_ONLY}` }] : []),
    { name: t('Key'), width: `w-36 ${chooseKeyWidth(hasSession)}` },
    { name: t('Used'), width: `w-36 text-right ${WIDE_ONLY}` },
    { name: t('Duration'), width: 'w-28 text-right' },
    { name: t('Cost'), width: 'w-32 text-right' },
  ]
  return (
    <table className="w-full table-fixed text-left" aria-rowcount={rowCount}>
      <thead className="sticky top-0 z-1 border-line border-b bg-surface text-quiet text-sm">
        <tr>
          {columns.map(({ name, width }) => (
            <th key={name} scope="col" className={`truncate px-3 py-2 font-medium ${width}`} title={name}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        <Space px={space.before} columns={columns.length} />
        {rows.map((row) => (
          <Row key={row.request_id} row={row} models={models} hasSession={hasSession} />
        ))}
        <Space px={space.after} columns={columns.length} />
      </tbody>
    </table>
  )
}

/** Takes the space of rows that are not in view. */
const Space = ({ px, columns }: { px: number; columns: number }) =>
  px > 0 && (
    <tr>
      <td colSpan={columns} style={{ height: px }} />
    </tr>
  )

interface RowProps {
  readonly row: LogRow
  readonly models: readonly PublicModel[]
  readonly hasSession: boolean
}

/** A call that was refused at once took no time worth a number. */
const printTook = ({ latency_ms }: LogRow): string =>
  latency_ms === 0 ? NONE : `${printNumber(latency_ms)} ms`

/** Links to the call in full; one that is not in the log yet is found by its request id. */
const CallLink = ({ row }: { readonly row: LogRow }) => (
  <Link
    from="/calls"
    to="."
    search={(all) =>
      row.id === NOT_LOGGED ? { ...all, ref: row.request_id } : { ...all, call: String(row.id) }
    }
    className="before:absolute before:inset-0"
  >
    <Time at={row.created_at} />
  </Link>
)

const Card = ({ row, models }: Omit<RowProps, 'hasSession'>) => (
  <li className="relative flex h-[84px] flex-col justify-center gap-1 border-line border-b px-3 hover:bg-raised">
    <span className="flex items-center justify-between gap-3">
      <strong className="truncate font-medium">{row.model}</strong>
      <Money amount={row.cost} />
    </span>
    <span className="flex items-center justify-between gap-3 text-quiet text-sm">
      <CallLink row={row} />
      <span className="truncate">{printUsage(row, models)}</span>
    </span>
    <span className="flex items-center justify-between gap-3 text-quiet text-sm">
      <span className="flex min-w-0 items-center gap-2">
        <StatusBadge statuses={describeStatuses()} status={row.status} />
        {row.error_code && <span className="truncate text-bad text-xs">{row.error_code}</span>}
      </span>
      <span>{printTook(row)}</span>
    </span>
  </li>
)

const Row = ({ row, models, hasSession }: RowProps) => (
  <tr className="relative h-10 border-line border-b whitespace-nowrap hover:bg-raised">
    <td className="px-3">
      <CallLink row={row} />
    </td>
    <td className="px-3">
      <StatusBadge statuses={describeStatuses()} status={row.status} />
      {row.call_count > 1 && <span className="ml-1 text-quiet text-xs">×{row.call_count}</span>}
    </td>
    <td className="truncate px-3" title={row.error_message ?? row.model}>
      {row.model}
      {row.error_code && <span className="ml-2 text-bad text-xs">{row.error_code}</span>}
    </td>
    {hasSession && (
      <td className={`truncate px-3 text-quiet ${WIDE_ONLY}`} title={row.session_id ?? undefined}>
        {row.session_id}
      </td>
    )}
    <td className={`truncate px-3 text-quiet ${chooseKeyWidth(hasSession)}`} title={row.key_prefix}>
      {row.key_name}
    </td>
    <td className={`px-3 text-right ${WIDE_ONLY}`}>{printUsage(row, models)}</td>
    <td className="px-3 text-right">{printTook(row)}</td>
    <td className="px-3 text-right">
      <Money amount={row.cost} />
    </td>
  </tr>
)
