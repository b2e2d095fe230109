/** Charts over time, with the same figures as a table. */
import 'uplot/dist/uPlot.min.css'
import { type ReactNode, useEffect, useRef } from 'react'
import UPlot from 'uplot'
import { printTime, readTimeZone, readZoneName } from '../format.ts'
import { t } from '../i18n.ts'
import { type Column, Table } from './table.tsx'

export interface Series {
  readonly name: string
  readonly kind: 'bars' | 'line'
  readonly tone: 'accent' | 'good' | 'warn' | 'bad' | 'quiet'
  /** One per instant; null leaves a gap. Only for drawing: amounts are printed from their texts. */
  readonly values: readonly (number | null)[]
}

interface Figures {
  /** Epoch seconds, ascending. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  /** Prints a value on the axis and in the legend, with its unit. */
  print(value: number): string
  /** Bars stand on top of each other; the last series is at the bottom. */
  readonly isStacked?: boolean
}

interface ChartProps extends Figures {
  readonly title: string
  /** Prints a cell of the table; default: `print`. */
  cell?(series: number, time: number): ReactNode
  /** Called with a part of the chart that the reader has dragged over, epoch seconds. */
  onZoom?(from: number, to: number): void
}

const HEIGHT_PX = 160
const DAY_SECONDS = 86_400
const MINUTE_SECONDS = 60
/** In a longer line each point would hide its neighbors. */
const MAX_POINTS = 60

const printInstant = (epochSeconds: number): string => printTime(new Date(epochSeconds * 1000).toISOString())

/** Prints times on the axis: the day at midnight, else hours and minutes, with seconds if ticks are close. */
function printTicks(epochSeconds: number[]): string[] {
  const [first = 0, second = MINUTE_SECONDS] = epochSeconds
  const isFine = second - first < MINUTE_SECONDS
  return epochSeconds.map((at) => {
    const [day = '', time = ''] = printInstant(at).split(' ')
    return time === '00:00:00' ? day.slice(5) : isFine ? time : time.slice(0, 5)
  })
}

const INK = ['text-quiet', 'text-line', 'text-accent', 'text-good', 'text-warn', 'text-bad'] as const

/** Returns the theme's color as the browser resolves it: a canvas does not know CSS variables. */
function resolveColor(box: HTMLElement, name: string): string {
  const probe = box.querySelector(`[data-ink="${name}"]`)
  return probe === null ? 'gray' : getComputedStyle(probe).color
}

/** A narrower part is a click. */
const MIN_ZOOM_PX = 5

const toData = ({ times, series, isStacked = false }: Figures) => {
  const stack = (index: number) =>
    times.map((_, at) => series.slice(index).reduce((sum, { values }) => sum + (values[at] ?? 0), 0))
  return [
    times,
    ...series.map(({ values }, index) => (isStacked ? stack(index) : values)),
  ] as unknown as UPlot.AlignedData
}

