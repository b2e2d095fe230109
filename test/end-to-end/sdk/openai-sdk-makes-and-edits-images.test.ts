/** The vendor's SDK makes images: with the simulated provider behind the gateway, and with a mock that no one here wrote. */
import { createHash } from 'node:crypto'
import { crc32, deflateSync } from 'node:zlib'
import { LLMock } from '@copilotkit/aimock'
import OpenAI, { toFile } from 'openai'
import t from 'tap'
import { readImageFacts } from '../../../src/core/media/image-size.ts'
import { until } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { pictureAt } from '../media/image-support.ts'
import { checkWallet, demonstration, newClient } from '../media/support.ts'
import { rowOf } from '../support.ts'
import { PNG_BASE64, refused } from './support.ts'

const PNG = Buffer.from(PNG_BASE64, 'base64')
const STRANGER = 'gpt-image-1'
/** Above what an answer may be so that it is kept for a replay. */
const LARGE_SIDE_PIXELS = 700

const chunk = (name: string, data: Buffer): Buffer => {
  const named = Buffer.concat([Buffer.from(name), data])
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(named))
  return Buffer.concat([length, named, sum])
}

/** Noise: nothing makes it smaller. The same each time. */
function noisyPng(side: number): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(side, 0)
  header.writeUInt32BE(side, 4)
  header.set([8, 2], 8)
  const row = (y: number) =>
    createHash('shake256', { outputLength: side * 3 })
      .update(`row ${y}`)
      .digest()
  const rows = Array.from({ length: side }, (_, y) => Buffer.concat([Buffer.alloc(1), row(y)]))
  const data = deflateSync(Buffer.concat(rows), { level: 0 })
  const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('IDAT', data),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

const withStranger = (url: string): string =>
  demonstration((yaml) =>
    yaml
      .replace(
        /^models:$/m,
        `models:\n  - { id: ${STRANGER}, endpoint_type: images_generations, pricing: { unit: image, per_unit: "3" } }`,
      )
      .replace(
        /^channels:$/m,
        `channels:\n  - { id: line, protocol: openai-images, base_url: "${url}/v1", api_key: sk-mock-1, models: { ${STRANGER}: ${STRANGER} } }`,
      ),
  )

