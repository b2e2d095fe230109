/** What a size becomes. See docs/api-rules.md, "Images". */
import t from 'tap'
import { imageTraits } from '../../../schemas/config/catalog.ts'
import { type ImageShapeRequest, shapeFor } from '../../../src/core/media/image-shape.ts'

const ORDINARY = imageTraits.parse({})
const GRID = imageTraits.parse({ grid: true })
const WORDS = imageTraits.parse({ ratio_in_prompt: true })

const wish = (size: string | null, more: Partial<ImageShapeRequest> = {}): ImageShapeRequest => ({
  prompt: 'A mill',
  size,
  extra: {},
  ...more,
})

t.test('an ordinary model gets it as it is', async (t) => {
  for (const traits of [undefined, ORDINARY])
    for (const size of ['1024x1024', '2K', 'auto', 'anything', null]) {
      const asked = wish(size, { extra: { quality: 'hd' } })
      t.strictSame(shapeFor(traits, asked), asked)
    }
})

t.test('a grid-style model gets the nearest of its five ratios', async (t) => {
  const expected: Readonly<Record<string, string | null>> = {
    '1024x1024': '1024x1024',
    '1000x1001': '1024x1024',
    '1920x1080': '1024x576',
    '4000x1000': '1024x576',
    '1080x1920': '576x1024',
    '1x99999': '576x1024',
    '800x600': '1024x768',
    '1536x1024': '1024x768',
    '600x800': '768x1024',
    '1024X1536': '768x1024',
    '640*480': '1024x768',
    '16:9': '1024x576',
    '3:4': '768x1024',
    auto: null,
  }
  for (const [size, taken] of Object.entries(expected)) t.equal(shapeFor(GRID, wish(size))?.size, taken, size)
  t.equal(shapeFor(GRID, wish(null))?.size, null)
  // Between 1:1 and 4:3 the middle is their geometric mean.
  t.equal(shapeFor(GRID, wish('1154x1000'))?.size, '1024x1024')
  t.equal(shapeFor(GRID, wish('1155x1000'))?.size, '1024x768')
})

t.test('a flag at the end of the prompt says how fine a grid is drawn', async (t) => {
  const drawn = (prompt: string, quality: unknown) =>
    shapeFor(GRID, wish(null, { prompt, extra: { quality, seed: 1 } }))
  const rest = { size: null, extra: { seed: 1 } }
  for (const quality of ['hd', 'high'])
    t.strictSame(drawn('A mill', quality), { ...rest, prompt: 'A mill --hd' })
  for (const quality of ['sd', 'standard', 'medium', 'low'])
    t.strictSame(drawn('A mill', quality), { ...rest, prompt: 'A mill --sd' })
  for (const [prompt, sent] of [
    ['A mill --sd', 'A mill --sd'],
    ['A mill --hd', 'A mill --hd'],
    ['--hd A mill --repeat 4', 'A mill --hd'],
    ['A mill \u2014SD --fast', 'A mill --sd'],
  ])
    for (const quality of ['hd', 'low', undefined])
      t.strictSame(drawn(prompt!, quality), { ...rest, prompt: sent }, 'its own flag says more')
  t.equal(drawn('A mill --hdr', 'hd')?.prompt, 'A mill --hdr --hd')
  for (const quality of ['auto', 7, undefined, 'constructor'])
    t.match(
      drawn('A mill', quality),
      { prompt: 'A mill', extra: { quality } },
      'what is none of these is left',
    )
})

t.test('a model that takes no size gets the ratio in words', async (t) => {
  const told = (size: string) => shapeFor(WORDS, wish(size))
  const expected: Readonly<Record<string, string>> = {
    '1024x1024': '1:1',
    '1920x1080': '16:9',
    '1024x1536': '2:3',
    '2560x1080': '16:9',
    '1001x1000': '1:1',
    '21:9': '7:3',
  }
  for (const [size, ratio] of Object.entries(expected))
    t.strictSame(told(size), { prompt: `A mill\n\nAspect ratio: ${ratio}`, size: null, extra: {} }, size)
  t.strictSame(told('auto'), { prompt: 'A mill', size: null, extra: {} })
  t.strictSame(
    shapeFor(WORDS, wish(null, { extra: { quality: 'hd' } })),
    wish(null, { extra: { quality: 'hd' } }),
  )
})

t.test('what is no size has no ratio', async (t) => {
  for (const traits of [GRID, WORDS])
    for (const size of [
      'large',
      '2K',
      '0x10',
      '10x0',
      '1024',
      '1024x',
      'x',
      '1024x1024x3',
      '100000x1',
      '0:1',
    ])
      t.equal(shapeFor(traits, wish(size)), null, size)
})
