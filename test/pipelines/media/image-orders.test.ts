/** What becomes of a request for images: the job, its price, what is held, and how long it is waited for. */
import t from 'tap'
import type { AuthenticatedCall } from '../../../pipelines/calls/authenticate.ts'
import type { Idempotency } from '../../../pipelines/calls/claim.ts'
import { orderImages } from '../../../pipelines/media/images/images.ts'
import type { ImageParams } from '../../../pipelines/media/images/request.ts'
import { Uploads } from '../../../pipelines/media/inputs/uploads.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { parseCredits, printCredits } from '../../../schemas/money.ts'
import { fileLinks } from '../../../src/core/media/file-link.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { folderStore } from '../../src/storage/support.ts'

const image = (id: string, more = {}, pricing = {}) => ({
  id,
  endpoint_type: 'images_generations',
  pricing: { unit: 'image', per_unit: '4', ...pricing },
  ...more,
})
const channel = (id: string, protocol: string, ...models: string[]) => ({
  id,
  protocol,
  base_url: 'https://upstream.test',
  api_key: 'upstream-key-1',
  models: Object.fromEntries(models.map((model) => [model, model])),
})
const catalog = createCatalog(
  configFile.parse({
    models: [
      image('sketch'),
      image('grid', { images: { grid: true } }),
      image(
        'tiered',
        { images: { default_size: '2048x2048' } },
        { pixel_tiers: [{ from_pixels: 2_400_000, per_unit: '9' }], input_image: '1.5' },
      ),
      image('fine', {}, { variants: { low: '1', medium: '4', high: '16' } }),
      image('tiers', { images: { grid: true } }, { per_unit: undefined, variants: { sd: '4', hd: '10' } }),
      image('lonely'),
      { id: 'film', endpoint_type: 'videos_generations', pricing: { unit: 'second', per_unit: '1' } },
    ],
    channels: [
      channel('open', 'openai-images', 'sketch', 'grid', 'fine', 'tiers'),
      channel('ark', 'ark-images', 'tiered'),
    ],
  }),
)

const { store } = await folderStore(t)
const recorded: string[] = []
const uploads = new Uploads({ files: store })
const LINK_KEY = Buffer.alloc(32, 9)
const inbox = {
  files: store,
  fileLinkKey: LINK_KEY,
  objects: {
    async recordObjects(objects: readonly { readonly key: string }[]) {
      for (const { key } of objects) recorded.push(key)
    },
  },
}

function ordered(model: string, more: Partial<ImageParams> = {}, balance = '1000') {
  const request = {
    model,
    prompt: 'A mill',
    n: 1,
    size: null,
    isAsync: false,
    isInline: false,
    isEdit: false,
    callback_url: null,
  }
  const caller = {
    request: { requestId: 'req_1', hasHeader: () => false },
    ends: { add() {} },
    known: { key: { kind: 'console' }, view: { balance: parseCredits(balance) } },
  } as unknown as AuthenticatedCall
  const records = { isAnswered: async () => false } as unknown as Idempotency['records']
  return orderImages(records, inbox, {
    ...caller,
    catalog,
    upload: uploads.begin('acc_a'),
    params: { ...request, images: [], mask: null, extra: {}, ...more },
    model: catalog.resolve(model)!,
  })
}
const held = async (...asked: Parameters<typeof ordered>) => printCredits((await ordered(...asked)).hold)

const LINK = { field: 'image', source: 'https://example.com/a.png' }
const PNG = Buffer.from('\x89PNG\r\n\x1a\nrest', 'latin1')
const inline = (bytes: Buffer) => ({
  field: 'image',
  source: `data:image/png;base64,${bytes.toString('base64')}`,
})

t.test('who waits for images waits 280 seconds, and nothing is owed of what comes later', async (t) => {
  t.match(await ordered('sketch'), { until: 'ended', deadlineMs: 280_000 })
  t.match(await ordered('sketch', { isAsync: true }), { until: 'accepted', deadlineMs: undefined })
})

t.test('the price of all of them is held: four at least of a grid', async (t) => {
  t.equal(await held('sketch', { n: 3 }), '12')
  t.equal(await held('grid'), '16')
  t.equal(await held('grid', { n: 4 }), '16')
  t.equal(await held('grid', { n: 10 }), '40')
  t.match(
    await ordered('grid', { n: 1 }),
    { job: { n: 1 } },
    'what is asked for is what the client asked for',
  )
})

t.test('a price by size is held by the size that is asked for, and each image that goes in', async (t) => {
  t.equal(await held('tiered'), '9')
  t.equal(await held('tiered', { size: '2K' }), '9')
  t.equal(await held('tiered', { size: '1600x1500' }), '9')
  t.equal(await held('tiered', { size: '1600x1499' }), '4')
  t.equal(await held('tiered', { size: '1024x1024', n: 2, images: [LINK, LINK] }), '11')
})

