/** Files and the requests for them: types, lengths, sizes, prompts. */

import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { channelEntry, imageTraits, modelEntry, pricing } from '../../../schemas/config/catalog.ts'
import { countCharacters } from '../../../schemas/media/fields.ts'
import { imageJob, mediaJob, taskResult } from '../../../schemas/media/job.ts'
import { mediaPrice } from '../../../schemas/media/price.ts'
import { parseCredits, printCredits } from '../../../schemas/money.ts'
import { namesJson, prefersSound } from '../../../src/core/accepted-format.ts'
import { measureAudioSeconds } from '../../../src/core/media/audio-length.ts'
import { chooseShape, type ImageShapeRequest } from '../../../src/core/media/image-shape.ts'
import { readImageFacts } from '../../../src/core/media/image-size.ts'
import { clampToOrder } from '../../../src/core/media/order.ts'
import {
  chargeMedia,
  chargeUnits,
  computeHold,
  computeMediaCost,
  countPixels,
  countRequestedSeconds,
  DEFAULT_VIDEO_SECONDS,
  findMediaPrice,
  findUpstreamPrice,
  printSeconds,
} from '../../../src/core/media/pricing.ts'
import { readGridPrompt, withoutVideoFlags } from '../../../src/core/media/prompt-flags.ts'
import { findExtension, sniffMediaType } from '../../../src/core/media/type.ts'
import {
  computeCredits,
  computePrice,
  computeReversal,
  countDecimals,
  countRefundable,
  parsePrice,
  printPrice,
  readShownPayment,
} from '../../../src/core/payments/price.ts'
import { modelAt } from '../../../src/core/pricing/changes.ts'
import { toKeptPrice } from '../../../src/core/pricing/kept-price.ts'

t.test('media type of first bytes', async (t) => {
  // What a file is follows from its first bytes, whatever its name says.
  const container = (brand: string): Buffer => Buffer.from(`\0\0\0\x20ftyp${brand}\0\0\0\0`, 'latin1')

  t.test('files of the ISO base media format by their brand', async (t) => {
    t.equal(sniffMediaType(container('isom')), 'video/mp4')
    t.equal(sniffMediaType(container('mp42')), 'video/mp4')
    t.equal(sniffMediaType(container('qt  ')), 'video/quicktime')
    t.equal(sniffMediaType(container('M4A ')), 'audio/mp4')
    for (const [brand, type] of [
      ['avif', 'image/avif'],
      ['heic', 'image/heic'],
      ['mif1', 'image/heif'],
    ] as const) {
      t.equal(sniffMediaType(container(brand)), type)
      t.ok(findExtension(type), 'it has an extension in the store')
    }
  })

  t.test('what has no known signature is not guessed', async (t) => {
    for (const bytes of ['', 'a', 'hello there', '\xff', '\xff\x00'])
      t.equal(sniffMediaType(Buffer.from(bytes, 'latin1')), null)
  })
})

