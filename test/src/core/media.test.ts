/** Files and the requests for them: types, lengths, sizes, prompts. */
import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { imageTraits } from '../../../schemas/config/catalog.ts'
import { namesJson, prefersSound } from '../../../src/core/accepted-format.ts'
import { measureAudioSeconds } from '../../../src/core/media/audio-length.ts'
import { chooseShape, type ImageShapeRequest } from '../../../src/core/media/image-shape.ts'
import { readImageFacts } from '../../../src/core/media/image-size.ts'
import { readGridPrompt, withoutVideoFlags } from '../../../src/core/media/prompt-flags.ts'
import { findExtension, sniffMediaType } from '../../../src/core/media/type.ts'

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

  t.test('any bytes are read without an error', async (t) => {
    const heads = ['tone.mp3', 'plain.mp3', 'tone.wav'].map((name) => file(name).subarray(0, 700))
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
