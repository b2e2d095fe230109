/** Requests for images, as JSON and as forms. */
import t from 'tap'
import {
  type ImageParams,
  imageMeaning,
  readEdit,
  readGeneration,
} from '../../../pipelines/media/images/request.ts'
import type { InputStore } from '../../../pipelines/media/inputs/store-input.ts'
import { Uploads } from '../../../pipelines/media/inputs/uploads.ts'
import { meaningHash } from '../../../src/core/json/canonical.ts'
import type { FormFile, GatewayRequest } from '../../../src/http/handler.ts'
import { folderStore } from '../../src/storage/support.ts'

const LINK = 'https://example.com/a.png'
const URI = 'data:image/png;base64,iVBORw0KGgo='
const PNG = Buffer.from('\x89PNG\r\n\x1a\nrest', 'latin1')
const PLAIN = { model: 'sketch', prompt: 'A mill' }

const read = (body: object) => readGeneration({ body: Buffer.from(JSON.stringify(body)) })
const USUAL = {
  ...PLAIN,
  n: 1,
  size: null,
  isAsync: false,
  isInline: false,
  isEdit: false,
  images: [],
  mask: null,
  extra: {},
  callback_url: null,
}

t.test('what is left out is as usual, and null is left out', async (t) => {
  t.strictSame(read(PLAIN), USUAL)
  const nulls = { n: null, size: null, async: null, response_format: null, image: null, stream: null }
  t.strictSame(read({ ...PLAIN, ...nulls }), USUAL)
  t.strictSame(read({ ...PLAIN, stream: false, response_format: 'url', async: false }), USUAL)
})

t.test('images in base64 are not made asynchronously', async (t) => {
  const inline = { ...PLAIN, response_format: 'b64_json' }
  t.match(read(inline), { isInline: true, isAsync: false })
  t.match(read({ ...inline, async: false }), { isInline: true })
  const message = /'response_format'.*async/
  t.throws(() => read({ ...inline, async: true }), { code: 'invalid_request', status: 400, message })
})

t.test('what is named is read, the rest is left out', async (t) => {
  const all = {
    n: 3,
    size: '1x1',
    async: true,
    response_format: 'url',
    image: [LINK, URI],
    callback_url: LINK,
  }
  t.strictSame(
    read({ ...PLAIN, ...all, seed: 7, quality: 'high', steps: 90, sequential_image_generation: 'auto' }),
    {
      ...USUAL,
      n: 3,
      size: '1x1',
      isAsync: true,
      callback_url: LINK,
      images: [
        { field: 'image[0]', source: LINK },
        { field: 'image[1]', source: URI },
      ],
      extra: { quality: 'high', seed: 7 },
    },
  )
  t.strictSame(read({ ...PLAIN, image: LINK }).images, [{ field: 'image', source: LINK }])
})

t.test('a wish of a wrong kind is refused by its name', async (t) => {
  const wrong = { quality: 7, style: { a: [1] }, seed: 'x', watermark: 'no', output_compression: 101 }
  for (const [name, value] of Object.entries(wrong))
    t.throws(() => read({ ...PLAIN, [name]: value }), { code: 'invalid_request', message: `'${name}'` })
})

t.test('a prompt is counted in characters', async (t) => {
  t.equal(read({ ...PLAIN, prompt: '🌾'.repeat(32_000) }).prompt.length, 64_000)
  t.throws(() => read({ ...PLAIN, prompt: '🌾'.repeat(32_001) }), { message: /'prompt'.*32000/ })
  t.throws(() => read({ ...PLAIN, prompt: '' }), { message: /'prompt'/ })
})