t.test('length of a sound', async (t) => {
  const file = (name: string) => readFileSync(new URL(`../../fixtures/media/${name}`, import.meta.url))

  /** An encoder adds silence at both ends, of which the frames know nothing. */
  const MOST_SILENCE_SECONDS = 0.1

  for (const [name, seconds] of [
    ['tone.mp3', 1.5],
    ['plain.mp3', 1.5],
    ['packets.ogg', 1.49],
    ['packets.m4a', 1.5],
    ['packets.webm', 1.5],
    ['recorded.webm', 2.93],
    ['recorded.mp4', 2.96],
  ] as const) {
    t.test(`${name} lasts ${seconds} s`, async (t) => {
      const read = measureAudioSeconds(file(name)) ?? 0
      t.ok(read >= seconds && read < seconds + MOST_SILENCE_SECONDS, String(read))
    })
  }

  t.test('a WAV lasts as long as its data, whatever its header says of that', async (t) => {
    const wav = file('tone.wav')
    t.equal(measureAudioSeconds(wav), 0.5)
    const streamed = Buffer.from(wav)
    streamed.writeUInt32LE(0xffffffff, streamed.indexOf('data') + 4)
    t.equal(measureAudioSeconds(streamed), 0.5)
  })

  t.test('a tag behind the sound and dirt before it add nothing', async (t) => {
    const plain = file('plain.mp3')
    const seconds = measureAudioSeconds(plain)
    const tag = Buffer.concat([Buffer.from('TAG'), Buffer.alloc(125)])
    t.equal(measureAudioSeconds(Buffer.concat([plain, tag])), seconds)
    t.equal(measureAudioSeconds(Buffer.concat([Buffer.from('....'), plain])), seconds)
  })

  t.test('what is no sound has no length', async (t) => {
    t.equal(measureAudioSeconds(Buffer.alloc(0)), null)
    t.equal(measureAudioSeconds(Buffer.from('{"error":"no"}')), null)
    t.equal(measureAudioSeconds(file('picture.png')), null)
    t.equal(measureAudioSeconds(Buffer.from('RIFF....WAVEdata')), null)
    t.equal(measureAudioSeconds(Buffer.concat([Buffer.alloc(5000, 'OggS'), file('plain.mp3')])), null)
  })

  /** The samples of a FLAC in its first block: 20 bits of rate, 36 of count. */
  const streamInfo = (rate: number, samples: number): Buffer => {
    const info = Buffer.alloc(34)
    info.writeUIntBE(rate * 16, 10, 3)
    info.writeUInt32BE(samples, 14)
    return info
  }
  const flac = (samples: number) =>
    Buffer.concat([
      Buffer.from('fLaC\x80\0\0\x22', 'latin1'),
      streamInfo(44_100, samples),
      Buffer.alloc(4000),
    ])

  /** A page with one packet, and the samples up to its end. */
  const oggPage = (serial: number, isFirst: boolean, samples: bigint, packet: Buffer): Buffer => {
    const head = Buffer.alloc(28)
    head.write('OggS')
    head.writeUInt8(isFirst ? 2 : 0, 5)
    head.writeBigInt64LE(samples, 6)
    head.writeUInt32LE(serial, 14)
    head.writeUInt8(1, 26)
    head.writeUInt8(packet.length, 27)
    return Buffer.concat([head, packet])
  }
  const vorbis = Buffer.alloc(30)
  vorbis.write('\x01vorbis', 'latin1')
  vorbis.writeUInt32LE(8000, 12)
  const vorbisPages = (serial: number) => [
    oggPage(serial, true, 0n, vorbis),
    oggPage(serial, false, 12_000n, Buffer.alloc(200)),
    // No packet ends here.
    oggPage(serial, false, -1n, Buffer.alloc(200)),
  ]

  t.test('FLAC and Vorbis say how many samples they have', async (t) => {
    t.equal(measureAudioSeconds(flac(88_200)), 2)
    t.equal(measureAudioSeconds(flac(0)), null, 'a stream of unknown length')
    t.equal(measureAudioSeconds(Buffer.concat(vorbisPages(1))), 1.5)
    t.equal(measureAudioSeconds(Buffer.concat([...vorbisPages(1), ...vorbisPages(2)])), 3, 'in a chain')
    const inOgg = Buffer.concat([
      Buffer.from('\x7fFLAC\x01\0\0\x01fLaC\0\0\0\x22', 'latin1'),
      streamInfo(8000, 0),
    ])
    const pages = [oggPage(1, true, 0n, inOgg), oggPage(1, false, 4000n, Buffer.alloc(99))]
    t.equal(measureAudioSeconds(Buffer.concat(pages)), 0.5)
    t.equal(measureAudioSeconds(oggPage(1, true, 9000n, Buffer.alloc(40, 'theora'))), null, 'no sound')
  })

  t.test('a file that is longer than its container says is charged by its bytes', async (t) => {
    const seconds = measureAudioSeconds(Buffer.concat([flac(1), Buffer.alloc(19_200_000)])) ?? 0
    t.ok(seconds >= 100, String(seconds))
  })

  t.test('of a file that breaks off, what is there is measured', async (t) => {
    for (const name of ['recorded.webm', 'recorded.mp4']) {
      const bytes = file(name)
      const half = measureAudioSeconds(bytes.subarray(0, bytes.length * 0.6)) ?? 0
      t.ok(half >= 1 && half < (measureAudioSeconds(bytes) ?? 0), `${name}: ${half}`)
      for (let end = 0; end < bytes.length; end += 7) measureAudioSeconds(bytes.subarray(0, end))
    }
  })

  t.test('any bytes are read without an error', async (t) => {
    const names = [
      'tone.mp3',
      'plain.mp3',
      'tone.wav',
      'packets.ogg',
      'packets.m4a',
      'packets.webm',
      'recorded.mp4',
    ]
    const heads = [...names.map(file), flac(44_100)].map((bytes) => bytes.subarray(0, 700))
    fc.assert(
      fc.property(
        fc.constantFrom(...heads),
        fc.nat(700),
        fc.uint8Array({ maxLength: 400 }),
        (head, cut, rest) => {
          const seconds = measureAudioSeconds(Buffer.concat([head.subarray(0, cut), rest]))
          return seconds === null || seconds > 0
        },
      ),
    )
    t.pass('none threw')
  })
})

t.test('picture size from its first bytes', async (t) => {
  const file = (name: string) => readFileSync(new URL(`../../fixtures/media/${name}`, import.meta.url))

  const KNOWN = [
    ['picture.png', 'image/png', 40, 24],
    ['baseline.jpg', 'image/jpeg', 37, 23],
    ['lossy.webp', 'image/webp', 33, 21],
    ['lossless.webp', 'image/webp', 33, 21],
    ['extended.webp', 'image/webp', 33, 21],
  ] as const

  for (const [name, mediaType, width, height] of KNOWN) {
    t.test(`${name} is ${mediaType}, ${width} x ${height}`, async (t) => {
      t.strictSame(readImageFacts(file(name)), { mediaType, width, height })
    })
  }

  t.test('a JPEG with a thumbnail in a segment, and a progressive frame', async (t) => {
    const jpeg = file('baseline.jpg')
    const thumbnail = jpeg.subarray(0, 600)
    const length = Buffer.from([0xff, 0xe1, (thumbnail.length + 2) >> 8, (thumbnail.length + 2) & 255])
    const frame = jpeg.indexOf(Buffer.from([0xff, 0xc0]))
    const odd = Buffer.concat([jpeg.subarray(0, 2), length, thumbnail, jpeg.subarray(2)])
    odd[frame + length.length + thumbnail.length + 1] = 0xc2
    t.strictSame(readImageFacts(odd), { mediaType: 'image/jpeg', width: 37, height: 23 })
  })

  t.test('too little of a file is no picture, and never an error', async (t) => {
    for (const [name] of KNOWN) {
      const bytes = file(name)
      for (let end = 0; end < bytes.length; end++) {
        const facts = readImageFacts(bytes.subarray(0, end))
        t.ok(facts === null || facts.width > 20, `${name} cut at ${end}`)
      }
      t.equal(readImageFacts(bytes.subarray(0, 12)), null)
    }
  })

  t.test('any bytes behind any beginning are read without an error', async (t) => {
    const heads = KNOWN.flatMap(([name]) => [2, 12, 20, 30].map((end) => file(name).subarray(0, end)))
    fc.assert(
      fc.property(fc.constantFrom(...heads), fc.uint8Array({ maxLength: 80 }), (head, rest) => {
        const facts = readImageFacts(Buffer.concat([head, rest]))
        return facts === null || (facts.width > 0 && facts.height > 0)
      }),
    )
    t.pass('none threw')
  })
})

