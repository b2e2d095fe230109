import type { TopLevelSpec } from 'vega-lite'
import { figure } from './table.ts'

/** Bar charts as SVG, in panels of two columns, for light and dark pages. Bars carry their values, so no axis is drawn. */

export interface Bar {
  label: string
  value: number
  /** Written after the value. */
  note: string
  /** Drawn in the colour of the product. */
  own: boolean
}

export interface Panel {
  title: string
  unit: string
  bars: Bar[]
  /** A line that bars should not cross, or null. */
  aim: number | null
}

export interface Chart {
  title: string
  subtitle: string[]
  panels: Panel[]
}

const COLUMNS = 2
const LABEL_WIDTH = 195
const BAR_WIDTH = 125
const VALUE_WIDTH = 115
const BAR_PITCH = 24
const BAR_HEIGHT = 15
/** Title and unit above a panel's bars. */
const PANEL_HEAD = 40
const PANEL_WIDTH = BAR_WIDTH + VALUE_WIDTH
const ROW_GAP = PANEL_HEAD + 16
const PADDING = 20
const TITLE_HEIGHT = 30
const SUBTITLE_HEIGHT = 14
/** Bars that are this many times longer than most others are cut, so that the others can be compared. */
const OUTLIER = 4
const CUT_MARK = '»'

/** Each colour with the one that replaces it on a dark page. */
const COLOURS = {
  background: ['#ffffff', '#0d1117'],
  text: ['#1f2328', '#f0f6fc'],
  muted: ['#59636e', '#9198a1'],
  bar: ['#98a2ae', '#656c76'],
  own: ['#0969da', '#4493f8'],
  aim: ['#bc4c00', '#f0883e'],
} as const
const colour = (name: keyof typeof COLOURS): string => COLOURS[name][0]

const DARK_RULES = Object.values(COLOURS).flatMap(([light, dark]) =>
  ['fill', 'stroke'].map((property) => `[${property}="${light}"]{${property}:${dark}}`),
)
const DARK_STYLE = `<style>@media (prefers-color-scheme: dark){${DARK_RULES.join('')}}</style>`

/** Returns the value that fills the width: the largest that is no outlier, or the aim where that is larger. */
export const makeScale = ({ bars, aim }: Panel): number => {
  const values = bars
    .map(({ value }) => value)
    .filter((value) => value > 0)
    .sort((a, b) => a - b)
  const first = values.findIndex((value, i) => i > 0 && value > OUTLIER * Math.max(values[i - 1]!, aim ?? 0))
  const isMinority = first > 0 && values.length - first < first
  const usual = isMinority ? values.slice(0, first) : values
  return Math.max(usual.at(-1) ?? 0, (aim ?? 0) * 1.1, Number.MIN_VALUE)
}

const printText = ({ value, note }: Bar, scale: number): string =>
  [figure(value), note, value > scale ? CUT_MARK : ''].filter((part) => part !== '').join(' ')

const panelSpec = (panel: Panel) => {
  const { title, unit, bars, aim } = panel
  const scale = makeScale(panel)
  const values = bars.map((bar) => ({
    label: bar.label,
    length: Math.min(bar.value, scale),
    text: printText(bar, scale),
    own: bar.own,
  }))
  const y = { field: 'label', type: 'nominal', sort: null }
  const x = {
    field: 'length',
    type: 'quantitative',
    axis: null,
    scale: { domain: [0, (scale * PANEL_WIDTH) / BAR_WIDTH], nice: false },
  }
  const color = { condition: { test: 'datum.own', value: colour('own') }, value: colour('bar') }
  const aimLine = {
    mark: { type: 'rule', color: colour('aim'), strokeDash: [3, 3], strokeWidth: 1.5 },
    encoding: { x: { datum: aim, axis: null } },
  }
  const text = { type: 'text', align: 'left', dx: 6 }
  const encoding = { x, y, text: { field: 'text' } }
  return {
    title: { text: title, subtitle: aim === null ? unit : `${unit}, aim ${figure(aim)}` },
    data: { values },
    width: PANEL_WIDTH,
    height: { step: BAR_PITCH },
    layer: [
      { mark: { type: 'bar', cornerRadiusEnd: 2, height: BAR_HEIGHT }, encoding: { x, y, color } },
      ...(aim === null ? [] : [aimLine]),
      { mark: { ...text, stroke: colour('background'), strokeWidth: 4 }, encoding },
      { mark: text, encoding },
    ],
  }
}

const titleFonts = { color: colour('text'), subtitleColor: colour('muted'), subtitleFontSize: 12 }

const makeSpec = ({ title, subtitle, panels }: Chart) => ({
  title: { text: title, subtitle, fontSize: 20, offset: 16 },
  background: colour('background'),
  columns: COLUMNS,
  bounds: 'flush',
  spacing: { column: LABEL_WIDTH, row: ROW_GAP },
  concat: panels.map(panelSpec),
  config: {
    aria: false,
    font: 'system-ui, -apple-system, "Segoe UI", sans-serif',
    view: { stroke: null },
    title: { anchor: 'start', frame: 'group', dx: -LABEL_WIDTH, fontSize: 14, ...titleFonts },
    text: { fontSize: 12, color: colour('text') },
    axisY: {
      title: null,
      domain: false,
      ticks: false,
      labelColor: colour('text'),
      labelFontSize: 12,
      labelPadding: 8,
      labelLimit: 0,
    },
  },
})

/** The size is computed, not measured: without a canvas the library only estimates how wide a text is. */
const readSize = ({ subtitle, panels }: Chart) => {
  const rows = Array.from({ length: Math.ceil(panels.length / COLUMNS) }, (_, row) =>
    Math.max(...panels.slice(row * COLUMNS, (row + 1) * COLUMNS).map(({ bars }) => bars.length * BAR_PITCH)),
  )
  const top = PADDING + TITLE_HEIGHT + subtitle.length * SUBTITLE_HEIGHT + PANEL_HEAD
  return {
    autosize: 'none',
    width: COLUMNS * PANEL_WIDTH + (COLUMNS - 1) * LABEL_WIDTH,
    height: rows.reduce((sum, height) => sum + height + ROW_GAP, -ROW_GAP),
    padding: { left: LABEL_WIDTH + PADDING, right: PADDING, top, bottom: PADDING },
  } as const
}

/** Draws a chart as SVG that follows the reader's colour scheme. */
export const toSvg = async (chart: Chart): Promise<string> => {
  const [{ compile }, { parse, View }] = await Promise.all([import('vega-lite'), import('vega')])
  const { spec } = compile(makeSpec(chart) as TopLevelSpec)
  const view = new View(parse({ ...spec, ...readSize(chart) }))
  const svg = await view.toSVG()
  view.finalize()
  return `${svg.replace('>', `>${DARK_STYLE}`)}\n`
}
