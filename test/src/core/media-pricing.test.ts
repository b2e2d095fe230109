/** What media and payments cost. */
import fc from 'fast-check'
import t from 'tap'
import { channelEntry, modelEntry } from '../../../schemas/config/catalog.ts'
import { countCharacters } from '../../../schemas/media/fields.ts'
import { imageJob, mediaJob, taskResult } from '../../../schemas/media/job.ts'
import { mediaPrice } from '../../../schemas/media/price.ts'
import { parseCredits, printCredits } from '../../../schemas/money.ts'
import { clampToOrder } from '../../../src/core/media/order.ts'
import {
  chargeOf,
  costOf,
  DEFAULT_VIDEO_SECONDS,
  holdOf,
  mediaPriceOf,
  pixelsOf,
  upstreamPriceOf,
} from '../../../src/core/media/pricing.ts'
import { priceOf, printPrice } from '../../../src/core/payments/price.ts'
import { modelAt } from '../../../src/core/pricing/changes.ts'

t.test('media cost what was delivered', async (t) => {
  const NOW = Date.parse('2026-06-01T00:00:00Z')

  function priceOf(pricing: object, images?: object, variant: string | null = null, now = NOW) {
    const price = mediaPriceOf(
      modelEntry.parse({ id: 'm', endpoint_type: 'images_generations', pricing, images }),
      variant,
      now,
    )
    if (price === null) throw new Error('no price')
    // As it comes back from the row of its task.
    return mediaPrice.parse(JSON.parse(JSON.stringify(price)))
  }

  const images = (n: number, more: object = {}) =>
    imageJob.parse({ work: 'image', prompt: 'a cat', n, ...more })
  const video = (duration?: number) => mediaJob.parse({ work: 'video', content: [], duration })
  const speech = (input: string) => mediaJob.parse({ work: 'speech', input, speed: 1 })
  const pictures = (...sizes: Array<string | null>) =>
    taskResult.parse({
      files: sizes.map((size) => {
        const [width, height] = size?.split('x').map(Number) ?? [null, null]
        return { role: 'image', width, height }
      }),
    })
  const lasting = (seconds: number | null) => taskResult.parse({ files: [{ role: 'video' }], seconds })
  const picture = { from: 'url', url: 'https://x.test/a.png' }

  const ORDINARY = priceOf({ unit: 'image', per_unit: '12.5' })

  t.test('images: held by what is asked for, charged by what came', async (t) => {
    t.equal(printCredits(holdOf(ORDINARY, images(4))), '50')
    const three = chargeOf(ORDINARY, images(4), pictures(null, '1024x1024', null))
    t.same(three, { cost: parseCredits('37.5'), units: '3', line: '3 images x 12.5 = 37.5' })
    t.match(chargeOf(ORDINARY, images(4), pictures()), { cost: 0n, units: '0' })
    const mixed = taskResult.parse({ files: [{ role: 'image' }, { role: 'cover' }, { role: 'audio' }] })
    t.equal(chargeOf(ORDINARY, images(1), mixed).units, '1', 'covers are no images')
  })

  t.test('a grid-style model: the hold is for four at least, the charge for what came', async (t) => {
    const grid = priceOf({ unit: 'image', per_unit: '5' }, { grid: true })
    const holds = [1, 3, 4, 5, 10].map((n) => printCredits(holdOf(grid, images(n))))
    t.same(holds, ['20', '20', '20', '25', '50'])
    t.equal(printCredits(chargeOf(grid, images(10), pictures(null, null, null, null)).cost), '20')
    t.equal(printCredits(chargeOf(grid, images(1), pictures(null, null, null)).cost), '15')
  })

  const TIERED = priceOf(
    {
      unit: 'image',
      per_unit: '17.79',
      pixel_tiers: [{ from_pixels: 2_400_000, per_unit: '35.58' }],
      input_image: '1.5',
    },
    { default_size: '2048x2048' },
  )

  t.test('tiers by pixels: the edge belongs to the upper one, and no size is the default size', async (t) => {
    const holdAt = (size: string | null) => printCredits(holdOf(TIERED, images(1, { size })))
    t.equal(holdAt('1024x1024'), '17.79')
    t.equal(holdAt('1x2399999'), '35.58', 'no size that there is')
    t.equal(holdAt('1600x1499'), '17.79', '2,398,400 pixels')
    t.equal(holdAt('1600x1500'), '35.58', '2,400,000 pixels')
    t.equal(holdAt('2048x2048'), '35.58')
    t.equal(holdAt(null), '35.58')
    t.equal(holdAt('auto'), '35.58')
    const nowhere = priceOf({
      unit: 'image',
      per_unit: '1',
      pixel_tiers: [
        { from_pixels: 100, per_unit: '2' },
        { from_pixels: 200, per_unit: '3' },
      ],
    })
    t.equal(
      printCredits(holdOf(nowhere, images(1))),
      '3',
      'a size that nobody knows costs what the largest does',
    )
    const small = priceOf(
      { unit: 'image', per_unit: '1', pixel_tiers: [{ from_pixels: 200, per_unit: '3' }] },
      { default_size: '10x10' },
    )
    const smallAt = (size: string | null) => printCredits(holdOf(small, images(1, { size })))
    t.same([null, 'auto', 'AUTO'].map(smallAt), ['1', '1', '1'], 'the default size')
    t.same(
      ['4K', '0x0', '10x10x10', '4096'].map(smallAt),
      ['3', '3', '3', '3'],
      'a word is no way around a tier',
    )
    t.equal(printCredits(chargeOf(small, images(1, { size: '4K' }), pictures('10x10')).cost), '1')
    const edges = ['9x11', '10x10', '10x19', '10x20'].map((size) =>
      printCredits(holdOf(nowhere, images(1, { size }))),
    )
    t.same(edges, ['1', '2', '2', '3'])
  })

  t.test('settled by the real size, downward only, each image by its own', async (t) => {
    const chargeAt = (asked: string | null, ...came: Array<string | null>) =>
      printCredits(chargeOf(TIERED, images(came.length, { size: asked }), pictures(...came)).cost)
    t.equal(chargeAt(null, '1024x1024'), '17.79')
    t.equal(chargeAt('1024x1024', '2048x2048'), '17.79', 'never upward')
    t.equal(chargeAt(null, null), '35.58', 'a size that is not reported is the requested one')
    t.equal(chargeAt('2048x2048', '1024x1024', '2048x2048', '1600x1499'), '71.16')
    const { line } = chargeOf(TIERED, images(2), pictures('2048x2048', '8x8'))
    t.equal(line, '1 image x 35.58 + 1 image x 17.79 = 53.37')
  })

  t.test('the operator pays for the size that was made, also a dearer one', async (t) => {
    const price = priceOf({
      unit: 'image',
      per_unit: '5',
      pixel_tiers: [{ from_pixels: 1_000_000, per_unit: '8' }],
    })
    const both = (asked: string, came: string | null) =>
      [chargeOf, costOf].map((of) => printCredits(of(price, images(1, { size: asked }), pictures(came)).cost))
    t.same(both('1024x768', '1440x1080'), ['5', '8'])
    t.same(both('1440x1080', '1024x768'), ['5', '5'])
    t.same(both('1024x768', null), ['5', '5'], 'a size that is not reported is the requested one')
    t.same(both('1440x1080', null), ['8', '8'])
  })

  t.test('images that go in', async (t) => {
    const job = images(2, { size: '512x512', images: [picture, picture, picture] })
    t.equal(printCredits(holdOf(TIERED, job)), '40.08')
    const charge = chargeOf(TIERED, job, pictures('512x512'))
    t.equal(charge.line, '1 image x 17.79 + 3 input images x 1.5 = 22.29')
    t.equal(charge.units, '1')
    t.equal(chargeOf(TIERED, job, pictures()).cost, 0n, 'nothing came, nothing is owed')
  })

  t.test('films: by the length that came, else by the one asked for, else by the default', async (t) => {
    const price = priceOf({ unit: 'second', per_unit: '3.96' })
    t.equal(printCredits(holdOf(price, video(10))), '39.6')
    t.equal(printCredits(holdOf(price, video())), printCredits(parseCredits('3.96') * 12n))
    t.equal(DEFAULT_VIDEO_SECONDS, 12)
    const charge = (asked: number | undefined, came: number | null) =>
      chargeOf(price, video(asked), lasting(came))
    t.same(charge(10, 5.04), {
      cost: parseCredits('19.9584'),
      units: '5.04',
      line: '5.04 seconds x 3.96 = 19.9584',
    })
    t.same(charge(10, null).units, '10')
    t.same(charge(undefined, null).units, '12')
    t.equal(charge(10, 10.7).units, '10.7', 'as it was made')
    t.equal(charge(10, 13.5).units, '13.5', 'also beyond what was asked for')
    for (const [asked, came] of [
      [5, 18],
      [5, 60],
      [10, 86_401],
    ] as const)
      t.equal(charge(asked, came).units, String(came), 'as its upstream reports it')
    t.equal(charge(10, 0).cost, 0n)
    t.equal(charge(10, 1).line, '1 second x 3.96 = 3.96')
    t.equal(charge(10, -1).units, '10')
  })

  t.test('seconds are rounded once, with the price', async (t) => {
    const price = priceOf({ unit: 'second', per_unit: '4.04' })
    const cost = (seconds: number) => printCredits(chargeOf(price, video(5), lasting(seconds)).cost)
    t.equal(cost(1.23456789), '4.98765428')
    t.equal(chargeOf(price, video(5), lasting(1.23456789)).units, '1.23456789')
    t.equal(cost(0.1 + 0.2), '1.212')
    t.equal(cost(1e-8), '0.00000004')
    t.equal(cost(1e-7), '0.0000004', 'a number with an exponent')
    t.equal(cost(1e-21), '0')
    t.equal(cost(1e9), '4040000000')
  })

  t.test('a model may declare its longest video: what is longer is charged as that', async (t) => {
    const entry = modelEntry.parse({
      id: 'm',
      endpoint_type: 'videos_generations',
      pricing: { unit: 'second', per_unit: '2' },
      videos: { max_duration: 20 },
    })
    const price = mediaPrice.parse(JSON.parse(JSON.stringify(mediaPriceOf(entry, null, NOW))))
    const units = (seconds: number | null, asked = 5) => chargeOf(price, video(asked), lasting(seconds)).units
    t.same([units(18), units(20), units(60), units(null)], ['18', '20', '20', '5'])
    t.match(clampToOrder(video(5), price, lasting(60)), {
      seconds: 60,
      beyond: ['60 seconds, charged as 20'],
    })
  })

  t.test('grades of one model have separate prices', async (t) => {
    const pricing = { unit: 'second', variants: { fast: '4.04', standard: '8.09', max: '12.13' } }
    const holdAt = (grade: string) => printCredits(holdOf(priceOf(pricing, undefined, grade), video(10)))
    t.same(['fast', 'standard', 'max'].map(holdAt), ['40.4', '80.9', '121.3'])
    const entry = modelEntry.parse({ id: 'm', endpoint_type: 'videos_generations', pricing })
    for (const other of [null, 'ultra', 'toString'])
      t.equal(mediaPriceOf(entry, other, NOW), null, String(other))
    const based = modelEntry.parse({ ...entry, pricing: { ...pricing, per_unit: '7' } })
    t.equal(mediaPriceOf(based, 'ultra', NOW), null, 'the base price is no price of an unknown variant')
    t.equal(mediaPriceOf(based, null, NOW)?.perUnit, '7000000000000')
    t.equal(mediaPriceOf(modelEntry.parse({ id: 'm', callable: false }), null, NOW), null)
  })

  const RESOLUTIONS = { '480p': '2.5', '720p': '5', '1080p': '11.25' }

  t.test('the variant that was delivered is charged where it is known, else the one asked for', async (t) => {
    const price = priceOf({ unit: 'second', per_unit: '5', variants: RESOLUTIONS }, undefined, '480p')
    const cost = (variant: string | null, width: number | null = null, height: number | null = null) => {
      const film = { files: [{ role: 'video', width, height }], seconds: 10, variant }
      return printCredits(chargeOf(price, video(10), taskResult.parse(film)).cost)
    }
    t.equal(cost('1080p'), '112.5')
    t.equal(cost(' 720P '), '50')
    for (const unsaid of [null, '', 'adaptive', 'auto']) t.equal(cost(unsaid), '25', String(unsaid))
    for (const unpriced of ['4k', 'constructor']) t.equal(cost(unpriced), '25', unpriced)
    const sizes: readonly (readonly [number, number, string])[] = [
      [864, 480, '25'],
      [480, 480, '25'],
      [640, 640, '25'],
      [1280, 720, '50'],
      [720, 1280, '50'],
      [1080, 1920, '112.5'],
      [3840, 2160, '25'],
      [16, 16, '25'],
    ]
    for (const [width, height, charged] of sizes)
      t.equal(cost(null, width, height), charged, `${width}x${height}`)
    t.equal(cost('480p', 1920, 1080), '25', 'its own word says more than a size')
  })

  t.test('what goes beyond an order is said', async (t) => {
    const price = priceOf({ unit: 'second', per_unit: '5', variants: RESOLUTIONS }, undefined, '480p')
    const within = (more: object, asked = 10) =>
      clampToOrder(
        video(asked),
        price,
        taskResult.parse({ files: [{ role: 'video', seconds: 1e9 }], seconds: 10, variant: '480p', ...more }),
      )
    for (const fine of [{}, { seconds: 10.4 }, { seconds: 9 }, { seconds: null }, { variant: null }])
      t.same(within(fine).beyond, [], JSON.stringify(fine))
    t.match(within({ seconds: 60 }), {
      seconds: 60,
      files: [{ seconds: 1e9 }],
      beyond: ['60 seconds, where 10 were asked for'],
    })
    t.match(within({ seconds: 10.75 }), {
      seconds: 10.75,
      beyond: ['10.75 seconds, where 10 were asked for'],
    })
    t.same(within({ variant: '4k' }).beyond, ['4k, which has no price: charged as 480p'])
    t.same(within({ variant: '1080p' }).beyond, ['1080p, where 480p was requested'])
    t.same(within({ variant: '<b>' }).beyond, ['another variant, which has no price: charged as 480p'])
    const many = taskResult.parse({ files: Array(7).fill({ role: 'image' }) })
    t.match(clampToOrder(images(3), ORDINARY, many), {
      files: { length: 3 },
      beyond: ['7 files, of which 3 are delivered and charged'],
    })
  })

  t.test('speech: characters as Unicode counts them, exact to the last place', async (t) => {
    const price = priceOf({ unit: '1000_characters', per_unit: '125.36' })
    t.equal(printCredits(holdOf(price, speech('x'.repeat(1000)))), '125.36')
    t.equal(printCredits(holdOf(price, speech('x'))), '0.12536')
    t.equal(printCredits(holdOf(price, speech('x'.repeat(5000)))), '626.8')
    const charge = chargeOf(price, speech('日本語🎉'), lasting(3))
    t.same(charge, {
      cost: parseCredits('0.50144'),
      units: '4',
      line: '4 characters x 125.36 / 1000 = 0.50144',
    })
    t.equal(countCharacters('👩‍👩‍👧'), 5)
  })

  t.test('flat prices', async (t) => {
    const music = priceOf({ unit: 'generation', per_unit: '19.41' })
    const job = mediaJob.parse({ work: 'music', instrumental: false, prompt: 'x' })
    const twoSongs = taskResult.parse({ files: [{ role: 'audio' }, { role: 'audio' }] })
    t.equal(printCredits(holdOf(music, job)), '19.41')
    t.same(chargeOf(music, job, twoSongs), {
      cost: parseCredits('19.41'),
      units: '1',
      line: '1 generation x 19.41 = 19.41',
    })
    const free = priceOf({ unit: 'call', per_unit: '0' })
    t.equal(holdOf(free, job), 0n)
  })

  t.test('a discount is a factor on all of it, until its instant', async (t) => {
    const pricing = {
      unit: 'image',
      per_unit: '17.79',
      input_image: '1.5',
      discount: '0.8',
      discount_until: '2026-06-01T00:00:00.001Z',
    }
    const job = images(1, { images: [picture] })
    t.equal(
      chargeOf(priceOf(pricing), job, pictures(null)).line,
      '(1 image x 17.79 + 1 input image x 1.5) x 0.8 = 15.432',
    )
    t.equal(printCredits(holdOf(priceOf(pricing, undefined, null, NOW + 1), job)), '19.29')
    const { discount_until: _, ...endless } = pricing
    t.equal(printCredits(holdOf(priceOf(endless, undefined, null, NOW + 1e12), job)), '15.432')
  })

  t.test('one rounding, half up, after the sum', async (t) => {
    const price = priceOf({ unit: 'image', per_unit: '0.000000004', input_image: '0.000000001' })
    t.equal(holdOf(price, images(1)), 0n)
    t.equal(holdOf(price, images(1, { images: [picture] })), 1n, '0.5 of a unit')
    t.equal(holdOf(price, images(3)), 1n, '1.2 of a unit')
  })

  t.test('sizes', async (t) => {
    for (const [size, pixels] of [
      ['1024x768', 786_432],
      [' 1024 X 768 ', 786_432],
      ['1024*768', 786_432],
      ['auto', null],
      ['0x100', null],
      ['1024', null],
      ['-4x4', null],
      ['123456x1', null],
      [null, null],
    ] as const)
      t.equal(pixelsOf(size), pixels, String(size))
  })

  const decimal = fc.bigInt({ min: 0n, max: 10n ** 15n })
  const text = (rate: bigint) => `${rate / 10n ** 6n}.${String(rate % 10n ** 6n).padStart(6, '0')}`
  const anyPrice = fc
    .record({ base: decimal, upper: decimal, input: decimal, edge: fc.integer({ min: 1, max: 5_000_000 }) })
    .map(({ base, upper, input, edge }) =>
      priceOf({
        unit: 'image',
        per_unit: text(base),
        pixel_tiers: [{ from_pixels: edge, per_unit: text(base + upper) }],
        input_image: text(input),
      }),
    )
  const side = fc.integer({ min: 1, max: 4096 })
  const anySize = fc.tuple(side, side).map(([width, height]) => `${width}x${height}`)

  t.test(
    'what came costs no more than what was kept back, when no more came than was asked for',
    async (t) => {
      const property = fc.property(
        anyPrice,
        fc.integer({ min: 1, max: 10 }),
        anySize,
        fc.array(anySize, { maxLength: 10 }),
        fc.integer({ min: 0, max: 16 }),
        (price, n, size, came, inputs) => {
          const job = images(n, { size, images: Array(inputs).fill(picture) })
          const { cost } = chargeOf(price, job, pictures(...came.slice(0, n)))
          return cost >= 0n && cost <= holdOf(price, job)
        },
      )
      fc.assert(property, { numRuns: 300 })
      t.pass()
    },
  )

  t.test('the cost of seconds is within one unit of the exact quotient, and grows with them', async (t) => {
    const property = fc.property(decimal, fc.integer({ min: 0, max: 10 ** 9 }), (rate, micros) => {
      const price = priceOf({ unit: 'second', per_unit: text(rate) })
      const { cost } = chargeOf(price, video(1000), lasting(micros / 1e6))
      const exact = rate * 10n ** 6n * BigInt(micros)
      const error = 2n * (cost * 10n ** 10n - exact)
      return error > -(10n ** 10n) && error <= 10n ** 10n
    })
    fc.assert(property, { numRuns: 500 })
    t.pass()
  })
})

