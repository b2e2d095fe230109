/** Draws figures over time on a canvas. */
import 'uplot/dist/uPlot.min.css'
import { useEffect, useRef } from 'react'
import UPlot from 'uplot'
import { printTime, readTimeZone } from '../format.ts'
import { t } from '../i18n.ts'

export interface Series {
  readonly name: string
  readonly kind: 'bars' | 'line'
  readonly tone: 'series-1' | 'series-2' | 'series-3' | 'series-bad' | 'series-warn' | 'series-other'
  /** One per instant; null leaves a gap. Only for drawing: amounts are printed from their texts. */
  readonly values: readonly (number | null)[]
}

/** Tells series apart without their colors. */
interface Mark {
  /** Of a line: the lengths of its dashes and gaps. */
  readonly dash: readonly number[]
  /** Of bars. */
  readonly pattern: 'stripes' | 'bands' | null
}

export interface Figures {
  /** Epoch seconds, ascending. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  /** Prints a value on the axis and in the tooltip, with its unit. */
  print(value: number): string
  /** Bars stand on top of each other; the last series is at the bottom. */
  readonly isStacked?: boolean
}

/** An instant of a chart, and where it is: pixels from the left of its box. */
export interface Point {
  readonly at: number
  readonly left: number
}

interface PlotProps extends Figures {
  readonly series: readonly (Series & Mark)[]
  /** The instant that is pointed at. */
  readonly at: number | null
  onPoint(point: Point | null): void
  /** Called with the first and the last instant that the reader has dragged over, by their places. */
  readonly onZoom: ((first: number, last: number) => void) | undefined
}

const HEIGHT_PX = 160
const DAY_SECONDS = 86_400
const MINUTE_SECONDS = 60
/** In a longer line each point would hide its neighbors. */
const MAX_POINTS = 60
const PATTERN_PX = 6

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

const INK = [
  'text-quiet',
  'text-line',
  'text-surface',
  'text-series-1',
  'text-series-2',
  'text-series-3',
  'text-series-bad',
  'text-series-warn',
  'text-series-other',
] as const

/** Returns the theme's color as the browser resolves it: a canvas does not know CSS variables. */
function resolveColor(box: HTMLElement, name: (typeof INK)[number]): string {
  const probe = box.querySelector(`[data-ink="${name}"]`)
  return probe === null ? 'gray' : getComputedStyle(probe).color
}

/** Returns the fill of bars: their color, or stripes or bands of it. */
function makeFill(box: HTMLElement, { tone, pattern }: Series & Mark): string | CanvasPattern {
  const ink = resolveColor(box, `text-${tone}`)
  const tile = document.createElement('canvas')
  const pen = tile.getContext('2d')
  if (pattern === null || pen === null) return ink
  const size = Math.round(PATTERN_PX * devicePixelRatio)
  tile.width = size
  tile.height = size
  pen.fillStyle = resolveColor(box, 'text-surface')
  pen.fillRect(0, 0, size, size)
  pen.fillStyle = ink
  pen.strokeStyle = ink
  pen.lineWidth = size / 2.5
  if (pattern === 'bands') pen.fillRect(0, 0, size, size / 2)
  // The outer two fill the corners, so that tiles join.
  else
    for (const shift of [-size, 0, size]) {
      pen.moveTo(shift - size, size * 2)
      pen.lineTo(shift + size * 2, -size)
    }
  pen.stroke()
  return pen.createPattern(tile, 'repeat') ?? ink
}

/** A narrower part is a click. */
const MIN_ZOOM_PX = 5

const toData = ({ times, series, isStacked = false }: PlotProps) => {
  const stack = (index: number) =>
    times.map((_, at) => series.slice(index).reduce((sum, { values }) => sum + (values[at] ?? 0), 0))
  return [
    times,
    ...series.map(({ kind, values }, index) => {
      const heights = isStacked ? stack(index) : values
      // A bar of 0 would be a line.
      return kind === 'bars' ? heights.map((height, at) => (values[at] ? height : null)) : heights
    }),
  ] as unknown as UPlot.AlignedData
}