t.test('the OpenAI SDK', async (t) => {
  const large = noisyPng(LARGE_SIDE_PIXELS)
  const mock = new LLMock({ port: 0, logLevel: 'silent' })
  const one = { b64Json: PNG_BASE64 }
  mock.onImage('a loaf', { images: [one, { ...one, revisedPrompt: 'a loaf of bread' }] })
  mock.onImage('a large loaf', { image: { b64Json: large.toString('base64') } })
  const busy = { error: { message: 'Slow down.', type: 'rate_limit_error' }, status: 429 }
  mock.on({ userMessage: 'a burnt loaf', endpoint: 'image' }, busy)
  await mock.start()
  t.teardown(() => mock.stop())
  const service = await borrowService(t, withStranger(mock.url))
  const { key, accountId } = await newClient(service, '1000')
  const client = new OpenAI({ apiKey: key, baseURL: `${service.baseUrl}/v1`, maxRetries: 0 })
  const { images } = client

  await t.test('makes them as links and as bytes', async (t) => {
    const { data: answer, response } = await images
      .generate({ model: 'demo-image', prompt: 'A barn', n: 2, size: '512x512' })
      .withResponse()
    t.equal(answer.data?.length, 2)
    for (const { url } of answer.data ?? [])
      t.match((await pictureAt(url!)).facts, { mediaType: 'image/png', width: 512, height: 512 })
    const row = await rowOf(service, key, response.headers.get('x-gateway-trace')!)
    t.match(row, { status: 'success', cost: '25', unit_count: '2' })
    const inline = await images.generate({
      model: 'demo-image',
      prompt: 'A barn',
      size: '256x256',
      response_format: 'b64_json',
    })
    t.match(readImageFacts(Buffer.from(inline.data![0]!.b64_json!, 'base64')), { width: 256, height: 256 })
  })

  await t.test('edits files that it uploads', async (t) => {
    const [barn, mask] = await Promise.all(
      ['barn.png', 'mask.png'].map((name) => toFile(PNG, name, { type: 'image/png' })),
    )
    const model = 'demo-image'
    const single = await images.edit({ model, image: barn!, mask: mask!, prompt: 'Snow', size: '1024x1536' })
    t.match((await pictureAt(single.data![0]!.url!)).facts, { width: 1024, height: 1536 })
    const several = await images.edit({ model, image: [barn!, mask!], prompt: 'Snow', n: 2 })
    t.equal(several.data?.length, 2)
  })

  await t.test('gets what the upstream refuses, and what nobody serves, as its own errors', async (t) => {
    const { BadRequestError, PermissionDeniedError, RateLimitError } = OpenAI
    const moderated = images.generate({ model: 'demo-image', prompt: 'x [simulate: outcome=moderation]' })
    await refused(t, moderated, BadRequestError, { status: 400, message: /safety system/ })
    const streamed = images.generate({ model: 'demo-image', prompt: 'x', stream: true })
    await refused(t, streamed, BadRequestError, { message: /not streamed/ })
    const burnt = images.generate({ model: STRANGER, prompt: 'a burnt loaf' })
    await refused(t, burnt, RateLimitError, { status: 429, message: /Slow down/ })
    const { raw } = await service.database.keys.create({
      name: 'narrow',
      accountId,
      allowedModels: ['demo-image'],
    })
    const narrow = new OpenAI({ apiKey: raw, baseURL: client.baseURL, maxRetries: 0 })
    const forbidden = narrow.images.generate({ model: STRANGER, prompt: 'a loaf' })
    await refused(t, forbidden, PermissionDeniedError, { status: 403, code: 'model_not_allowed' })
  })

  await t.test('gets the images of a stranger that answers with bytes alone', async (t) => {
    const made = await images.generate({ model: STRANGER, prompt: 'a loaf', n: 2 })
    for (const { url } of made.data ?? []) t.ok((await pictureAt(url!)).bytes.equals(PNG))
    t.equal(made.data?.length, 2)
    const image = await toFile(PNG, 'loaf.png', { type: 'image/png' })
    const edited = await images.edit({
      model: STRANGER,
      image,
      prompt: 'a loaf',
      response_format: 'b64_json',
    })
    t.strictSame(
      edited.data?.map(({ b64_json }) => b64_json),
      [PNG_BASE64],
      'it edits two where one was asked for: the other is neither handed out nor charged',
    )
    const seen = mock.getRequests().map(({ path }) => path)
    t.ok(seen.includes('/v1/images/generations') && seen.includes('/v1/images/edits'))
  })

  await t.test('gets an error for an answer too large to replay', async (t) => {
    const make = (format: 'url' | 'b64_json', intent: string) =>
      images.generate(
        { model: STRANGER, prompt: 'a large loaf', response_format: format },
        { headers: { 'idempotency-key': intent } },
      )
    const whole = await make('b64_json', 'whole')
    t.ok(Buffer.from(whole.data![0]!.b64_json!, 'base64').equals(large))
    const again = make('b64_json', 'whole')
    await refused(t, again, OpenAI.ConflictError, { status: 409, code: 'idempotency_response_not_cached' })
    const linked = await make('url', 'linked')
    t.strictSame(await make('url', 'linked'), linked)
    t.ok((await pictureAt(linked.data![0]!.url!)).bytes.equals(large))
  })

  // 2 + 1 + 1 + 2 of the demonstration's; 2 + 1 + 1 + 1 of the stranger's.
  const charges = [...Array(6).fill('12.5'), ...Array(5).fill('3')]
  await until('all is settled', async () => {
    const rows = await service.logs(key, (found) => found.length > 0)
    return rows.filter(({ status }) => status === 'success').length === 8
  })
  await checkWallet(t, service, { key }, '1000', charges)
})