t.test('media discount holds and speech costs as billed', async (t) => {
  // A discount of media holds for a request from its instant on, and speech costs the operator what its provider bills.
  const NOW = Date.parse('2026-06-01T00:00:00Z')
  const modelOf = (pricing: object) => ({
    entry: modelEntry.parse({ id: 'm', endpoint_type: 'audio_speech', pricing }),
  })
  const speech = (input: string) => mediaJob.parse({ work: 'speech', input, speed: 1 })

  t.test('the discount at the instant of the request holds while its body comes', async (t) => {
    const discounted = { per_unit: '1', discount: '0.8' }
    const prices = { unit: 'call', ...discounted }
    const until = '2026-06-01T00:00:00.001Z'
    const change = { from: '2026-01-01T00:00:00Z', ...discounted, discount_until: until }
    for (const [pricing, requested, held] of [
      [{ ...prices, discount_until: until }, NOW, '0.8'],
      [{ ...prices, discount_until: until }, NOW + 1, '1'],
      [{ unit: 'call', per_unit: '9', changes: [change] }, NOW, '0.8'],
      [prices, NOW, '0.8'],
    ] as const) {
      const price = mediaPriceOf(modelAt(modelOf(pricing), requested).entry, null, NOW + 60_000)!
      t.equal(printCredits(holdOf(price, speech('hi'))), held)
    }
  })

  t.test('speech costs the operator the characters that the provider bills', async (t) => {
    const price = mediaPriceOf(modelOf({ unit: '1000_characters', per_unit: '1000' }).entry, null, NOW)!
    const made = taskResult.parse({ seconds: 3, billed_characters: 9 })
    t.equal(chargeOf(price, speech('日本語🎉'), made).units, '4', 'each is charged once')
    t.equal(costOf(price, speech('日本語🎉'), made).units, '9')
    t.equal(
      costOf(price, speech('日本語🎉'), taskResult.parse({ seconds: 3 })).units,
      '4',
      'of an upstream that does not report them',
    )
  })
})