/** Passes on what was dragged over, and removes the mark. */
const zoomTo =
  (onZoom: (from: number, to: number) => void) =>
  (plot: UPlot): void => {
    const { left, width } = plot.select
    if (width < MIN_ZOOM_PX) return
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
    onZoom(plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'))
  }

interface Drawing extends Figures {
  readonly onZoom: ((from: number, to: number) => void) | undefined
}

function makeOptions(box: HTMLElement, { times, series, print, onZoom }: Drawing): UPlot.Options {
  // Half a bar on each side; a single instant gets a day.
  const margin = ((times[1] ?? (times[0] ?? 0) + DAY_SECONDS) - (times[0] ?? 0)) / 2
  const axis = {
    stroke: () => resolveColor(box, 'text-quiet'),
    grid: { stroke: () => resolveColor(box, 'text-line'), width: 1 },
    ticks: { show: false },
    font: `11px ${getComputedStyle(box).fontFamily}`,
  }
  const bars = UPlot.paths.bars?.({ size: [0.7, 24] })
  return {
    width: box.clientWidth || 320,
    height: HEIGHT_PX,
    // Leaves room for the second half of the last label.
    padding: [8, 20, 0, 0],
    cursor: { y: false, drag: { x: onZoom !== undefined, y: false, setScale: false } },
    ...(onZoom && { hooks: { setSelect: [zoomTo(onZoom)] } }),
    legend: { live: true },
    ...(readTimeZone() === 'utc' && {
      tzDate: (at: number) => UPlot.tzDate(new Date(at * 1000), 'UTC'),
    }),
    scales: {
      // Not what uPlot suggests: around a single instant that is years.
      x: { range: () => [(times[0] ?? 0) - margin, (times.at(-1) ?? 0) + margin] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      // Bars show where an instant is: lines across are for values.
      {
        ...axis,
        grid: { show: false },
        size: 28,
        space: 56,
        values: (_, splits) => printTicks(splits),
      },
      { ...axis, size: 64, values: (_, splits) => splits.map(print) },
    ],
    series: [
      { label: t('Time'), value: (_, at) => (at === null ? '–' : printInstant(at)) },
      ...series.map(({ name, kind, tone, values }, index): UPlot.Series => {
        const resolveInk = () => resolveColor(box, `text-${tone}`)
        return {
          label: name,
          stroke: resolveInk,
          value: (_, __, ___, at) => printValue(values[at ?? -1], print),
          points: { show: kind === 'line' && values.length < MAX_POINTS, size: 5, fill: resolveInk },
          ...(kind === 'bars'
            ? { fill: resolveInk, width: 0, ...(bars && { paths: bars }) }
            : // A second line is told apart without its color too.
              { width: 2, ...(index > 0 && { dash: [6, 3] }) }),
        }
      }),
    ],
  }
}

const printValue = (value: number | null | undefined, print: Figures['print']): string =>
  value == null ? '–' : print(value)

interface Row {
  readonly time: number
  readonly at: number
}

/** Calls `draw` when the theme changes. */
function onThemeChange(draw: () => void): () => void {
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const chosen = new MutationObserver(draw)
  chosen.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] })
  dark.addEventListener('change', draw)
  return () => {
    chosen.disconnect()
    dark.removeEventListener('change', draw)
  }
}

export function Chart({ title, times, series, print, isStacked, cell, onZoom }: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  // As text, so that the chart is drawn again only when its figures change.
  const shown = JSON.stringify({ times, series, isStacked })
  const printing = useRef(print)
  printing.current = print
  const zooming = useRef(onZoom)
  zooming.current = onZoom
  const zooms = onZoom !== undefined
  useEffect(() => {
    const target = box.current
    if (target === null) return
    const figures: Drawing = {
      ...JSON.parse(shown),
      print: (value: number) => printing.current(value),
      onZoom: zooms ? (from, to) => zooming.current?.(from, to) : undefined,
    }
    const draw = () => new UPlot(makeOptions(target, figures), toData(figures), target)
    let plot = draw()
    const resized = new ResizeObserver(() => plot.setSize({ width: target.clientWidth, height: HEIGHT_PX }))
    resized.observe(target)
    // Colors are read when the chart is drawn.
    const stop = onThemeChange(() => {
      plot.destroy()
      plot = draw()
    })
    return () => {
      stop()
      resized.disconnect()
      plot.destroy()
    }
  }, [shown, zooms])
  const columns: Column<Row>[] = [
    { name: t('Time'), isTime: true, cell: ({ time }) => printInstant(time) },
    ...series.map(({ name, values }, index) => ({
      name,
      isNumber: true,
      cell: ({ at }: Row) => {
        const value = values[at]
        return cell?.(index, at) ?? printValue(value, print)
      },
    })),
  ]
  const rows = times.map((time, at) => ({ time, at }))
  return (
    <figure className="min-w-0 rounded-lg border border-line bg-surface p-3">
      <figcaption className="flex justify-between gap-2 px-1 pb-1 text-sm">
        <span className="font-medium">{title}</span>
        <span className="text-quiet text-xs">{readZoneName()}</span>
      </figcaption>
      <div ref={box} aria-hidden="true" className="chart min-w-0 overflow-hidden">
        {INK.map((ink) => (
          <span key={ink} data-ink={ink} className={`hidden ${ink}`} />
        ))}
      </div>
      <details className="mt-1 text-sm">
        <summary className="rounded px-1 text-quiet text-xs">{t('As a table')}</summary>
        <div className="max-h-64 overflow-y-auto">
          <Table caption={title} rows={rows} toKey={({ time }) => String(time)} columns={columns} />
        </div>
      </details>
    </figure>
  )
}