t.test('size as each image model takes it', async (t) => {
  // What a size becomes. See docs/api-rules.md, "Images".
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
        t.strictSame(chooseShape(traits, asked), asked)
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
    for (const [size, taken] of Object.entries(expected))
      t.equal(chooseShape(GRID, wish(size))?.size, taken, size)
    t.equal(chooseShape(GRID, wish(null))?.size, null)
    // Between 1:1 and 4:3 the middle is their geometric mean.
    t.equal(chooseShape(GRID, wish('1154x1000'))?.size, '1024x1024')
    t.equal(chooseShape(GRID, wish('1155x1000'))?.size, '1024x768')
  })

  t.test('a flag at the end of the prompt says how fine a grid is drawn', async (t) => {
    const drawn = (prompt: string, quality: unknown) =>
      chooseShape(GRID, wish(null, { prompt, extra: { quality, seed: 1 } }))
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
    const told = (size: string) => chooseShape(WORDS, wish(size))
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
      chooseShape(WORDS, wish(null, { extra: { quality: 'hd' } })),
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
        t.equal(chooseShape(traits, wish(size)), null, size)
  })
})

t.test('flags in prompts are removed', async (t) => {
  // Flags in the words of a prompt say what fields say, and are not charged: none reaches an upstream.
  t.test('flags of video models go, with their values', async (t) => {
    const cases: Readonly<Record<string, string>> = {
      'A fox --dur 60': 'A fox',
      'A fox --duration=60 runs': 'A fox runs',
      '--rs 1080p --ratio 16:9 A fox --seed -1': 'A fox',
      'A fox --wm false --cf true --fps 60 --frames 288': 'A fox',
      'A fox\n--camerafixed\tfalse': 'A fox',
      'A fox --resolution "1080p" runs': 'A fox runs',
      'A fox --DUR 60': 'A fox',
      'A fox--dur 60': 'A fox',
      'A fox --dur60': 'A fox',
      'A fox --dur : 60': 'A fox',
      'A fox --rs\u00a01080p': 'A fox',
      'A fox --rs\u3000=\u20031080p': 'A fox',
      'A fox \u2014dur 60': 'A fox',
      'A fox \u2013\u2013dur 60': 'A fox',
      'A fox \u2212\u2212dur 60': 'A fox',
      'A fox \uff0d\uff0d\uff44\uff55\uff52 60': 'A fox',
      'A fox -\u200b-d\u00adur 60': 'A fox',
      'A fox --fps --dur 5': 'A fox',
      '--dur 5': '',
    }
    for (const [text, left] of Object.entries(cases))
      t.equal(withoutVideoFlags(text), left, JSON.stringify(text))
  })

  t.test('words stay as they are written', async (t) => {
    for (const text of [
      'A fox, well-known -- or not -- runs.',
      'wait--what happens',
      'seed by seed\u2014seed after seed\u2014grows',
      'The ratio of duration to resolution: 5',
      'a  b\n\n c ',
      '--durable --ratios',
      'e\u0301te\u0301 \u{1f469}\u200d\u{1f467}',
    ])
      t.equal(withoutVideoFlags(text), text)
  })

  t.test('what is left has no flag, and is found in the time of its length', async (t) => {
    const piece = fc.constantFrom(
      '--',
      '-',
      '\u2014',
      'dur',
      'd',
      'ur',
      ' ',
      '=',
      '60',
      'rs',
      '"',
      '\n',
      'x',
      '\u00ad',
    )
    const reread = /(?:--|\u2014)\s*(?:dur|rs)\s*=?\s*60/
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const left = withoutVideoFlags(pieces.join(''))
        t.notMatch(left.replaceAll('\u00ad', ''), /--(?:dur|rs)(?![a-z_])/)
        return withoutVideoFlags(left) === left || !reread.test(left)
      }),
    )
    for (const text of ['-', '--dur ', '--dur "', '--d', '--dur 5x']) withoutVideoFlags(text.repeat(4000))
  })

  t.test('of a grid prompt the flags go that change what its images cost', async (t) => {
    const cases: readonly (readonly [string, string, string | null])[] = [
      ['A mill --hd', 'A mill', 'hd'],
      ['--sd A mill', 'A mill', 'sd'],
      ['A mill \u2014HD', 'A mill', 'hd'],
      ['A mill --repeat 4 --turbo --ar 16:9 --v 6', 'A mill', null],
      ['A mill --style raw --no people', 'A mill --style raw --no people', null],
      ['A mill --hdr', 'A mill --hdr', null],
    ]
    for (const [text, prompt, tier] of cases) t.same(readGridPrompt(text), { prompt, tier }, text)
  })
})