t.test('videos with sound have a price', async (t) => {
  // A video with sound is held, charged and costed at the price that was agreed for it.
  const NOW = Date.parse('2026-06-01T00:00:00Z')
  const job = mediaJob.parse({ work: 'video', content: [], duration: 5 })
  const made = (height: number) =>
    taskResult.parse({ files: [{ role: 'video', width: Math.round((height * 16) / 9), height }], seconds: 4 })

  const entryOf = (pricing: object) =>
    modelEntry.parse({
      id: 'm',
      endpoint_type: 'videos_generations',
      pricing: { unit: 'second', ...pricing },
    })

  function agreed(pricing: object, sound: boolean, variant: string | null = null, now = NOW) {
    const price = mediaPriceOf(entryOf(pricing), variant, now, sound)
    // As it comes back from the row of its task.
    return price === null ? null : mediaPrice.parse(JSON.parse(JSON.stringify(price)))
  }

  const held = (...of: Parameters<typeof agreed>) => printCredits(holdOf(agreed(...of)!, job))

  t.test('sound has its price; without one it has the price of every video', async (t) => {
    const both = { per_unit: '0.2', with_audio: { per_unit: '0.4' } }
    t.same([held(both, false), held(both, true)], ['1', '2'])
    t.equal(held({ ...both, discount: '0.5' }, true), '1')
    t.equal(held({ per_unit: '0.2' }, true), '1')
    t.equal(agreed({ per_unit: '0.2', with_audio: {} }, true), null, 'sound is not for sale')
    t.equal(chargeOf(agreed(both, true)!, job, made(720)).line, '4 seconds x 0.4 = 1.6')
  })

  const VARIANTS = {
    variants: { '720p': '1', '1080p': '2' },
    with_audio: { variants: { '720p': '3', '4k': '9' } },
  }

  t.test('the delivered resolution is charged with the sound that was agreed', async (t) => {
    const silent = agreed(VARIANTS, false, '1080p')!
    const loud = agreed(VARIANTS, true, '4k')!
    const charged = (price: typeof silent, height: number) =>
      printCredits(chargeOf(price, job, made(height)).cost)
    t.same([charged(silent, 720), charged(silent, 1080)], ['4', '8'])
    t.same([charged(loud, 720), charged(loud, 2160)], ['12', '36'])
    t.equal(agreed(VARIANTS, true, '1080p'), null, 'a price without sound is none with it')
    const reported = { ...made(1080), variant: '1080p' }
    const { beyond } = clampToOrder(job, agreed(VARIANTS, true, '720p')!, reported)
    t.same(beyond, ['1080p, which has no price: charged as 720p'])
  })

  t.test('a planned change brings its own prices of sound, or takes them away', async (t) => {
    const changes = [
      { from: '2026-07-01T00:00:00Z', per_unit: '0.3', with_audio: { per_unit: '0.5' } },
      { from: '2026-08-01T00:00:00Z', per_unit: '0.6' },
    ]
    const prices = { per_unit: '0.2', changes }
    const at = (day: string) => held(prices, true, null, Date.parse(day))
    t.same(['2026-06-01', '2026-07-01', '2026-08-01'].map(at), ['1', '2.5', '3'])
  })

  t.test('the operator pays the price of the channel, with the sound that was agreed', async (t) => {
    const paid = (cost: object, sound: boolean, variant: string | null = null) => {
      const channel = channelEntry.parse({
        ...{ id: 'c', protocol: 'ark-video', base_url: 'https://c.example', models: { m: 'up' } },
        cost: { m: { unit: 'second', ...cost } },
      })
      const pricing = variant === null ? { per_unit: '1' } : VARIANTS
      const price = agreed(pricing, sound, variant)!
      const task = { model: 'm', channelId: 'c', price, submittedAt: NOW }
      const upstream = upstreamPriceOf({ channels: [channel], models: [entryOf(pricing)] }, task)
      if (upstream === null || upstream.unit === '1M_tokens') return null
      return printCredits(costOf(upstream, job, made(720)).cost)
    }
    const both = { per_unit: '0.1', with_audio: { per_unit: '0.2' } }
    t.same([paid(both, false), paid(both, true)], ['0.4', '0.8'], 'also where the customer has one price')
    t.equal(paid({ per_unit: '0.1' }, true), '0.4')
    t.equal(paid({ per_unit: '0.1', with_audio: { variants: { '720p': '0.3' } } }, true, '720p'), '1.2')
    t.equal(
      paid({ per_unit: '0.1', with_audio: {} }, true),
      null,
      'an unknown cost is no cost of a silent one',
    )
  })
})

t.test('prices are what the provider takes', async (t) => {
  // Prices are rounded up to what the payment provider takes, and printed in units of their currency.
  const PRICES = [
    // currency, credits for one unit, what the provider is to be sent, how it is printed
    ['usd', '100', 405n, '4.05'],
    ['jpy', '1', 405n, '405'],
    // The last of three decimals is 0.
    ['kwd', '100', 4050n, '4.050'],
    // In hundredths, of which the provider takes whole units alone.
    ['isk', '1', 40_500n, '405.00'],
    ['ugx', '1', 40_500n, '405.00'],
    ['huf', '1', 40_440n, '404.40'],
  ] as const

  for (const [currency, perUnit, amount, printed] of PRICES)
    t.test(`404.4 credits in ${currency}`, async (t) => {
      const price = priceOf(parseCredits('404.4'), { currency, credits_per_unit: parseCredits(perUnit) })
      t.same(price, { currency, amount })
      t.equal(printPrice(price), printed)
    })
})
