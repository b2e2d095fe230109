/** The rows of the call log. Only those in view are rendered, however many were read. */

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef } from 'react'
import type { PublicModel } from '../../../../schemas/accounts/models.ts'
import type { LogRow } from '../../../../schemas/call-log/columns.ts'
import { catalogQuery } from '../../api/catalog.ts'
import { printNumber } from '../../format.ts'
import { t } from '../../i18n.ts'
import { StatusBadge } from '../../ui/states.tsx'
import { Money, Time } from '../../ui/text.tsx'
import { printUnits } from '../../ui/units.ts'
import { describeStatuses } from './filters.tsx'

/** The id of a call that is not in the log yet: its request id finds it. */
export const NOT_LOGGED = 0

const ROW_PX = 40
const OVERSCAN_ROWS = 12
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
  const box = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN_ROWS,
  })
  const shown = virtual.getVirtualItems()
  const last = shown.at(-1)?.index ?? 0
  const isAtEnd = hasMore && !isLoading && last >= rows.length - OVERSCAN_ROWS
  useEffect(() => {
    if (isAtEnd) onEnd()
  }, [isAtEnd, onEnd])
  const [first] = shown
  const before = first?.start ?? 0
  const after = virtual.getTotalSize() - (shown.at(-1)?.end ?? 0)
  // Most accounts never name a session.
  const hasSession = rows.some(({ session_id }) => session_id !== null)
  const columns = [
    { name: t('Time'), width: 'w-44' },
    { name: t('Status'), width: 'w-32' },
    { name: t('Model'), width: '' },
    ...(hasSession ? [{ name: t('Session'), width: 'w-32' }] : []),
    { name: t('Key'), width: 'w-36' },
    { name: t('Used'), width: 'w-36 text-right' },
    { name: t('Duration'), width: 'w-28 text-right' },
    { name: t('Cost'), width: 'w-36 text-right' },
  ]
  return (
    <section ref={box} aria-label={t('Calls')} className="isolate max-h-[70vh] overflow-auto rounded-lg">
      <table
        className={`w-full table-fixed text-left ${hasSession ? 'min-w-[68rem]' : 'min-w-[62rem]'}`}
        aria-rowcount={hasMore ? -1 : rows.length}
      >
        <thead className="sticky top-0 z-1 border-line border-b bg-surface text-quiet text-sm">
          <tr>
            {columns.map(({ name, width }) => (
              <th key={name} scope="col" className={`px-3 py-2 font-medium ${width}`}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Space px={before} columns={columns.length} />
          {shown.map(({ index }) => (
            <Row models={models} key={rows[index]!.request_id} row={rows[index]!} hasSession={hasSession} />
          ))}
          <Space px={after} columns={columns.length} />
        </tbody>
      </table>
    </section>
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

const Row = ({ row, models, hasSession }: RowProps) => (
  <tr className="relative h-10 border-line border-b whitespace-nowrap hover:bg-raised">
    <td className="px-3">
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
      <td className="truncate px-3 text-quiet" title={row.session_id ?? undefined}>
        {row.session_id}
      </td>
    )}
    <td className="truncate px-3 text-quiet" title={row.key_prefix}>
      {row.key_name}
    </td>
    <td className="px-3 text-right">{printUsage(row, models)}</td>
    <td className="px-3 text-right">{printNumber(row.latency_ms)} ms</td>
    <td className="px-3 text-right">
      <Money amount={row.cost} />
    </td>
  </tr>
)
