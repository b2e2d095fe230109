/** People with each kind of color blindness can tell the series of a chart apart, in both themes. */
import type { CDPSession, Page } from 'playwright-core'
import t from 'tap'
import { withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import { STORY_CONFIG, signIn } from './support.ts'

const DEFICIENCIES = ['none', 'protanopia', 'deuteranopia', 'tritanopia'] as const
/** Series that a chart draws side by side. */
const CHARTS = [
  ['series-1', 'series-bad', 'series-warn', 'series-other'],
  ['series-1', 'series-2', 'series-3'],
] as const
/** By CIEDE2000: from 10 on, two areas differ at a glance. */
const LEAST_DIFFERENCE = 15
const SWATCH_PX = 20

type Lab = readonly [l: number, a: number, b: number]

/** Returns a color of the screen, 0 to 255, as CIELAB. */
function toLab(rgb: readonly number[]): Lab {
  const [r = 0, g = 0, b = 0] = rgb.map((value) => {
    const share = value / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  const [x = 0, y = 0, z = 0] = [
    (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047,
    0.2126 * r + 0.7152 * g + 0.0722 * b,
    (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883,
  ].map((value) => (value > 0.008856 ? Math.cbrt(value) : 7.787 * value + 16 / 116))
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)]
}

const computeCosine = (degrees: number): number => Math.cos((degrees * Math.PI) / 180)

/** Returns how different two colors look, by CIEDE2000. */
function differ([l1, a1, b1]: Lab, [l2, a2, b2]: Lab): number {
  const chroma = (Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2
  const stretch = 1.5 - 0.5 * Math.sqrt(chroma ** 7 / (chroma ** 7 + 25 ** 7))
  const [c1, c2] = [Math.hypot(stretch * a1, b1), Math.hypot(stretch * a2, b2)]
  const [h1, h2] = [
    [a1, b1],
    [a2, b2],
  ].map(([a = 0, b = 0]) => ((Math.atan2(b, stretch * a) * 180) / Math.PI + 360) % 360) as [number, number]
  const isFar = Math.abs(h2 - h1) > 180
  const turn = isFar ? h2 - h1 - 360 * Math.sign(h2 - h1) : h2 - h1
  const hue = isFar ? (h1 + h2 + 360) / 2 : (h1 + h2) / 2
  const [l, c] = [(l1 + l2) / 2, (c1 + c2) / 2]
  const t =
    1 -
    0.17 * computeCosine(hue - 30) +
    0.24 * computeCosine(2 * hue) +
    0.32 * computeCosine(3 * hue + 6) -
    0.2 * computeCosine(4 * hue - 63)
  const byLightness = (l2 - l1) / (1 + (0.015 * (l - 50) ** 2) / Math.sqrt(20 + (l - 50) ** 2))
  const byChroma = (c2 - c1) / (1 + 0.045 * c)
  const byHue = (2 * Math.sqrt(c1 * c2) * Math.sin((turn * Math.PI) / 360)) / (1 + 0.015 * c * t)
  const rotation =
    -2 *
    Math.sqrt(c ** 7 / (c ** 7 + 25 ** 7)) *
    computeCosine(90 - 60 * Math.exp(-(((hue - 275) / 25) ** 2)))
  return Math.sqrt(byLightness ** 2 + byChroma ** 2 + byHue ** 2 + rotation * byChroma * byHue)
}

/** Puts a patch of each color at the top of the page. */
const showSwatches = (names: readonly string[]): string => `{
  const box = document.createElement('div')
  box.id = 'swatches'
  Object.assign(box.style, { position: 'fixed', zIndex: 99, top: 0, left: 0, display: 'flex' })
  for (const name of ${JSON.stringify(names)}) {
    const one = document.createElement('div')
    Object.assign(one.style, {
      width: '${SWATCH_PX}px', height: '${SWATCH_PX}px', background: 'var(--color-' + name + ')',
    })
    box.append(one)
  }
  document.querySelector('#swatches')?.remove()
  document.body.append(box)
}`

/** Returns the colors of the patches as the screen shows them: the page itself knows nothing of the simulation. */
async function readSwatches(page: Page, devtools: CDPSession, count: number): Promise<number[][]> {
  const clip = { x: 0, y: 0, width: count * SWATCH_PX, height: SWATCH_PX, scale: 1 }
  const { data } = await devtools.send('Page.captureScreenshot', { format: 'png', clip })
  return page.evaluate<number[][]>(`(async () => {
    const picture = new Image()
    picture.src = 'data:image/png;base64,${data}'
    await picture.decode()
    const canvas = document.createElement('canvas')
    canvas.width = picture.width
    canvas.height = picture.height
    const pen = canvas.getContext('2d')
    pen.drawImage(picture, 0, 0)
    const step = picture.width / ${count}
    return Array.from({ length: ${count} }, (_, at) =>
      [...pen.getImageData(Math.floor((at + 0.5) * step), picture.height / 2, 1, 1).data].slice(0, 3))
  })()`)
}

t.test('colors of charts', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  await withPage(t, 'colors', async (page) => {
    await signIn(service, page, { name: 'Iris' })
    const devtools = await page.context().newCDPSession(page)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      for (const names of CHARTS) {
        await page.evaluate(showSwatches(names))
        for (const type of DEFICIENCIES) {
          await devtools.send('Emulation.setEmulatedVisionDeficiency', { type })
          const colors = (await readSwatches(page, devtools, names.length)).map(toLab)
          const tooClose = names.flatMap((name, at) =>
            names.slice(at + 1).flatMap((other, further) => {
              const difference = differ(colors[at]!, colors[at + 1 + further]!)
              return difference < LEAST_DIFFERENCE ? [`${name} and ${other}: ${difference.toFixed(1)}`] : []
            }),
          )
          t.same(tooClose, [], `${names.join(', ')}: ${colorScheme}, ${type}`)
        }
      }
    }
  })
})