t.test('an image is a link or a data URI of an image', async (t) => {
  for (const image of [
    'ftp://example.com/a.png',
    'a.png',
    '',
    [],
    [LINK, 7],
    `https://example.com/${'a'.repeat(2048)}`,
    'data:text/html;base64,aGk=',
    'data:image/png,raw',
    Array(17).fill(LINK),
  ])
    t.throws(
      () => read({ ...PLAIN, image }),
      { code: 'invalid_request', message: /'image/ },
      String(image).slice(0, 60),
    )
  t.equal(read({ ...PLAIN, image: Array(16).fill(URI) }).images.length, 16)
  t.throws(() => read({ ...PLAIN, image: Array(17).fill(LINK) }), { message: /'image'.*16/ })
  t.throws(() => read({ ...PLAIN, image: [LINK, 7] }), { message: /'image\[1\]'/ })
  t.throws(() => read({ ...PLAIN, image: [] }), { message: /'image'.*1/ })
})

const { store } = await folderStore(t)
const inbox: InputStore = { files: store, objects: { recordObjects: async () => {} } }
const uploads = new Uploads({ files: store })
const reading = () => ({ upload: uploads.begin('acc_a'), checkModel: () => undefined })

type Part = readonly [name: string, value: string | Buffer, fileName?: string]

/** A request whose body is a form of these parts. */
function formOf(parts: readonly Part[]): GatewayRequest {
  const form: GatewayRequest['form'] = {
    async read(_, takeFile) {
      const fields: [string, string][] = []
      for (const [field, value, name] of parts) {
        if (typeof value === 'string') fields.push([field, value])
        else await takeFile(fileOf(field, value, name), fields)
      }
      return fields
    },
  }
  return { requestId: 'req_1', body: Buffer.alloc(0), form } as Partial<GatewayRequest> as GatewayRequest
}
const fileOf = (field: string, bytes: Buffer, name = `${field}.png`): FormFile => ({
  field,
  name,
  mediaType: 'image/png',
  content: (async function* () {
    yield bytes
  })(),
})
const edit = (...parts: readonly Part[]) =>
  readEdit(formOf([['model', 'sketch'], ['prompt', 'A mill'], ...parts]), inbox, reading())

const hashOf = (params: ImageParams) => meaningHash('POST', '/', '', imageMeaning(params)).toString('hex')

t.test('a form says the same in texts', async (t) => {
  const asked = await edit(
    ['n', '2'],
    ['async', 'true'],
    ['size', ''],
    ['seed', '7'],
    ['image[]', PNG],
    ['mask', PNG],
    ['image', LINK],
  )
  t.match(asked, {
    ...PLAIN,
    n: 2,
    size: null,
    isAsync: true,
    isEdit: true,
    images: [
      {
        field: 'image[]',
        source: { from: 'store', key: 'inputs/req_1-1.png', bytes: PNG.length, name: 'image_.png' },
      },
      { field: 'image', source: LINK },
    ],
    mask: { field: 'mask', source: { key: 'inputs/req_1-2.png' } },
    extra: { seed: 7 },
  })
})

t.test('a file that nobody chose in a browser is none', async (t) => {
  const asked = await edit(['image', PNG], ['mask', Buffer.alloc(0), ''], ['image[]', Buffer.alloc(0), ''])
  t.match(asked, { images: { length: 1, 0: { field: 'image' } }, mask: null })
  t.same(hashOf(asked), hashOf(await edit(['image', PNG])))
  await t.rejects(edit(['image', Buffer.alloc(0), '']), { message: /'image'/ }, 'and the only one is missing')
})

t.test('a long name of a file is cut at a whole character', async (t) => {
  const asked = await edit(['image', PNG, `${'𐐷'.repeat(120)}.jpeg`])
  const { name } = asked.images[0]!.source as { name: string }
  t.ok(name.isWellFormed())
  t.match(name, /^𐐷+\.jpeg$/u)
})

t.test('forms that mean the same are one intent, others are not', async (t) => {
  const hash = async (...parts: readonly Part[]) => hashOf(await edit(...parts))
  const first = await hash(['image', PNG], ['n', '1'])
  for (const same of [
    [
      ['image', PNG],
      ['n', '1'],
    ],
    [
      ['n', '1'],
      ['image', PNG],
    ],
    [['image', PNG, 'other-name.png']],
    [
      ['image[]', PNG],
      ['size', ''],
    ],
  ] as const)
    t.equal(await hash(...same), first)
  for (const other of [
    [
      ['image', PNG],
      ['n', '2'],
    ],
    [
      ['image', Buffer.concat([PNG, PNG])],
      ['n', '1'],
    ],
    [
      ['image', PNG],
      ['image', PNG],
    ],
    [
      ['image', PNG],
      ['mask', PNG],
    ],
  ] as const)
    t.not(await hash(...other), first)
})

t.test('a form that is not in order is refused by name', async (t) => {
  const file: Part = ['image', PNG]
  const wrong: readonly (readonly [readonly Part[], RegExp])[] = [
    [[], /'image'/],
    [[file, ['n', 'two']], /'n'/],
    [[file, ['n', '1'], ['n', '2']], /'n' is not valid: the form has it more than once/],
    [[['prompt', 'A hill'], file], /'prompt' is not valid: the form has it more than once/],
    [[file, ['mask', Buffer.alloc(0)]], /The file in mask is empty/],
    [[file, ['n', '11']], /'n'/],
    [[file, ['async', 'yes']], /'async'/],
    [[file, ['response_format', 'jpeg']], /'response_format'/],
    [[file, ['image', 'a.png']], /'image'/],
    [[file, ['mask', LINK], ['mask', PNG]], /'mask'/],
    [[file, ['mask', PNG], ['mask', PNG]], /mask/],
    [[file, ['thing', PNG]], /thing/],
    [[['image', Buffer.from('<svg/>')]], /image is not a PNG/],
    [[...Array<Part>(10).fill(['image', PNG]), ...Array<Part>(7).fill(['image[]', PNG])], /'image'.*16/],
  ]
  for (const [parts, message] of wrong)
    await t.rejects(edit(...parts), { code: 'invalid_request', message }, String(message))
})

t.test('an edit as JSON has an image', async (t) => {
  const json = (body: object) =>
    readEdit(
      { body: Buffer.from(JSON.stringify(body)), form: null } as Partial<GatewayRequest> as GatewayRequest,
      inbox,
      reading(),
    )
  t.match(await json({ ...PLAIN, image: URI, mask: LINK, quality: 'hd' }), {
    isEdit: true,
    images: [{ field: 'image', source: URI }],
    mask: { field: 'mask', source: LINK },
    extra: { quality: 'hd' },
  })
  await t.rejects(json(PLAIN), { code: 'invalid_request', message: /'image'/ })
  await t.rejects(json({ ...PLAIN, image: URI, mask: 'x' }), { message: /'mask'/ })
})