t.test('sound or json', async (t) => {
  // Who gets the sound itself, and who the JSON that leads to it.
  t.test('sound goes to clients that name it, or plain bytes, before JSON', async (t) => {
    for (const accept of [
      'application/octet-stream',
      'audio/*',
      'audio/mpeg',
      'Audio/WAV, */*;q=0.1',
      'audio/*;q=0.5, */*;q=0.4',
      'application/json;q=0.5, audio/mpeg',
      '*/*, application/octet-stream',
    ])
      t.ok(prefersSound(accept), accept)
    for (const accept of [
      '',
      '*/*',
      'application/json',
      'application/*',
      'text/html, */*',
      'audio/*;q=0',
      'application/json, audio/*;q=0.9',
      'application/json, audio/mpeg',
    ])
      t.notOk(prefersSound(accept), accept)
  })

  t.test('JSON is named by its type or its family', async (t) => {
    for (const accept of ['application/json', 'text/html, application/json;q=0.1', 'application/*'])
      t.ok(namesJson(accept), accept)
    for (const accept of ['', '*/*', 'audio/*', 'application/json;q=0']) t.notOk(namesJson(accept), accept)
  })
})

t.test('media pricing', async (t) => {
  // What media and payments cost.
  t.test('media cost what was delivered', async (t) => {
    const NOW = Date.parse('2026-06-01T00:00:00Z')

    function computePrice(pricing: object, images?: object, variant: string | null = null, now = NOW) {
      const price = findMediaPrice(
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

    const ORDINARY = computePrice({ unit: 'image', per_unit: '12.5' })

    t.test('images: held by what is asked for, charged by what came', async (t) => {
      t.equal(printCredits(computeHold(ORDINARY, images(4))), '50')
      const three = chargeMedia(ORDINARY, images(4), pictures(null, '1024x1024', null))
      t.same(three, { cost: parseCredits('37.5'), units: '3', line: '3 images x 12.5 = 37.5' })
      t.match(chargeMedia(ORDINARY, images(4), pictures()), { cost: 0n, units: '0' })
      const mixed = taskResult.parse({ files: [{ role: 'image' }, { role: 'cover' }, { role: 'audio' }] })
      t.equal(chargeMedia(ORDINARY, images(1), mixed).units, '1', 'covers are no images')
    })

    t.test('a grid-style model: the hold is for four at least, the charge for what came', async (t) => {
      const grid = computePrice({ unit: 'image', per_unit: '5' }, { grid: true })
      const holds = [1, 3, 4, 5, 10].map((n) => printCredits(computeHold(grid, images(n))))
      t.same(holds, ['20', '20', '20', '25', '50'])
      t.equal(printCredits(chargeMedia(grid, images(10), pictures(null, null, null, null)).cost), '20')
      t.equal(printCredits(chargeMedia(grid, images(1), pictures(null, null, null)).cost), '15')
    })

    const TIERED = computePrice(
      {
        unit: 'image',
        per_unit: '17.79',
        pixel_tiers: [{ from_pixels: 2_400_000, per_unit: '35.58' }],
        input_image: '1.5',
      },
      { default_size: '2048x2048' },
    )

    t.test(
      'tiers by pixels: the edge belongs to the upper one, and no size is the default size',
      async (t) => {
        const holdAt = (size: string | null) => printCredits(computeHold(TIERED, images(1, { size })))
        t.equal(holdAt('1024x1024'), '17.79')
        t.equal(holdAt('1x2399999'), '35.58', 'no size that there is')
        t.equal(holdAt('1600x1499'), '17.79', '2,398,400 pixels')
        t.equal(holdAt('1600x1500'), '35.58', '2,400,000 pixels')
        t.equal(holdAt('2048x2048'), '35.58')
        t.equal(holdAt(null), '35.58')
        t.equal(holdAt('auto'), '35.58')
        const nowhere = computePrice({
          unit: 'image',
          per_unit: '1',
          pixel_tiers: [
            { from_pixels: 100, per_unit: '2' },
            { from_pixels: 200, per_unit: '3' },
          ],
        })
        t.equal(
          printCredits(computeHold(nowhere, images(1))),
          '3',
          'a size that nobody knows costs what the largest does',
        )
        const small = computePrice(
          { unit: 'image', per_unit: '1', pixel_tiers: [{ from_pixels: 200, per_unit: '3' }] },
          { default_size: '10x10' },
        )
        const smallAt = (size: string | null) => printCredits(computeHold(small, images(1, { size })))
        t.same([null, 'auto', 'AUTO'].map(smallAt), ['1', '1', '1'], 'the default size')
        t.same(
          ['4K', '0x0', '10x10x10', '4096'].map(smallAt),
          ['3', '3', '3', '3'],
          'a word is no way around a tier',
        )
        t.equal(printCredits(chargeMedia(small, images(1, { size: '4K' }), pictures('10x10')).cost), '1')
        const edges = ['9x11', '10x10', '10x19', '10x20'].map((size) =>
          printCredits(computeHold(nowhere, images(1, { size }))),
        )
        t.same(edges, ['1', '2', '2', '3'])
      },
    )

    t.test('settled by the real size, downward only, each image by its own', async (t) => {
      const chargeAt = (asked: string | null, ...came: Array<string | null>) =>
        printCredits(chargeMedia(TIERED, images(came.length, { size: asked }), pictures(...came)).cost)
      t.equal(chargeAt(null, '1024x1024'), '17.79')
      t.equal(chargeAt('1024x1024', '2048x2048'), '17.79', 'never upward')
      t.equal(chargeAt(null, null), '35.58', 'a size that is not reported is the requested one')
      t.equal(chargeAt('2048x2048', '1024x1024', '2048x2048', '1600x1499'), '71.16')
      const { line } = chargeMedia(TIERED, images(2), pictures('2048x2048', '8x8'))
      t.equal(line, '1 image x 35.58 + 1 image x 17.79 = 53.37')
    })

    t.test('the operator pays for the size that was made, also a dearer one', async (t) => {
      const price = computePrice({
        unit: 'image',
        per_unit: '5',
        pixel_tiers: [{ from_pixels: 1_000_000, per_unit: '8' }],
      })
      const both = (asked: string, came: string | null) =>
        [chargeMedia, computeMediaCost].map((of) =>
          printCredits(of(price, images(1, { size: asked }), pictures(came)).cost),
        )
      t.same(both('1024x768', '1440x1080'), ['5', '8'])
      t.same(both('1440x1080', '1024x768'), ['5', '5'])
      t.same(both('1024x768', null), ['5', '5'], 'a size that is not reported is the requested one')
      t.same(both('1440x1080', null), ['8', '8'])
    })

    t.test('images that go in', async (t) => {
      const job = images(2, { size: '512x512', images: [picture, picture, picture] })
      t.equal(printCredits(computeHold(TIERED, job)), '40.08')
      const charge = chargeMedia(TIERED, job, pictures('512x512'))
      t.equal(charge.line, '1 image x 17.79 + 3 input images x 1.5 = 22.29')
      t.equal(charge.units, '1')
      t.equal(chargeMedia(TIERED, job, pictures()).cost, 0n, 'nothing came, nothing is owed')
    })

    t.test('films: by the length that came, else by the one asked for, else by the default', async (t) => {
      const price = computePrice({ unit: 'second', per_unit: '3.96' })
      t.equal(printCredits(computeHold(price, video(10))), '39.6')
      t.equal(printCredits(computeHold(price, video())), printCredits(parseCredits('3.96') * 12n))
      t.equal(DEFAULT_VIDEO_SECONDS, 12)
      const charge = (asked: number | undefined, came: number | null) =>
        chargeMedia(price, video(asked), lasting(came))
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
      const price = computePrice({ unit: 'second', per_unit: '4.04' })
      const cost = (seconds: number) => printCredits(chargeMedia(price, video(5), lasting(seconds)).cost)
      t.equal(cost(1.23456789), '4.98765428')
      t.equal(chargeMedia(price, video(5), lasting(1.23456789)).units, '1.23456789')
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
      const price = mediaPrice.parse(JSON.parse(JSON.stringify(findMediaPrice(entry, null, NOW))))
      const units = (seconds: number | null, asked = 5) =>
        chargeMedia(price, video(asked), lasting(seconds)).units
      t.same([units(18), units(20), units(60), units(null)], ['18', '20', '20', '5'])
      t.match(clampToOrder(video(5), price, lasting(60)), {
        seconds: 60,
        beyond: ['60 seconds, charged as 20'],
      })
    })

    t.test('grades of one model have separate prices', async (t) => {
      const pricing = { unit: 'second', variants: { fast: '4.04', standard: '8.09', max: '12.13' } }
      const holdAt = (grade: string) =>
        printCredits(computeHold(computePrice(pricing, undefined, grade), video(10)))
      t.same(['fast', 'standard', 'max'].map(holdAt), ['40.4', '80.9', '121.3'])
      const entry = modelEntry.parse({ id: 'm', endpoint_type: 'videos_generations', pricing })
      for (const other of [null, 'ultra', 'toString'])
        t.equal(findMediaPrice(entry, other, NOW), null, String(other))
      const based = modelEntry.parse({ ...entry, pricing: { ...pricing, per_unit: '7' } })
      t.equal(findMediaPrice(based, 'ultra', NOW), null, 'the base price is no price of an unknown variant')
      t.equal(findMediaPrice(based, null, NOW)?.perUnit, '7000000000000')
      t.equal(findMediaPrice(modelEntry.parse({ id: 'm', callable: false }), null, NOW), null)
    })

    const RESOLUTIONS = { '480p': '2.5', '720p': '5', '1080p': '11.25' }

    t.test(
      'the variant that was delivered is charged where it is known, else the one asked for',
      async (t) => {
        const price = computePrice(
          { unit: 'second', per_unit: '5', variants: RESOLUTIONS },
          undefined,
          '480p',
        )
        const cost = (variant: string | null, width: number | null = null, height: number | null = null) => {
          const film = { files: [{ role: 'video', width, height }], seconds: 10, variant }
          return printCredits(chargeMedia(price, video(10), taskResult.parse(film)).cost)
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
      },
    )

    t.test('what goes beyond an order is said', async (t) => {
      const price = computePrice({ unit: 'second', per_unit: '5', variants: RESOLUTIONS }, undefined, '480p')
      const within = (more: object, asked = 10) =>
        clampToOrder(
          video(asked),
          price,
          taskResult.parse({
            files: [{ role: 'video', seconds: 1e9 }],
            seconds: 10,
            variant: '480p',
            ...more,
          }),
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
      const price = computePrice({ unit: '1000_characters', per_unit: '125.36' })
      t.equal(printCredits(computeHold(price, speech('x'.repeat(1000)))), '125.36')
      t.equal(printCredits(computeHold(price, speech('x'))), '0.12536')
      t.equal(printCredits(computeHold(price, speech('x'.repeat(5000)))), '626.8')
      const charge = chargeMedia(price, speech('日本語🎉'), lasting(3))
      t.same(charge, {
        cost: parseCredits('0.50144'),
        units: '4',
        line: '4 characters x 125.36 / 1000 = 0.50144',
      })
      t.equal(countCharacters('👩‍👩‍👧'), 5)
    })

    t.test('flat prices', async (t) => {
      const music = computePrice({ unit: 'generation', per_unit: '19.41' })
      const job = mediaJob.parse({ work: 'music', instrumental: false, prompt: 'x' })
      const twoSongs = taskResult.parse({ files: [{ role: 'audio' }, { role: 'audio' }] })
      t.equal(printCredits(computeHold(music, job)), '19.41')
      t.same(chargeMedia(music, job, twoSongs), {
        cost: parseCredits('19.41'),
        units: '1',
        line: '1 generation x 19.41 = 19.41',
      })
      const free = computePrice({ unit: 'call', per_unit: '0' })
      t.equal(computeHold(free, job), 0n)
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
        chargeMedia(computePrice(pricing), job, pictures(null)).line,
        '(1 image x 17.79 + 1 input image x 1.5) x 0.8 = 15.432',
      )
      t.equal(printCredits(computeHold(computePrice(pricing, undefined, null, NOW + 1), job)), '19.29')
      const { discount_until: _, ...endless } = pricing
      t.equal(printCredits(computeHold(computePrice(endless, undefined, null, NOW + 1e12), job)), '15.432')
    })

    t.test('one rounding, half up, after the sum', async (t) => {
      const price = computePrice({ unit: 'image', per_unit: '0.000000004', input_image: '0.000000001' })
      t.equal(computeHold(price, images(1)), 0n)
      t.equal(computeHold(price, images(1, { images: [picture] })), 1n, '0.5 of a unit')
      t.equal(computeHold(price, images(3)), 1n, '1.2 of a unit')
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
        t.equal(countPixels(size), pixels, String(size))
    })

    const decimal = fc.bigInt({ min: 0n, max: 10n ** 15n })
    const text = (rate: bigint) => `${rate / 10n ** 6n}.${String(rate % 10n ** 6n).padStart(6, '0')}`
    const anyPrice = fc
      .record({ base: decimal, upper: decimal, input: decimal, edge: fc.integer({ min: 1, max: 5_000_000 }) })
      .map(({ base, upper, input, edge }) =>
        computePrice({
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
            const { cost } = chargeMedia(price, job, pictures(...came.slice(0, n)))
            return cost >= 0n && cost <= computeHold(price, job)
          },
        )
        fc.assert(property, { numRuns: 300 })
        t.pass()
      },
    )

    t.test('the cost of seconds is within one unit of the exact quotient, and grows with them', async (t) => {
      const property = fc.property(decimal, fc.integer({ min: 0, max: 10 ** 9 }), (rate, micros) => {
        const price = computePrice({ unit: 'second', per_unit: text(rate) })
        const { cost } = chargeMedia(price, video(1000), lasting(micros / 1e6))
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
    const makeModel = (pricing: object) => ({
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
        const price = findMediaPrice(modelAt(makeModel(pricing), requested).entry, null, NOW + 60_000)!
        t.equal(printCredits(computeHold(price, speech('hi'))), held)
      }
    })

    t.test('speech costs the operator the characters that the provider bills', async (t) => {
      const price = findMediaPrice(makeModel({ unit: '1000_characters', per_unit: '1000' }).entry, null, NOW)!
      const made = taskResult.parse({ seconds: 3, billed_characters: 9 })
      t.equal(chargeMedia(price, speech('日本語🎉'), made).units, '4', 'each is charged once')
      t.equal(computeMediaCost(price, speech('日本語🎉'), made).units, '9')
      t.equal(
        computeMediaCost(price, speech('日本語🎉'), taskResult.parse({ seconds: 3 })).units,
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
      taskResult.parse({
        files: [{ role: 'video', width: Math.round((height * 16) / 9), height }],
        seconds: 4,
      })

    const entryOf = (pricing: object) =>
      modelEntry.parse({
        id: 'm',
        endpoint_type: 'videos_generations',
        pricing: { unit: 'second', ...pricing },
      })

    function agreed(pricing: object, sound: boolean, variant: string | null = null, now = NOW) {
      const price = findMediaPrice(entryOf(pricing), variant, now, sound)
      // As it comes back from the row of its task.
      return price === null ? null : mediaPrice.parse(JSON.parse(JSON.stringify(price)))
    }

    const held = (...of: Parameters<typeof agreed>) => printCredits(computeHold(agreed(...of)!, job))

    t.test('sound has its price; without one it has the price of every video', async (t) => {
      const both = { per_unit: '0.2', with_audio: { per_unit: '0.4' } }
      t.same([held(both, false), held(both, true)], ['1', '2'])
      t.equal(held({ ...both, discount: '0.5' }, true), '1')
      t.equal(held({ per_unit: '0.2' }, true), '1')
      t.equal(agreed({ per_unit: '0.2', with_audio: {} }, true), null, 'sound is not for sale')
      t.equal(chargeMedia(agreed(both, true)!, job, made(720)).line, '4 seconds x 0.4 = 1.6')
    })

    const VARIANTS = {
      variants: { '720p': '1', '1080p': '2' },
      with_audio: { variants: { '720p': '3', '4k': '9' } },
    }

    t.test('the delivered resolution is charged with the sound that was agreed', async (t) => {
      const silent = agreed(VARIANTS, false, '1080p')!
      const loud = agreed(VARIANTS, true, '4k')!
      const charged = (price: typeof silent, height: number) =>
        printCredits(chargeMedia(price, job, made(height)).cost)
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
        const upstream = findUpstreamPrice({ channels: [channel], models: [entryOf(pricing)] }, task)
        if (upstream === null || upstream.unit === '1M_tokens') return null
        return printCredits(computeMediaCost(upstream, job, made(720)).cost)
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
        const price = computePrice(parseCredits('404.4'), {
          currency,
          credits_per_unit: parseCredits(perUnit),
        })
        t.same(price, { currency, amount })
        t.equal(printPrice(price), printed)
      })
  })

  t.test('calls are charged by their searches, or by their seconds of sound', async (t) => {
    const charge = (fields: object, count: number) => chargeUnits(pricing.parse(fields), count, 0)
    const search = { unit: 'search', per_unit: '0.5' }
    t.match(charge(search, 3), { cost: parseCredits('1.5'), units: '3', line: '3 searches x 0.5 = 1.5' })
    t.match(charge(search, 1), { units: '1', line: '1 search x 0.5 = 0.5' })
    t.match(charge(search, 0), { cost: 0n, units: '0', line: '0 searches x 0.5 = 0' })
    const minute = { unit: 'minute', per_unit: '6' }
    t.match(charge(minute, 90), { cost: parseCredits('9'), units: '90', line: '90 seconds x 6 / 60 = 9' })
    t.match(charge({ ...minute, discount: '0.5' }, 1), { line: '1 second x 6 / 60 x 0.5 = 0.05' })
    t.throws(() => charge({ unit: '1M_tokens', input: '1' }, 1), /none of searches or minutes/)
  })

  t.test('a length is printed as it is, up to 20 places', async (t) => {
    for (const [seconds, printed] of [
      [0, '0'],
      [10.75, '10.75'],
      [1e-7, '0.0000001'],
      [1.5e-7, '0.00000015'],
      [3.2e-20, '0.00000000000000000003'],
      [1e-21, '0'],
      [1e21, `1${'0'.repeat(21)}`],
    ] as const)
      t.equal(printSeconds(seconds), printed)
  })

  t.test('a video without a length is one of 12 seconds', async (t) => {
    t.equal(DEFAULT_VIDEO_SECONDS, 12)
    for (const [job, seconds] of [
      [{ work: 'video', duration: 7 }, 7],
      [{ work: 'video', duration: 0 }, 0],
      [{ work: 'video', duration: -1 }, 12],
      [{ work: 'video', duration: null }, 12],
      [{ work: 'music' }, 12],
    ] as const)
      t.equal(countRequestedSeconds(job as never), seconds, JSON.stringify(job))
  })

  t.test('decimals of currencies, as the provider counts', async (t) => {
    for (const [currencies, decimals] of [
      ['bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf', 0],
      ['usd eur isk ugx huf', 2],
      ['bhd jod kwd omr tnd', 3],
    ] as const)
      for (const currency of currencies.split(' ')) t.equal(countDecimals(currency), decimals, currency)
    const yen = { currency: 'jpy', credits_per_unit: parseCredits('1') }
    for (const [credits, amount] of [
      ['404', 404n],
      ['404.00000001', 405n],
      ['405', 405n],
    ] as const)
      t.equal(computePrice(parseCredits(credits), yen).amount, amount, 'a begun unit is paid')
    t.equal(printPrice({ amount: 5n, currency: 'usd' }), '0.05')
    t.equal(printPrice({ amount: -500n, currency: 'usd' }), '-5.00')
    t.equal(printPrice({ amount: 500n, currency: 'jpy' }), '500')
  })

  t.test('a part of the money has its part of the credits, rounded half up', async (t) => {
    for (const [part, amount, credits, gone] of [
      [0n, 10n, 100n, 0n],
      [5n, 10n, 100n, 50n],
      [10n, 10n, 100n, 100n],
      [11n, 10n, 100n, 100n],
      [1n, 2n, 1n, 1n],
      [1n, 3n, 1n, 0n],
      [2n, 3n, 1n, 1n],
    ] as const)
      t.equal(computeCredits(part, { amount, credits }), gone, `${part} of ${amount}`)
  })

  t.test('an amount has the decimals of its currency', async (t) => {
    for (const [text, currency, amount] of [
      ['5', 'usd', 500n],
      ['5.', 'usd', 500n],
      ['15.07', 'usd', 1507n],
      ['5.001', 'usd', null],
      ['500', 'jpy', 500n],
      ['5.0', 'jpy', null],
      ['-5', 'usd', null],
      ['5 usd', 'usd', null],
    ] as const)
      t.equal(parsePrice(text, currency), amount, text)
  })

  t.test('a refund takes the credits that earlier partial refunds left', async (t) => {
    const shown = { currency: 'usd', amount: '10.00', refunded: '2.00', disputed: '1.00', credits: '100' }
    const payment = readShownPayment({ ...shown, credits_taken: '30' })
    t.equal(countRefundable(payment), 700n)
    t.equal(computeReversal(payment, 100n), parseCredits('10'))
    t.equal(computeReversal(payment, 700n), parseCredits('70'))
    t.equal(computeReversal({ ...payment, creditsTaken: payment.credits }, 100n), 0n, 'all are taken')
    t.equal(countRefundable(readShownPayment({ ...shown, refunded: '', credits_taken: '0' })), 900n)
  })

  t.test('a model without prices by kind has one price', async (t) => {
    const price = (fields: object, images?: object) =>
      findMediaPrice(
        modelEntry.parse({ id: 'm', endpoint_type: 'images_generations', pricing: fields, images }),
        null,
        0,
      )!
    const jobs = {
      pictures: mediaJob.parse({ work: 'image', prompt: 'x', n: 3 }),
      edits: mediaJob.parse({
        ...{ work: 'image_edit', prompt: 'x', n: 3 },
        images: [{ from: 'url', url: 'https://x.test/a.png' }],
      }),
      film: mediaJob.parse({ work: 'video', content: [], duration: 5 }),
    }
    const nothing = taskResult.parse({ files: [] })
    const three = taskResult.parse({ files: Array(3).fill({ role: 'image' }) })
    for (const [fields, job, held] of [
      [{ unit: 'image', per_unit: '2' }, 'pictures', '6'],
      [{ unit: 'image', per_unit: '2', input_image: '1' }, 'edits', '7'],
      [{ unit: 'image', per_unit: '2' }, 'film', '2'],
      [{ unit: 'call', per_unit: '2' }, 'pictures', '2'],
      [{ unit: '1000_characters', per_unit: '2' }, 'film', '0'],
    ] as const) {
      t.equal(printCredits(computeHold(price(fields), jobs[job])), held, `${fields.unit} ${job}`)
      t.equal(printCredits(chargeMedia(price(fields), jobs[job], three).cost), held, `${fields.unit} ${job}`)
    }
    const edited = chargeMedia(price({ unit: 'image', per_unit: '2' }), jobs.edits, three)
    t.equal(edited.line, '3 images x 2 = 6', 'what goes in costs nothing')
    t.same(chargeMedia(price({ unit: 'image', per_unit: '2', input_image: '1' }), jobs.edits, nothing), {
      ...{ cost: 0n, units: '0', line: '0 images x 2 = 0' },
    })
    const sound = { unit: 'second', per_unit: '1', with_audio: { per_unit: '2' } }
    t.equal(
      price(sound).perUnit,
      price({ unit: 'second', per_unit: '1' }).perUnit,
      'silent, where nothing is said',
    )
    t.equal(
      findMediaPrice({ pricing: pricing.parse({ unit: '1M_tokens', input: '1', per_unit: '1' }) }, null, 0),
      null,
    )
  })

  t.test('an image whose size is not reported costs the requested size', async (t) => {
    const tiers = { pixel_tiers: [{ from_pixels: 1_000_000, per_unit: '5' }] }
    const entry = modelEntry.parse({
      ...{ id: 'm', endpoint_type: 'images_generations', images: { default_size: '512x512' } },
      pricing: { unit: 'image', per_unit: '2', ...tiers },
    })
    const price = findMediaPrice(entry, null, 0)!
    const held = (size: string | null) =>
      printCredits(computeHold(price, imageJob.parse({ work: 'image', prompt: 'x', n: 1, size })))
    t.same([null, 'auto', 'AUTO', 'autos', 'xauto', '4K', '10x10', '1000x1000'].map(held), [
      ...['2', '2', '2', '5', '5', '5', '2', '5'],
    ])
    const charged = (width: number | null, height: number | null, size: string) => {
      const result = taskResult.parse({ files: [{ role: 'image', width, height }] })
      const job = imageJob.parse({ work: 'image', prompt: 'x', n: 1, size })
      return printCredits(chargeMedia(price, job, result).cost)
    }
    for (const [width, height] of [
      [null, null],
      [10, null],
      [null, 10],
    ] as const)
      t.same([charged(width, height, '1000x1000'), charged(width, height, '10x10')], ['5', '2'])
    t.equal(charged(10, 10, '1000x1000'), '2')
  })

  t.test('what the operator pays a channel', async (t) => {
    const tokens = { unit: '1M_tokens', input: '1', output: '1' }
    const channel = (id: string, more: object = {}) =>
      channelEntry.parse({
        ...{ id, protocol: 'openai-images', base_url: 'https://c.example', models: { m: 'up', n: 'up' } },
        ...more,
      })
    const makeModel = (id: string, grid: boolean) =>
      modelEntry.parse({
        ...{ id, endpoint_type: 'images_generations', pricing: { unit: 'image', per_unit: '1' } },
        images: { grid },
      })
    const config = {
      models: [makeModel('n', false), makeModel('m', true)],
      channels: [channel('none'), channel('paid', { cost: { m: { unit: 'image', per_unit: '3' } } })],
    }
    const price = findMediaPrice(config.models[1]!, null, 0)!
    const paid = (task: object) =>
      findUpstreamPrice(config, { model: 'm', channelId: 'paid', price, submittedAt: 0, ...task })
    t.match(paid({}), { unit: 'image', perUnit: '3000000000000', leastImages: 4 }, 'its own model counts')
    for (const none of [{ channelId: null }, { channelId: 'gone' }, { channelId: 'none' }, { model: 'n' }])
      t.equal(paid(none), null, JSON.stringify(none))
    const removed = { ...config, models: [] }
    t.match(findUpstreamPrice(removed, { model: 'm', channelId: 'paid', price, submittedAt: 0 }), {
      leastImages: 1,
    })
    const entry = modelEntry.parse({ id: 'm', max_output_tokens: 7, pricing: tokens })
    const kept = toKeptPrice(entry, entry.pricing!)
    const cost = { m: { ...tokens, input: '0.5' } }
    const found = findUpstreamPrice(
      { models: [], channels: [channel('paid', { cost })] },
      { model: 'm', channelId: 'paid', price: kept, submittedAt: 0 },
    )
    t.match(found, { unit: '1M_tokens', pricing: { input: '0.5' }, model: { max_output_tokens: 7 } })
    t.equal(findUpstreamPrice(config, { model: 'n', channelId: 'paid', price: kept, submittedAt: 0 }), null)
  })
})
