import { figure } from './table.ts'

/**
 * Bar charts as SVG, in panels of two columns, readable on a light and on a dark page: the picture brings its own
 * ground and follows the reader's colour scheme. Bars carry their values, so no axis is drawn.
 */

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

export interface Picture {
  title: string
  subtitle: string[]
  panels: Panel[]
}

const WIDTH = 1040
const MARGIN = 24
const GAP = 16
const PADDING = 16
const PANEL_WIDTH = (WIDTH - 2 * MARGIN - GAP) / 2
const PANEL_HEAD = 46
const BAR_PITCH = 25
const BAR_HEIGHT = 15
const LABEL_WIDTH = 198
const VALUE_WIDTH = 112
const BAR_WIDTH = PANEL_WIDTH - 2 * PADDING - LABEL_WIDTH - VALUE_WIDTH
const LEAST_BAR_WIDTH = 2
const BREAK_WIDTH = 8
const LINE_HEIGHT = 18
const HEADER = 66
/** Bars so many times longer than the others, when they are fewer, are cut: the others could not be told apart. */
const OUTLIER = 4

const STYLE = `
    .ground { fill: #ffffff } .card { fill: #f6f8fa; stroke: #d1d9e0 }
    text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
    .title { font-size: 20px; font-weight: 600 } .head { font-weight: 600; font-size: 14px }
    .muted { fill: #59636e; font-size: 12px } .own-name { font-weight: 600 }
    .value { font-variant-numeric: tabular-nums; paint-order: stroke; stroke: #f6f8fa; stroke-width: 5px }
    .bar { fill: #98a2ae } .own { fill: #0969da } .cut { stroke: #f6f8fa; stroke-width: 3 }
    .aim { stroke: #bc4c00; stroke-width: 1.5; stroke-dasharray: 3 3 }
    @media (prefers-color-scheme: dark) {
      .ground { fill: #0d1117 } .card { fill: #151b23; stroke: #3d444d }
      text { fill: #f0f6fc } .muted { fill: #9198a1 } .value { stroke: #151b23 }
      .bar { fill: #656c76 } .own { fill: #4493f8 } .cut { stroke: #151b23 }
      .aim { stroke: #f0883e }
    }`

const escapeText = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

const round = (value: number): string => String(Math.round(value * 10) / 10)

const textAt = (x: number, y: number, kind: string, text: string, anchor = 'start'): string =>
  `<text x="${round(x)}" y="${round(y)}" class="${kind}" text-anchor="${anchor}">${escapeText(text)}</text>`

/** The value that fills the whole width: the largest that is no outlier, and the aim where there is one. */
export const scaleOf = ({ bars, aim }: Panel): number => {
  const values = bars.map(({ value }) => value).sort((a, b) => a - b)
  const first = values.findIndex((value, i) => i > 0 && value > OUTLIER * Math.max(values[i - 1]!, aim ?? 0))
  const isMinority = first > 0 && values.length - first < first
  const usual = isMinority ? values.slice(0, first) : values
  return Math.max(usual.at(-1) ?? 0, (aim ?? 0) * 1.1, Number.MIN_VALUE)
}

interface DrawnBar {
  shape: string
  value: string
}

/** The value is drawn apart, so that it comes to lie over the line of the aim. */
const drawBar = ({ label, value, note, own }: Bar, x: number, y: number, scale: number): DrawnBar => {
  const width = Math.max(LEAST_BAR_WIDTH, (Math.min(value, scale) / scale) * BAR_WIDTH)
  const left = x + PADDING + LABEL_WIDTH
  const base = y + BAR_HEIGHT - 3
  const kind = own ? 'own' : 'bar'
  const breakAt = round(left + width - 3 * BREAK_WIDTH)
  const mark = `<path class="cut" d="M${breakAt} ${y + BAR_HEIGHT + 2}l${BREAK_WIDTH} ${-BAR_HEIGHT - 4}"/>`
  const shape = [
    textAt(left - 10, base, own ? 'own-name' : '', label, 'end'),
    `<rect class="${kind}" x="${round(left)}" y="${y}" width="${round(width)}" height="${BAR_HEIGHT}" rx="2"/>`,
    value > scale ? mark : '',
  ]
  const text = note === '' ? figure(value) : `${figure(value)} ${note}`
  return { shape: shape.join(''), value: textAt(left + width + 7, base, 'value', text) }
}

const panelHeight = ({ bars }: Panel): number => PANEL_HEAD + bars.length * BAR_PITCH + PADDING / 2

const unitText = ({ unit, aim }: Panel): string => (aim === null ? unit : `${unit}, aim ${figure(aim)}`)

const drawAim = ({ aim, bars }: Panel, x: number, top: number, scale: number): string => {
  if (aim === null) return ''
  const at = x + PADDING + LABEL_WIDTH + (aim / scale) * BAR_WIDTH
  return `<path class="aim" d="M${round(at)} ${top - 4}V${top + bars.length * BAR_PITCH - 6}"/>`
}

const drawPanel = (panel: Panel, x: number, y: number, height: number): string => {
  const scale = scaleOf(panel)
  const top = y + PANEL_HEAD
  const bars = panel.bars.map((bar, i) => drawBar(bar, x, top + i * BAR_PITCH, scale))
  const parts = [
    `<rect class="card" x="${x}" y="${y}" width="${PANEL_WIDTH}" height="${height}" rx="8"/>`,
    textAt(x + PADDING, y + 27, 'head', panel.title),
    textAt(x + PANEL_WIDTH - PADDING, y + 27, 'muted', unitText(panel), 'end'),
    ...bars.map(({ shape }) => shape),
    drawAim(panel, x, top, scale),
    ...bars.map(({ value }) => value),
  ]
  return `<g>${parts.join('')}</g>`
}

/** Draws the picture; panels stand in pairs, each pair as high as its longer one. */
export const toSvg = ({ title, subtitle, panels }: Picture): string => {
  let y = HEADER + subtitle.length * LINE_HEIGHT
  const drawn: string[] = []
  for (let i = 0; i < panels.length; i += 2) {
    const pair = panels.slice(i, i + 2)
    const height = Math.max(...pair.map(panelHeight))
    drawn.push(...pair.map((panel, j) => drawPanel(panel, MARGIN + j * (PANEL_WIDTH + GAP), y, height)))
    y += height + GAP
  }
  const height = y - GAP + MARGIN
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img">`,
    `  <title>${escapeText(title)}</title>`,
    `  <style>${STYLE}\n  </style>`,
    `  <rect class="ground" width="${WIDTH}" height="${height}" rx="10"/>`,
    `  ${textAt(MARGIN, MARGIN + 20, 'title', title)}`,
    ...subtitle.map((line, i) => `  ${textAt(MARGIN, MARGIN + 42 + i * LINE_HEIGHT, 'muted', line)}`),
    ...drawn.map((panel) => `  ${panel}`),
    '</svg>\n',
  ].join('\n')
}
