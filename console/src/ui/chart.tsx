/** Charts over time, with the same figures as a tooltip and as a table. */
import { type KeyboardEvent, lazy, type ReactNode, Suspense, useState } from 'react'
import { printDay, printTime, readZoneName, toDayStart } from '../format.ts'
import { t } from '../i18n.ts'
import type { Figures, Point, Series } from './plot.tsx'
import { EmptyState, type Query, QueryState, Skeleton } from './states.tsx'
import { type Column, Table } from './table.tsx'

const Plot = lazy(async () => ({ default: (await import('./plot.tsx')).Plot }))

interface ChartProps extends Figures {
  readonly title: string
  /** What the figures come from, if the chart is shown before they are there. */
  readonly query?: Query | undefined
  /** The time that each instant stands for; default: until the next one. */
  readonly bucketSeconds?: number | undefined
  /** Prints a cell of the table and of the tooltip; default: `print`. */
  cell?(series: number, time: number): ReactNode
  /** Called with the time that the reader has dragged over, epoch seconds: whole steps of the chart. */
  onZoom?(from: number, to: number): void
}

const DAY_SECONDS = 86_400
const MINUTE_SECONDS = 60
const SKELETON_ROWS = 5
/** By the place of a line in its chart. */
const DASHES: readonly (readonly number[])[] = [[], [6, 3], [2, 3]]
/** Statuses keep their tones; red and orange bars have a pattern too. */
const PATTERNS: Partial<Record<Series['tone'], 'stripes' | 'bands'>> = {
  'series-bad': 'stripes',
  'series-warn': 'bands',
}

const toInstant = (epochSeconds: number): string => new Date(epochSeconds * 1000).toISOString()

/** Prints the time that an instant stands for: its days, or its day with hours and minutes. */
function printInterval(from: number, seconds: number): string {
  if (seconds >= DAY_SECONDS) {
    // A day of 23 or 25 hours has its middle in itself.
    const days = [from, from + seconds - DAY_SECONDS / 2].map((at) => printDay(toInstant(at)))
    return [...new Set(days)].join(' – ')
  }
  const [day = '', time = ''] = printTime(toInstant(from)).split(' ')
  const [, end = ''] = printTime(toInstant(from + seconds)).split(' ')
  const chars = seconds % MINUTE_SECONDS === 0 ? 'hh:mm'.length : 'hh:mm:ss'.length
  return `${day} ${time.slice(0, chars)} – ${end.slice(0, chars)}`
}

const printValue = (value: number | null | undefined, print: Figures['print']): string =>
  value == null ? '–' : print(value)

interface Row {
  readonly time: number
  readonly at: number
}

/** A series as its drawing and its legend show it, and its place in the chart's own series. */
type Marked = Series & { readonly index: number; readonly dash: readonly number[] } & {
  readonly pattern: 'stripes' | 'bands' | null
}

const mark = (series: readonly Series[]): Marked[] =>
  series.map((one, index) => ({
    ...one,
    index,
    dash: DASHES[index % DASHES.length] ?? [],
    pattern: PATTERNS[one.tone] ?? null,
  }))

const SWATCH_TONES: Readonly<Record<Series['tone'], string>> = {
  'series-1': 'text-series-1',
  'series-2': 'text-series-2',
  'series-3': 'text-series-3',
  'series-bad': 'text-series-bad',
  'series-warn': 'text-series-warn',
  'series-other': 'text-series-other',
}

const Swatch = ({ kind, tone, dash, pattern }: Marked) =>
  kind === 'bars' ? (
    <span aria-hidden="true" className={`swatch ${SWATCH_TONES[tone]}`} data-pattern={pattern} />
  ) : (
    <svg aria-hidden="true" className={SWATCH_TONES[tone]} width="16" height="8">
      <line x2="16" y1="4" y2="4" stroke="currentColor" strokeWidth="2" strokeDasharray={dash.join(' ')} />
    </svg>
  )

interface LegendProps {
  readonly series: readonly Marked[]
  readonly hidden: readonly string[]
  onToggle(name: string): void
}

/** Names the series; each can be hidden. */
const Legend = ({ series, hidden, onToggle }: LegendProps) => (
  <div className="mt-1 flex flex-wrap gap-x-3 text-quiet text-xs">
    {series.map((one) => (
      <button
        key={one.name}
        type="button"
        aria-pressed={!hidden.includes(one.name)}
        className="inline-flex max-w-full items-center gap-1.5 rounded px-1 py-0.5 hover:text-ink aria-[pressed=false]:line-through"
        onClick={() => onToggle(one.name)}
      >
        <Swatch {...one} />
        <span className="truncate">{one.name}</span>
      </button>
    ))}
  </div>
)

interface TooltipProps {
  readonly interval: string
  readonly left: number
  /** True on the right half of the chart. */
  readonly isLate: boolean
  readonly series: readonly Marked[]
  cell(series: number): ReactNode
}