t.test('a quality with prices is one of them, and what is paid is what is asked for', async (t) => {
  const asked = async (model: string, quality: string | null, prompt = 'A mill') => {
    const extra = quality === null ? {} : { quality }
    const { job, hold } = await ordered(model, { extra, prompt })
    const { extra: sent, prompt: words } = job as { extra: { quality?: string }; prompt: string }
    return [words, sent.quality, printCredits(hold)]
  }
  t.same(await asked('fine', 'high'), ['A mill', 'high', '16'])
  t.same(await asked('fine', ' LOW '), ['A mill', 'low', '1'])
  t.same(await asked('fine', null), ['A mill', 'medium', '4'], 'what the base price covers is always said')
  t.same(await asked('tiers', 'high'), ['A mill --hd', undefined, '40'], 'four of a grid')
  t.same(await asked('tiers', 'sd', 'A mill --hd --repeat 4'), ['A mill --hd', undefined, '40'])
  t.same(await asked('sketch', 'ultra'), ['A mill', 'ultra', '4'], 'one price for all')
  for (const [model, quality] of [
    ['fine', 'ultra'],
    ['fine', 'auto'],
    ['tiers', null],
    ['tiers', 'ultra'],
  ] as const)
    await t.rejects(
      asked(model, quality),
      { status: 400, message: /'quality'.*the model has / },
      `${model} ${quality}`,
    )
  await t.rejects(asked('tiers', null, '--hd'), { status: 400, message: /'prompt'.*flags/ })
})

t.test('an edit goes where edits are done; one without a mask to channels that only generate', async (t) => {
  const edit = { isEdit: true, images: [LINK] }
  t.match(await ordered('sketch', edit), {
    job: { work: 'image_edit' },
    routes: [{ channel: { id: 'open' } }],
  })
  t.match(await ordered('tiered', edit), { job: { work: 'image' }, routes: [{ channel: { id: 'ark' } }] })
  const masked = { ...edit, mask: { ...LINK, field: 'mask' } }
  t.match((await ordered('sketch', masked)).job, { mask: { from: 'url', url: LINK.source } })
  await t.rejects(ordered('tiered', masked), { code: 'no_channel_available' })
  for (const model of ['lonely', 'film'])
    await t.rejects(ordered(model), { code: 'no_channel_available' }, model)
})

t.test('links stay links; what stands in the request goes into the store', async (t) => {
  const { job } = await ordered('sketch', { isEdit: true, images: [LINK, inline(PNG)], mask: inline(PNG) })
  const file = (number: number) => ({ from: 'store', key: `inputs/req_1-${number}.png`, bytes: PNG.length })
  t.match(job, { images: [{ from: 'url', url: LINK.source }, file(2)], mask: file(3) })
  t.equal((await store.head('inputs/req_1-3.png'))?.bytes, PNG.length)
  t.strictSame(recorded, ['inputs/req_1-2.png', 'inputs/req_1-3.png'], 'and goes in a day')
  await t.rejects(ordered('sketch', { images: [inline(Buffer.from('<svg/>'))] }), { code: 'invalid_request' })
})

t.test('an image in a text field of a form does not replace an uploaded file', async (t) => {
  const sent = (field: string, number: number) => {
    const key = `inputs/req_1-${number}.png`
    return { field, source: { from: 'store' as const, key, media_type: 'image/png', bytes: 4, name: '' } }
  }
  const [image, mask] = [sent('image', 1), sent('mask', 2)]
  const { job } = await ordered('sketch', { isEdit: true, images: [image, inline(PNG)], mask })
  t.match(job, { images: [image.source, { key: 'inputs/req_1-4.png' }], mask: mask.source })
})

t.test('a link of ours is the file that it leads to', async (t) => {
  const print = (key: string, at: number, signingKey = LINK_KEY) =>
    fileLinks('http://10.0.0.1:8080', signingKey).print(key, at)
  const put = (key: string, mediaType: string) => store.put(key, PNG, { mediaType, maxBytes: PNG.length })
  await Promise.all([put('images/img_1-1.png', 'image/png'), put('speech/spc_1.mp3', 'audio/mpeg')])
  const later = Date.now() + 60_000
  const first = async (source: string) =>
    (await ordered('sketch', { images: [{ field: 'image', source }] })).job
  const file = { from: 'store', key: 'images/img_1-1.png', media_type: 'image/png', bytes: PNG.length }
  t.match(await first(print('images/img_1-1.png', later)), { images: [{ ...file, name: 'img_1-1.png' }] })
  for (const url of [
    print('images/img_1-1.png', Date.now() - 60_000),
    print('images/img_1-1.png', later, Buffer.alloc(32, 8)),
    print('images/img_1-1.png', later).replace('1-1', '1-2'),
    print('images/gone.png', later),
    print('speech/spc_1.mp3', later),
  ])
    t.match(await first(url), { images: [{ from: 'url', url }] }, url)
})

t.test('nothing is stored without the money to pay', async (t) => {
  recorded.length = 0
  const asked = { n: 2, images: [inline(PNG)] }
  await t.rejects(ordered('sketch', asked, '7.99'), { code: 'quota_exceeded' })
  t.strictSame(recorded, [])
  await t.resolves(ordered('sketch', asked, '8'))
})