/** Passes on what was dragged over, and removes the mark. */
const zoomTo =
  (onZoom: (first: number, last: number) => void) =>
  (plot: UPlot): void => {
    const { left, width } = plot.select
    if (width < MIN_ZOOM_PX) return
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
    onZoom(plot.posToIdx(left), plot.posToIdx(left + width))
  }

/** Passes on the instant below the pointer. */
const pointAt =
  ({ times, onPoint }: PlotProps) =>
  (plot: UPlot): void => {
    const { idx, left = -1 } = plot.cursor
    const time = idx == null || left < 0 ? undefined : times[idx]
    onPoint(
      time === undefined
        ? null
        : { at: idx!, left: plot.bbox.left / devicePixelRatio + plot.valToPos(time, 'x') },
    )
  }

function makeOptions(box: HTMLElement, drawing: PlotProps): UPlot.Options {
  const { times, series, print, onZoom } = drawing
  // Half a bar on each side; a single instant gets a day.
  const margin = ((times[1] ?? (times[0] ?? 0) + DAY_SECONDS) - (times[0] ?? 0)) / 2
  const axis = {
    stroke: () => resolveColor(box, 'text-quiet'),
    grid: { stroke: () => resolveColor(box, 'text-line'), width: 1 },
    ticks: { show: false },
    font: `12px ${getComputedStyle(box).fontFamily}`,
  }
  const bars = UPlot.paths.bars?.({ size: [0.7, 24] })
  return {
    width: box.clientWidth || 320,
    height: HEIGHT_PX,
    // Leaves room for the second half of the last label.
    padding: [8, 20, 0, 0],
    cursor: { y: false, drag: { x: onZoom !== undefined, y: false, setScale: false } },
    hooks: { setCursor: [pointAt(drawing)], ...(onZoom && { setSelect: [zoomTo(onZoom)] }) },
    legend: { show: false },
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
      { label: t('Time') },
      ...series.map((one): UPlot.Series => {
        const resolveInk = () => resolveColor(box, `text-${one.tone}`)
        return {
          label: one.name,
          stroke: resolveInk,
          points: {
            show: one.kind === 'line' && one.values.length < MAX_POINTS,
            size: 5,
            fill: resolveInk,
          },
          ...(one.kind === 'bars'
            ? {
                fill: () => makeFill(box, one),
                width: one.pattern === null ? 0 : 1,
                ...(bars && { paths: bars }),
              }
            : { width: 2, dash: [...one.dash] }),
        }
      }),
    ],
  }
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

export function Plot(props: PlotProps) {
  const { times, series, isStacked, at, onZoom } = props
  const box = useRef<HTMLDivElement>(null)
  const drawn = useRef<UPlot>(null)
  // As text, so that the chart is drawn again only when its figures change.
  const shown = JSON.stringify({ times, series, isStacked })
  const latest = useRef(props)
  latest.current = props
  const zooms = onZoom !== undefined
  useEffect(() => {
    const target = box.current
    if (target === null) return
    const drawing: PlotProps = {
      ...latest.current,
      ...JSON.parse(shown),
      print: (value: number) => latest.current.print(value),
      onPoint: (point) => latest.current.onPoint(point),
      onZoom: zooms ? (first, last) => latest.current.onZoom?.(first, last) : undefined,
    }
    const draw = () => {
      drawn.current?.destroy()
      drawn.current = new UPlot(makeOptions(target, drawing), toData(drawing), target)
    }
    draw()
    const resized = new ResizeObserver(() =>
      drawn.current?.setSize({ width: target.clientWidth, height: HEIGHT_PX }),
    )
    resized.observe(target)
    // Colors are read when the chart is drawn.
    const stop = onThemeChange(draw)
    return () => {
      stop()
      resized.disconnect()
      drawn.current?.destroy()
      drawn.current = null
    }
  }, [shown, zooms])
  useEffect(() => {
    const plot = drawn.current
    // The pointer moves the mark by itself; keys do not.
    if (plot === null || at === null || plot.cursor.idx === at) return
    plot.setCursor({ left: plot.valToPos(latest.current.times[at] ?? 0, 'x'), top: 0 })
  }, [at])
  return (
    <div ref={box} className="chart min-w-0 overflow-hidden">
      {INK.map((ink) => (
        <span key={ink} data-ink={ink} className={`hidden ${ink}`} />
      ))}
    </div>
  )
}