/** Shows the values beside the pointer, on the side with more room. The plot's own label repeats them for screen readers. */
const Tooltip = ({ interval, left, isLate, series, cell }: TooltipProps) => (
  <div
    aria-hidden="true"
    className={`pointer-events-none absolute top-1 z-1 min-w-36 max-w-64 rounded-md border border-line bg-surface px-2.5 py-1.5 text-xs shadow-lg ${isLate ? '-translate-x-full' : ''}`}
    style={{ left: isLate ? left - 12 : left + 12 }}
  >
    <p className="tabular whitespace-nowrap pb-1 font-medium">{interval}</p>
    {series.map((one) => (
      <p key={one.name} className="flex items-center gap-1.5">
        <Swatch {...one} />
        <span className="truncate text-quiet">{one.name}</span>
        <span className="tabular ml-auto pl-3">{cell(one.index)}</span>
      </p>
    ))}
  </div>
)

interface ReadableProps extends Omit<ChartProps, 'series' | 'query'> {
  readonly series: readonly Marked[]
}

/** The plot with its tooltip. With the focus, the arrow keys go from instant to instant, as on a slider. */
function Readable({ title, times, series, print, isStacked, bucketSeconds, cell, onZoom }: ReadableProps) {
  const [point, setPoint] = useState<Point | null>(null)
  const last = times.length - 1
  const at = point === null ? null : Math.min(point.at, last)
  const now = at ?? last
  const toStart = (place: number) => times[place] ?? 0
  const toEnd = (place: number): number => {
    const { [place]: from = 0, [place + 1]: next, [place - 1]: before = from - DAY_SECONDS } = times
    if (bucketSeconds === undefined) return next ?? 2 * from - before
    if (bucketSeconds < DAY_SECONDS) return from + bucketSeconds
    return toDayStart(printDay(toInstant(from)), bucketSeconds / DAY_SECONDS).getTime() / 1000
  }
  const interval = printInterval(toStart(now), toEnd(now) - toStart(now))
  const onKey = (event: KeyboardEvent) => {
    const places = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }
    if (event.key === 'Escape') return setPoint(null)
    const place = places[event.key as keyof typeof places]
    if (place === undefined) return
    event.preventDefault()
    show(at === null ? now : Math.min(Math.max(place, 0), last))
  }
  // The plot says where the instant is.
  const show = (place: number) => setPoint((before) => ({ at: place, left: before?.left ?? 0 }))
  return (
    <div
      role="slider"
      tabIndex={0}
      aria-label={title}
      aria-valuemin={0}
      aria-valuemax={last}
      aria-valuenow={now}
      aria-valuetext={`${interval}: ${series
        .map(({ name, values }) => `${name} ${printValue(values[now], print)}`)
        .join(', ')}`}
      className="relative isolate min-h-40 rounded"
      onKeyDown={onKey}
      onFocus={({ currentTarget }) => currentTarget.matches(':focus-visible') && show(last)}
      onBlur={() => setPoint(null)}
    >
      <Suspense fallback={<Skeleton rows={SKELETON_ROWS} />}>
        <Plot
          times={times}
          series={series}
          print={print}
          isStacked={isStacked}
          at={at}
          onPoint={(given) =>
            setPoint((before) => (before?.at === given?.at && before?.left === given?.left ? before : given))
          }
          onZoom={onZoom && ((first, end) => onZoom(toStart(first), toEnd(end)))}
        />
      </Suspense>
      {point !== null && at !== null && point.left > 0 && (
        <Tooltip
          interval={interval}
          left={point.left}
          isLate={at > last / 2}
          series={series}
          cell={(index) => {
            const value = series.find((one) => one.index === index)?.values[at]
            return cell?.(index, at) ?? printValue(value, print)
          }}
        />
      )}
    </div>
  )
}

export function Chart({ title, query, series, ...rest }: ChartProps) {
  const { times, print, cell } = rest
  const [hidden, setHidden] = useState<readonly string[]>([])
  const marked = mark(series)
  const isWaiting = query !== undefined && (query.isPending || query.error !== null)
  const isEmpty = series.every(({ values }) => values.every((value) => value === null))
  const columns: Column<Row>[] = [
    { name: t('Time'), isTime: true, cell: ({ time }) => printTime(toInstant(time)) },
    ...series.map(({ name, values }, index) => ({
      name,
      isNumber: true,
      cell: ({ at }: Row) => cell?.(index, at) ?? printValue(values[at], print),
    })),
  ]
  const rows = times.map((time, at) => ({ time, at }))
  const toggle = (name: string) =>
    setHidden((now) => (now.includes(name) ? now.filter((one) => one !== name) : [...now, name]))
  return (
    <figure className="min-h-65 min-w-0 rounded-lg border border-line bg-surface p-3">
      <figcaption className="flex justify-between gap-2 px-1 pb-1 text-sm">
        <span className="font-medium">{title}</span>
        <span className="text-quiet text-xs">{readZoneName()}</span>
      </figcaption>
      {isWaiting ? (
        <QueryState query={query} rows={SKELETON_ROWS} />
      ) : isEmpty ? (
        <div className="flex min-h-40 flex-col justify-center text-quiet text-sm">
          <EmptyState title={t('Nothing in this period')} />
        </div>
      ) : (
        <>
          <Readable {...rest} title={title} series={marked.filter(({ name }) => !hidden.includes(name))} />
          <Legend series={marked} hidden={hidden} onToggle={toggle} />
          <details className="mt-1 text-sm">
            <summary className="rounded px-1 text-quiet text-xs">{t('As a table')}</summary>
            <div className="*:max-h-64">
              <Table caption={title} rows={rows} toKey={({ time }) => String(time)} columns={columns} />
            </div>
          </details>
        </>
      )}
    </figure>
  )
}
