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
import { useMedia } from '../../ui/media.ts'
import { StatusBadge } from '../../ui/states.tsx'
import { type Column, Grid } from '../../ui/table.tsx'
import { useCompact } from '../../ui/table-layout.ts'
import { Money, NONE, TextLink, Time } from '../../ui/text.tsx'
import { printUnits } from '../../ui/units.ts'
import { describeStatuses, type ShownCall } from './query.ts'

/** The id of a call that is not in the log yet: its request id finds it. */
export const NOT_LOGGED = 0

const ROW_PX = 40
const COMPACT_ROW_PX = 32
const CARD_PX = 84
/** With the account. */
const WHOLE_CARD_PX = 106
const OVERSCAN_ROWS = 12
/** Below this width each call is a card. */
const NARROW = matchMedia('(max-width: 639px)')

/** Prints the usage: tokens in and out, or units such as images. */
const printUsage = (row: LogRow, models: readonly PublicModel[]): string => {
  const { model, unit_count, unit_type, input_tokens, output_tokens } = row
  if (unit_type === null || unit_count === null)
    return `${printNumber(input_tokens)} → ${printNumber(output_tokens)}`
  return printUnits(Number(unit_count), models.find(({ id }) => id === model)?.pricing?.unit, unit_type)
}

interface LogProps {
  readonly caption: string
  /** True if the calls are those of all accounts. */
  readonly isWhole: boolean
  readonly rows: readonly ShownCall[]
  readonly hasMore: boolean
  readonly isLoading: boolean
  onEnd(): void
}

export function Log({ caption, isWhole, rows, hasMore, isLoading, onEnd }: LogProps) {
  // The catalog says in which units a model counts.
  const { data: models = [] } = useQuery({
    ...catalogQuery,
    enabled: rows.some(({ unit_type }) => unit_type !== null),
  })
  const isNarrow = useMedia(NARROW)
  const isCompact = useCompact()
  const rowPx = isNarrow ? (isWhole ? WHOLE_CARD_PX : CARD_PX) : isCompact ? COMPACT_ROW_PX : ROW_PX
  const box = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowPx,
    overscan: OVERSCAN_ROWS,
  })
  useEffect(() => {
    if (rowPx > 0) virtual.measure()
  }, [rowPx, virtual])
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
    <section
      ref={box}
      aria-label={caption}
      className="@container isolate max-h-[75vh] overflow-auto rounded-lg"
    >
      {isNarrow ? (
        <ul style={{ paddingTop: before, paddingBottom: after }}>
          {inView.map((row) => (
            <Card key={row.request_id} row={row} models={models} isWhole={isWhole} />
          ))}
        </ul>
      ) : (
        <Grid
          isAdjustable
          caption={caption}
          // Most accounts never name a session.
          columns={listColumns(
            models,
            rows.some(({ session_id }) => session_id !== null),
            isWhole,
          )}
          rows={inView}
          toKey={({ request_id }) => request_id}
          unseen={{ before, after, count: hasMore ? -1 : rows.length }}
        />
      )}
    </section>
  )
}

/** A call that was refused at once took no time worth a number. */
const printTook = ({ latency_ms }: LogRow): string =>
  latency_ms === 0 ? NONE : `${printNumber(latency_ms)} ms`

/** The search parameters that open the call. */
export const toSearch = ({ id, request_id, account_id }: ShownCall) =>
  id === NOT_LOGGED
    ? { ref: request_id }
    : { call: String(id), ...(account_id && { call_account: account_id }) }

/** Links to the call in full; one that is not in the log yet is found by its request id. */
const CallLink = ({ row }: { readonly row: ShownCall }) => (
  <Link to="." search={(all) => ({ ...all, ...toSearch(row) })} className="before:absolute before:inset-0">
    <Time at={row.created_at} />
  </Link>
)

interface CardProps {
  readonly row: ShownCall
  readonly isWhole: boolean
  readonly models: readonly PublicModel[]
}

const Card = ({ row, models, isWhole }: CardProps) => (
  <li
    style={{ height: isWhole ? WHOLE_CARD_PX : CARD_PX }}
    className="relative flex flex-col justify-center gap-1 border-line border-b px-3 hover:bg-raised"
  >
    <span className="flex items-center justify-between gap-3">
      <strong className="truncate font-medium">{row.model}</strong>
      <Money amount={row.cost} />
    </span>
    {isWhole && <span className="truncate text-sm">{row.account_name ?? row.account_id}</span>}
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

/** On a narrower page the less important columns are left out; the call in full has them. */
const listColumns = (
  models: readonly PublicModel[],
  hasSession: boolean,
  isWhole: boolean,
): Column<ShownCall>[] => [
  { name: t('Time'), isTime: true, width: 176, cell: (row) => <CallLink row={row} /> },
  {
    name: t('Status'),
    width: 128,
    cell: ({ status, call_count }) => (
      <>
        <StatusBadge statuses={describeStatuses()} status={status} />
        {call_count > 1 && <span className="ml-1 text-quiet text-xs">×{call_count}</span>}
      </>
    ),
  },
  {
    name: t('Model'),
    cell: ({ model, error_code, error_message, attempts_count: attempts }) => (
      <span title={error_message ?? model}>
        {model}
        {error_code && <span className="ml-2 text-bad text-xs">{error_code}</span>}
        {isWhole && attempts !== null && attempts > 1 && (
          <span className="ml-2 text-quiet text-xs">{t('{attempts} attempts', { attempts })}</span>
        )}
      </span>
    ),
  },
  ...(isWhole ? listWholeColumns() : []),
  ...(hasSession
    ? [
        {
          name: t('Session'),
          width: 128,
          from: isWhole ? 'widest' : 'wide',
          cell: ({ session_id }: LogRow) => (
            <span className="text-quiet" title={session_id ?? undefined}>
              {session_id}
            </span>
          ),
        } as const,
      ]
    : []),
  {
    name: t('Key'),
    width: 144,
    // Sessions take the place of keys.
    from: hasSession || isWhole ? 'widest' : 'wide',
    cell: ({ key_name, key_prefix }) => (
      <span className="text-quiet" title={key_prefix}>
        {key_name}
      </span>
    ),
  },
  {
    name: t('Used'),
    width: 144,
    isNumber: true,
    from: isWhole ? 'widest' : 'wide',
    cell: (row) => printUsage(row, models),
  },
  { name: t('Duration'), width: 112, isNumber: true, from: isWhole ? 'wide' : 'medium', cell: printTook },
  { name: t('Cost'), width: 128, isNumber: true, cell: ({ cost }) => <Money amount={cost} /> },
]

/** What the calls of all accounts have besides. */
const listWholeColumns = (): Column<ShownCall>[] => [
  {
    name: t('Account'),
    width: 144,
    // Beside an open call, which names it, there is no room.
    from: 'medium',
    cell: ({ account_id = '', account_name }) => (
      // Above the link of the row.
      <span className="relative z-1">
        <TextLink to="/accounts" search={{ open: account_id }}>
          {account_name ?? account_id}
        </TextLink>
      </span>
    ),
  },
  { name: t('Channel'), width: 128, from: 'wide', cell: ({ channel_id }) => channel_id ?? NONE },
]
