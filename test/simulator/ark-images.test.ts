import t from 'tap'
import type { Json } from './dialects-support.ts'
import { readPng } from './media/probe.ts'
import { mediaClient, textAt } from './media-support.ts'

const client = await mediaClient(t)

const GENERATIONS = '/api/v3/images/generations'
const asked = (fields: object = {}, model = 'sim-image@delay=0') => ({ model, prompt: 'A loaf', ...fields })
const group = (max_images: number) => ({
  sequential_image_generation: 'auto',
  sequential_image_generation_options: { max_images },
})

t.test('one picture comes of a request, or a group of them, in the reported size', async (t) => {
  const { json } = await client.post(GENERATIONS, asked())
  t.match(json, { model: 'sim-image', data: [{ size: '2048x2048' }], usage: { generated_images: 1 } })
  const picture = await client.get(textAt(json, 'data', 0, 'url'))
  t.equal(picture.type, 'image/png')
  t.match(readPng(picture.bytes), { width: 2048, height: 2048 })
  const fields = { ...group(3), size: '1600x1200', response_format: 'b64_json', watermark: false }
  const several = (await client.post(GENERATIONS, asked(fields))).json
  t.match(several.usage, { generated_images: 3, output_tokens: (3 * 1600 * 1200) / 256 })
  for (const { b64_json, size } of several.data as unknown as Json[]) {
    t.match(readPng(Buffer.from(String(b64_json), 'base64')), { width: 1600, height: 1200 })
    t.equal(size, '1600x1200')
  }
  t.match((await client.post(GENERATIONS, asked({ size: '1K' }))).json.data, [{ size: '1024x1024' }])
})

t.test('references count against the group, and pictures that fail say why', async (t) => {
  const image = ['https://example.com/a.png', 'data:image/png;base64,iVBORw0KGgo=']
  const full = (await client.post(GENERATIONS, asked({ image, ...group(15), size: '1K' }))).json
  t.equal((full.data as unknown as Json[]).length, 13)
  const half = await client.post(GENERATIONS, asked(group(4), 'sim-image@delay=0,partial=3'))
  t.match(half.json, {
    usage: { generated_images: 3 },
    data: [{ url: String }, { url: String }, { url: String }, { error: { code: /OutputImage/ } }],
  })
})

t.test('what the vendor refuses is refused in its shape', async (t) => {
  const refused: [object, number, object][] = [
    [{ model: 'sim-image' }, 400, { code: 'InvalidParameter', param: 'prompt', type: 'BadRequest' }],
    [asked({ size: '640x480' }), 400, { param: 'size' }],
    [asked({ size: '1024x1024' }, 'sim-image-hd'), 400, { param: 'size' }],
    [asked({ image: 'a.png' }), 400, { param: 'image' }],
    [asked(group(16)), 400, { param: 'sequential_image_generation_options.max_images' }],
    [asked({}, 'other'), 404, { code: 'InvalidEndpointOrModel.NotFound' }],
    [asked({}, 'sim-image@outcome=moderation'), 400, { code: 'InputTextSensitiveContentDetected' }],
    [asked({}, 'sim-image@outcome=fail'), 500, { code: 'InternalServiceError' }],
  ]
  for (const [body, status, error] of refused)
    t.match(await client.post(GENERATIONS, body), { status, json: { error } }, JSON.stringify(error))
  const stranger = await client.post(GENERATIONS, asked(), {})
  t.match(stranger, { status: 401, json: { error: { code: 'AuthenticationError' } } })
})
