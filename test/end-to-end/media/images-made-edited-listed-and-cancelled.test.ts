/** Everything below `/v1/images`, from the request to the settled row, with the demonstration's models and prices. */
import t, { type Test } from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { rowOf } from '../support.ts'
import {
  EDITS,
  type FormEntry,
  GENERATIONS,
  lastSent,
  linksIn,
  pictureAt,
  postForm,
  sizesOf,
  statusFor,
  withQueuedImages,
} from './image-support.ts'
import {
  ABSENT,
  type Answer,
  checkEntries,
  checkWallet,
  codeOf,
  finishUpstream,
  INVALID,
  KEY_REUSED,
  type MediaClient,
  NO_CHANNEL,
  NO_CREDIT,
  NO_MODEL,
  NOT_ALLOWED,
  NOT_CANCELLABLE,
  newClient,
} from './support.ts'

const DAY_SECONDS = 24 * 60 * 60
const LATER = 60
const PAID_IN = '10000'

t.test('images', async (t) => {
  const service = await borrowService(t, withQueuedImages())
  const client = await newClient(service, PAID_IN)
  const charges: string[] = []
  const make = (body: object, headers?: Record<string, string>) => client.post(GENERATIONS, body, headers)
  /** What the upstream was asked for. */
  const sent = async () => JSON.parse(await lastSent(service))

  /** The row of a call that was answered with images, and the entries of its task. */
  async function checkBooks(t: Test, answer: Answer, held: string, charged: string, images: number) {
    t.equal(answer.status, 200, JSON.stringify(answer.body.error))
    const row = await rowOf(service, client.key, answer.trace)
    t.match(row, {
      status: 'success',
      cost: charged,
      unit_count: String(images),
      unit_type: 'image',
      error_code: null,
    })
    t.equal((row.result_urls as string[]).length, images)
    await checkEntries(t, service, client, String(row.task_id), { held, charged })
    charges.push(charged)
    return row
  }

  let picture: Buffer = Buffer.alloc(0)
  await t.test('are made, charged one by one, and their links open for a day', async (t) => {
    const before = Math.floor(Date.now() / 1000)
    const body = { model: 'demo-image', prompt: 'Two lighthouses', n: 2, size: '640x480', user: 'u-1' }
    const headers = { 'idempotency-key': 'lighthouses' }
    const answer = await make(body, headers)
    const row = await checkBooks(t, answer, '25', '25', 2)
    t.match(row, { attempts_count: 1, model: 'demo-image' })
    const { created } = answer.body as { created: number }
    t.ok(created >= before && created <= before + LATER)
    const links = linksIn(answer.body)
    t.strictSame(answer.body, { created, model: 'demo-image', data: links.map((url) => ({ url })) })
    t.strictSame(await sizesOf(answer), ['640x480', '640x480'])
    const seen = await pictureAt(links[0]!)
    t.match(seen, { type: 'image/png', facts: { mediaType: 'image/png' } })
    picture = seen.bytes
    const expires = Number(new URL(links[0]!).searchParams.get('expires'))
    t.ok(expires >= before + DAY_SECONDS && expires <= before + DAY_SECONDS + LATER)
    t.match(await sent(), { prompt: 'Two lighthouses', n: 2, size: '640x480', user: 'u-1' })

    const again = await make(body, headers)
    t.equal(again.headers.get('idempotency-replayed'), 'true')
    t.strictSame(again.body, answer.body)
    t.strictSame(codeOf(await make({ ...body, n: 3 }, headers)), KEY_REUSED)
  })

  await t.test('come in the answer itself where that is asked for', async (t) => {
    const body = { model: 'demo-image', prompt: 'Inline', size: '64x64', response_format: 'b64_json' }
    const headers = { 'idempotency-key': 'inline' }
    const answer = await make(body, headers)
    await checkBooks(t, answer, '12.5', '12.5', 1)
    const { created, data } = answer.body as { created: number; data: { b64_json: string }[] }
    t.strictSame(answer.body, { created, model: 'demo-image', data: [{ b64_json: data[0]!.b64_json }] })
    const row = await rowOf(service, client.key, answer.trace)
    const stored = await pictureAt((row.result_urls as string[])[0]!)
    t.ok(stored.bytes.equals(Buffer.from(data[0]!.b64_json, 'base64')))
    const again = await make(body, headers)
    t.strictSame(codeOf(again), { status: 409, code: 'idempotency_response_not_cached' }, 'however small')

    const task = await make({ ...body, async: true })
    t.strictSame(codeOf(task), { status: 400, code: 'invalid_request' }, 'a task has links')
  })

  await t.test('are charged as they come: three of four', async (t) => {
    const answer = await make({ model: 'demo-image', prompt: 'Four [simulate: partial=3]', n: 4 })
    await checkBooks(t, answer, '50', '37.5', 3)
  })

  await t.test('come in fours from a grid, whose size is a ratio and whose fineness a flag', async (t) => {
    const wide = await make({ model: 'demo-image-grid', prompt: 'Boats', size: '1920x1000', quality: 'hd' })
    await checkBooks(t, wide, '24', '24', 4)
    t.strictSame(await sizesOf(wide), Array(4).fill('2048x1152'))
    t.match(await sent(), { prompt: 'Boats --hd', size: '1024x576', quality: undefined })
    const many = await make({ model: 'demo-image-grid', prompt: 'Boats --sd', n: 6, quality: 'hd' })
    await checkBooks(t, many, '36', '24', 4)
    t.strictSame(await sizesOf(many), Array(4).fill('1024x1024'))
    t.equal((await sent()).prompt, 'Boats --sd')
  })

  await t.test('of a model that takes no size have the ratio in the prompt', async (t) => {
    const answer = await make({ model: 'demo-image-ratio', prompt: 'A tower', size: '1024x1536' })
    await checkBooks(t, answer, '8', '8', 1)
    t.match(await sent(), { prompt: 'A tower\n\nAspect ratio: 2:3', size: undefined })
    t.strictSame(await sizesOf(answer), ['683x1024'])
  })

  await t.test('priced by size are held by the requested size, and settled only downward', async (t) => {
    const tiered = (prompt: string, more: object) => make({ model: 'demo-image-tiered', prompt, ...more })
    await checkBooks(t, await tiered('Small', { size: '1024x1024' }), '17.79', '17.79', 1)
    const usual = await tiered('As usual', {})
    await checkBooks(t, usual, '35.58', '35.58', 1)
    t.strictSame(await sizesOf(usual), ['2048x2048'])
    const less = await tiered('Less [simulate: size=1200x1200]', { size: '2048x2048' })
    await checkBooks(t, less, '35.58', '17.79', 1)
    const more = await tiered('More [simulate: size=2048x2048]', { size: '1024x1024' })
    await checkBooks(t, more, '17.79', '17.79', 1)
    const image = ['https://example.com/one.png', `data:image/png;base64,${picture.toString('base64')}`]
    const from = await tiered('From two', { size: '1024x1024', image })
    await checkBooks(t, from, '20.79', '20.79', 1)
    t.strictSame((await sent()).image, image, 'both go to the upstream')
    const edited = await client.post(EDITS, {
      model: 'demo-image-tiered',
      prompt: 'Night',
      image,
      size: '1024x1024',
    })
    await checkBooks(t, edited, '20.79', '20.79', 1)
  })

  await t.test('are edited, as JSON and as a form', async (t) => {
    const uri = `data:image/png;base64,${picture.toString('base64')}`
    const asJson = { model: 'demo-image', prompt: 'Night', image: uri, mask: uri, size: '320x200' }
    const first = await client.post(EDITS, asJson)
    await checkBooks(t, first, '12.5', '12.5', 1)
    t.strictSame(await sizesOf(first), ['320x200'])
    const entries: FormEntry[] = [
      ...([
        ['model', 'demo-image'],
        ['prompt', 'Dusk'],
        ['n', '2'],
        ['size', '64x64'],
      ] as const),
      ['image[]', picture],
      ['image[]', Buffer.concat([picture, Buffer.from('another')])],
      ['mask', picture],
    ]
    const intent = { 'idempotency-key': 'dusk' }
    const second = await postForm(service, client, entries, intent)
    await checkBooks(t, second, '25', '25', 2)
    const body = await lastSent(service)
    t.match(body, 'filename="picture 4.png"')
    t.equal(body.split('name="image[]"').length, 3, 'two images')
    t.equal(body.split('name="mask"').length, 2, 'and a mask')
    const replayed = await postForm(service, client, entries, intent)
    t.equal(replayed.headers.get('idempotency-replayed'), 'true', 'another boundary, the same form')
    t.strictSame(replayed.body, second.body)
    const reordered = await postForm(service, client, [...entries.slice(4), ...entries.slice(0, 4)], intent)
    t.equal(reordered.headers.get('idempotency-replayed'), 'true', 'another order of the fields')
    t.strictSame(reordered.body, second.body)
    const other = await postForm(
      service,
      client,
      [...entries.slice(0, -1), ['mask', Buffer.concat([picture, picture])]],
      intent,
    )
    t.strictSame(codeOf(other), KEY_REUSED)

    const async = await postForm(service, client, [...entries, ['async', 'true']])
    t.match(async, { status: 200, body: { object: 'image.task', status: 'queued' } })
    t.match(await client.ended(`${GENERATIONS}/${async.body.id}`), {
      status: 'succeeded',
      data: { length: 2 },
    })
    charges.push('25')
  })

  await t.test('are edited by the link that was handed out', async (t) => {
    const { body } = await client.get(`${GENERATIONS}?limit=1`)
    const [made] = body.data as { data: { url: string }[] }[]
    const answer = await client.post(EDITS, {
      model: 'demo-image',
      prompt: 'Dawn',
      image: made!.data[0]!.url,
    })
    await checkBooks(t, answer, '12.5', '12.5', 1)
    t.match(await lastSent(service), /content-type: image\/png/)
  })

  await t.test('are made behind a task', async (t) => {
    const submitted = await make({
      model: 'queued-image',
      prompt: 'Later [simulate: delay=600000]',
      n: 2,
      async: true,
    })
    const { id, created_at } = submitted.body as { id: string; created_at: number }
    t.match(id, /^img_[0-9A-HJKMNP-TV-Z]{26}$/)
    const head = { id, object: 'image.task', model: 'queued-image', created_at }
    t.strictSame(submitted.body, { ...head, status: 'queued' })
    t.strictSame((await client.get(`${GENERATIONS}/${id}`)).body, { ...head, status: 'queued' })
    await finishUpstream(service, id)
    const done = await client.ended(`${GENERATIONS}/${id}`)
    const data = linksIn(done).map((url) => ({ url }))
    const { expires_at } = done as { expires_at: number }
    t.strictSame(done, { ...head, status: 'succeeded', data, expires_at })
    t.equal(data.length, 2)
    t.ok(expires_at >= created_at + DAY_SECONDS && expires_at <= created_at + DAY_SECONDS + LATER)
    t.equal((await pictureAt(data[0]!.url)).type, 'image/png')
    t.match(await checkBooks(t, submitted, '14', '14', 2), { attempts_count: null, task_id: id })
    const late = await client.ask('DELETE', `${GENERATIONS}/${id}`)
    t.strictSame(codeOf(late), NOT_CANCELLABLE)
  })

  await t.test('are cancelled while they are queued, and cost nothing then', async (t) => {
    const { body } = await make({
      model: 'queued-image',
      prompt: 'No [simulate: queue=60000,delay=90000]',
      async: true,
    })
    const id = String(body.id)
    const gone = await client.ask('DELETE', `${GENERATIONS}/${id}`)
    t.match(gone, { status: 200, body: { id, status: 'cancelled', error: { code: 'task_cancelled' } } })
    await checkEntries(t, service, client, id, { held: '7', charged: null })
    const again = await client.ask('DELETE', `${GENERATIONS}/${id}`)
    t.strictSame(codeOf(again), NOT_CANCELLABLE)
    await checkList(t, id)
  })

  async function checkList(t: Test, cancelledId: string) {
    const idsOf = async (query: string) => {
      const { body } = await client.get(GENERATIONS + query)
      const { object, data, has_more } = body as {
        object: string
        data: Record<string, string>[]
        has_more: boolean
      }
      t.equal(object, 'list')
      return {
        ids: data.map(({ id }) => id),
        statuses: [...new Set(data.map(({ status }) => status))],
        has_more,
      }
    }
    t.match(await idsOf('?limit=2'), { ids: { length: 2, 0: cancelledId }, has_more: true })
    t.strictSame(await idsOf('?status=cancelled'), {
      ids: [cancelledId],
      statuses: ['cancelled'],
      has_more: false,
    })
    t.match(await idsOf('?status=succeeded,queued&limit=100'), { statuses: ['succeeded'], has_more: false })
    for (const query of ['?limit=101', '?limit=0', '?status=done'])
      t.strictSame(codeOf(await client.get(GENERATIONS + query)), INVALID, query)
  }

  await t.test('that fail cost nothing, whether they are waited for or not', async (t) => {
    const words = 'Bad [simulate: delay=200,outcome=moderation]'
    const waited = await make({ model: 'queued-image', prompt: words })
    t.strictSame(codeOf(waited), INVALID)
    const { body } = await make({ model: 'queued-image', prompt: words, async: true })
    const task = await client.ended(`${GENERATIONS}/${body.id}`)
    t.match(task, { status: 'failed', error: { code: 'content_policy', message: /rules/ } })
    await checkEntries(t, service, client, String(body.id), { held: '7', charged: null })
    t.match(await rowOf(service, client.key, waited.trace), { status: 'error', cost: '0' })
    const refused = await make({ model: 'demo-image', prompt: 'Bad [simulate: outcome=moderation]' })
    t.strictSame(refused.body, {
      error: {
        message: 'Your request was rejected by the safety system: simulated.',
        type: 'invalid_request_error',
        code: 'invalid_request',
      },
    })
    t.match(await rowOf(service, client.key, refused.trace), {
      status: 'rejected',
      cost: '0',
      attempts_count: 1,
    })
  })

  await t.test('are refused in words that name the field', async (t) => {
    const plain = { model: 'demo-image', prompt: 'x' }
    const links = Array(17).fill('https://example.com/a.png')
    const wrong: readonly (readonly [object, RegExp])[] = [
      [{ prompt: 'x' }, /'model'/],
      [{ model: 'demo-image' }, /'prompt'/],
      [{ ...plain, n: 11 }, /'n'/],
      [{ ...plain, n: 0 }, /'n'/],
      [{ ...plain, response_format: 'jpeg' }, /'response_format'/],
      [{ ...plain, stream: true }, /'stream'.*not streamed/],
      [{ ...plain, image: 'file:///etc/passwd' }, /'image'.*http/],
      [{ ...plain, image: links }, /'image'/],
      [{ ...plain, image: 'data:image/png;base64,aGVsbG8=' }, /image is not a PNG/],
      [{ ...plain, style: 'x'.repeat(65) }, /'style'/],
      [{ model: 'demo-image-grid', prompt: 'x', size: 'large' }, /'size'/],
    ]
    for (const [body, message] of wrong) {
      const answer = await make(body)
      t.match(answer, {
        status: 400,
        body: { error: { type: 'invalid_request_error', code: 'invalid_request', message } },
      })
    }
    const inner = await client.post(EDITS, { ...plain, image: `${service.baseUrl}/docs` })
    t.match(inner, { status: 400, body: { error: { code: 'invalid_request', message: /public address/ } } })
    t.match(await rowOf(service, client.key, inner.trace), { status: 'rejected', cost: '0' })
    const noImage = await postForm(service, client, [
      ['model', 'demo-image'],
      ['prompt', 'x'],
    ])
    t.match(noImage, { status: 400, body: { error: { message: /'image'/ } } })
    t.match(await client.post(EDITS, plain), { status: 400, body: { error: { message: /'image'/ } } })
    const odd = await make({ ...plain, model: 'nowhere' })
    t.strictSame(codeOf(odd), NO_MODEL)
    const chat = await make({ ...plain, model: 'sonata-large' })
    t.strictSame(codeOf(chat), NO_CHANNEL)
    t.match(await rowOf(service, client.key, chat.trace), {
      status: 'rejected',
      cost: '0',
      attempts_count: 0,
    })
    const small = await make({ model: 'demo-image-tiered', prompt: 'x', size: '64x64' })
    t.strictSame(codeOf(small), INVALID, 'the upstream has its own smallest size')
  })

  await t.test('are edited up to 32 MiB of JSON and 64 MiB of form', async (t) => {
    const mebibyte = 1024 * 1024
    for (const [type, most] of [
      ['application/json', 32],
      ['multipart/form-data; boundary=x', 64],
    ] as const)
      t.equal(await statusFor(service, client, type, most * mebibyte + 1), 413, type)
  })

  await t.test('are refused without permission or money', async (t) => {
    const plain = { model: 'demo-image', prompt: 'x' }
    const poor: MediaClient = await newClient(service, '12.4')
    t.strictSame(codeOf(await poor.post(GENERATIONS, plain)), NO_CREDIT)
    const empty = await newClient(service, '0')
    t.strictSame(codeOf(await empty.post(GENERATIONS, plain)), NO_CREDIT)
    t.match(
      await empty.get(GENERATIONS),
      { status: 200, body: { data: { length: 0 }, has_more: false } },
      'reading is free',
    )
    const narrow = await newClient(service, '100', { allowedModels: ['demo-image-grid'] })
    const forbidden = await narrow.post(GENERATIONS, plain)
    t.strictSame(codeOf(forbidden), NOT_ALLOWED)
    const { body } = await client.get(`${GENERATIONS}?limit=1`)
    const [own] = body.data as { id: string }[]
    for (const id of [own!.id, 'img_00000000000000000000000000', 'x'])
      for (const method of ['GET', 'DELETE'])
        t.strictSame(codeOf(await narrow.ask(method, `${GENERATIONS}/${id}`)), ABSENT)
    const nobody: MediaClient = { ...poor, key: 'sk-none' }
    t.strictSame(codeOf(await postForm(service, nobody, [['model', 'demo-image']])), {
      status: 401,
      code: 'invalid_api_key',
    })
  })

  await checkWallet(t, service, client, PAID_IN, charges)
})
