/** "POST /v1/images/generations" and "/v1/images/edits": fields, prices, links, tasks. */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { PNG_BASE64, PNG_URI } from '../end-to-end/sdk/support.ts'
import { KEPT_ALIVE_AFTER_SECONDS } from './configuration.ts'
import { section, statement, statements } from './statement.ts'
import { type Client, simulate } from './world.ts'

const GENERATIONS = '/v1/images/generations'
const EDITS = '/v1/images/edits'
const DAY_SECONDS = 86_400
const LATER_SECONDS = 120
const invalid = { status: 400, body: { error: { code: 'invalid_request', type: 'invalid_request_error' } } }

const make = (client: Client, model: string, more: object = {}) =>
  client.post(GENERATIONS, { model, prompt: 'a kite', ...more })

/** A prompt by which its request is found at the upstream. */
const wordOf = () => `a kite ${randomBytes(6).toString('hex')}`

/** What a generation held and cost: the largest amount held is the price of what was asked for. */
async function costOf(client: Client, model: string, more: object) {
  const answer = await make(client, model, more)
  if (answer.status !== 200) throw new Error(answer.text)
  const { cost, unit_count } = await client.row(answer)
  return { cost, made: answer.body.data.length, unit_count: Number(unit_count) }
}

/** The least balance that is enough is the hold. */
const HELD = [
  ['demo-image', {}, '12.5'],
  ['demo-image', { n: 3 }, '37.5'],
  ['demo-image-grid', { n: 1 }, '24'],
  ['demo-image-grid', { n: 4 }, '24'],
  ['demo-image-grid', { n: 5 }, '30'],
  ['demo-image-tiered', { size: '1024x1024' }, '17.79'],
  ['demo-image-tiered', { size: '2048x2048' }, '35.58'],
  ['demo-image-tiered', {}, '35.58'],
  ['demo-image-tiered', { size: '1024x1024', image: PNG_URI }, '19.29'],
] as const

/** A little less than an amount. */
const less = (amount: string) => String((Number(amount) - 0.01).toFixed(2))

const expiryOf = (url: string) => Number(new URL(url).searchParams.get('expires'))
const inADay = (seconds: number) => {
  const left = seconds - Date.now() / 1000
  return left > DAY_SECONDS - LATER_SECONDS && left <= DAY_SECONDS + LATER_SECONDS
}

function form(fields: Readonly<Record<string, string>>): FormData {
  const made = new FormData()
  for (const [name, value] of Object.entries(fields)) made.set(name, value)
  made.set('image', new Blob([Buffer.from(PNG_BASE64, 'base64')], { type: 'image/png' }), 'a.png')
  return made
}

await section(t, 'Images', [
  statement('A generation answers with the pictures, one by default, by their links', async (t, world) => {
    const client = await world.client()
    const answer = await make(client, 'demo-image')
    t.match(answer, { status: 200, body: { created: Number, model: 'demo-image', data: [{ url: /^http/ }] } })
    t.equal(answer.body.data.length, 1)
    const picture = await fetch(answer.body.data[0].url)
    t.same([picture.status, picture.headers.get('content-type')], [200, 'image/png'])
    await picture.arrayBuffer()
  }),
  statement('Links of pictures open for 24 hours', async (t, world) => {
    const client = await world.client()
    const { body } = await make(client, 'demo-image')
    t.ok(inADay(expiryOf(body.data[0].url)))
  }),
  statement(
    'response_format b64_json answers with the pictures themselves; url is the default',
    async (t, world) => {
      const client = await world.client()
      const inline = await make(client, 'demo-image', { response_format: 'b64_json' })
      t.equal(Buffer.from(inline.body.data[0].b64_json, 'base64').subarray(1, 4).toString(), 'PNG')
      t.match((await make(client, 'demo-image', { response_format: 'url' })).body.data, [{ url: /^http/ }])
      t.match(await make(client, 'demo-image', { response_format: 'png' }), invalid)
    },
  ),
  statements(
    ['model', 'prompt'],
    (name) => `${name} is required`,
    async (t, world, name) => {
      const client = await world.client()
      t.match(await make(client, 'demo-image', { [name]: undefined }), invalid)
    },
  ),
  statement('n is 1 to 10', async (t, world) => {
    const client = await world.client()
    for (const n of [1, 10]) t.equal((await make(client, 'demo-image', { n })).body.data?.length, n)
    for (const n of [0, 11, 1.5, 'two']) t.match(await make(client, 'demo-image', { n }), invalid, `${n}`)
  }),
  statement('size goes to the upstream unchanged, which refuses what it does not make', async (t, world) => {
    const client = await world.client()
    const prompt = wordOf()
    await make(client, 'demo-image', { size: '640x481', prompt })
    t.equal((await world.receivedWith(prompt)).size, '640x481')
    t.equal((await make(client, 'demo-image-tiered', { size: '960x960' })).status, 200)
    t.match(await make(client, 'demo-image-tiered', { size: '959x960' }), invalid)
  }),
  statements(
    HELD,
    ([model, more, held]) =>
      `${held} are held for ${model} with ${JSON.stringify(more).slice(0, 60)}: price x n`,
    async (t, world, [model, more, held]) => {
      t.equal((await make(await world.client(held), model, more)).status, 200)
      const short = await make(await world.client(less(held)), model, more)
      t.match(short, { status: 402, body: { error: { code: 'quota_exceeded' } } })
    },
  ),
  statement('The pictures that were made are charged, not those that were asked for', async (t, world) => {
    const client = await world.client('100')
    const found = await costOf(client, 'demo-image', { n: 4, prompt: simulate('partial=3') })
    t.same(found, { cost: '37.5', made: 3, unit_count: 3 })
    t.equal(await client.remaining('62.5'), '62.5')
  }),
  statement(
    'A grid makes 4 whatever n is, and its size selects the nearest of five ratios',
    async (t, world) => {
      const client = await world.client()
      t.same(await costOf(client, 'demo-image-grid', { n: 1 }), { cost: '24', made: 4, unit_count: 4 })
      for (const [size, ratio] of [
        ['1000x1010', 1],
        ['1920x1000', 16 / 9],
        ['1000x1920', 9 / 16],
        ['1200x900', 4 / 3],
        ['900x1200', 3 / 4],
      ] as const) {
        const prompt = wordOf()
        await make(client, 'demo-image-grid', { size, prompt })
        const [width = 0, height = 1] = (await world.receivedWith(prompt)).size.split('x').map(Number)
        t.equal((width / height).toFixed(2), ratio.toFixed(2), size)
      }
    },
  ),
  statement('Flags at the end of the prompt choose how fine a grid is', async (t, world) => {
    const client = await world.client()
    for (const flag of ['--sd', '--hd']) {
      const prompt = `${wordOf()} ${flag}`
      await make(client, 'demo-image-grid', { prompt })
      t.equal((await world.receivedWith(prompt)).prompt, prompt)
    }
  }),
  statement('A model that takes no size has the ratio in its prompt', async (t, world) => {
    const client = await world.client()
    const word = wordOf()
    await make(client, 'demo-image-ratio', { size: '1024x1536', prompt: word })
    const { prompt, size } = await world.receivedWith(word)
    t.equal(size, undefined)
    t.match(prompt, /2:3/)
  }),
  statement('A model priced by size settles by the size that was made, only downward', async (t, world) => {
    const client = await world.client()
    const cost = async (size: string | undefined, made?: string) =>
      (
        await costOf(client, 'demo-image-tiered', {
          ...(size && { size }),
          ...(made && { prompt: simulate(`size=${made}`) }),
        })
      ).cost
    t.equal(await cost('1024x1024'), '17.79')
    t.equal(await cost('2048x2048'), '35.58')
    t.equal(await cost(undefined), '35.58', 'the default is 2048x2048')
    t.equal(await cost('2048x2048', '1200x1200'), '17.79')
    t.equal(await cost('1024x1024', '2048x2048'), '17.79')
  }),
  statement(
    'The upper price begins between 2.36 and 2.61 megapixels, and is about double',
    async (t, world) => {
      const client = await world.client()
      const cost = async (size: string) => (await costOf(client, 'demo-image-tiered', { size })).cost
      t.equal(await cost('1536x1536'), '17.79', '2.36 megapixels')
      t.equal(await cost('1616x1616'), '35.58', '2.61 megapixels')
    },
  ),
  statement('Reference images of that model have a charge', async (t, world) => {
    const client = await world.client()
    const { cost } = await costOf(client, 'demo-image-tiered', {
      size: '1024x1024',
      image: [PNG_URI, PNG_URI],
    })
    t.equal(cost, '20.79')
  }),
  statement('A failure costs nothing', async (t, world) => {
    const client = await world.client('100')
    const answer = await make(client, 'demo-image', { prompt: simulate('fault=status:500') })
    t.equal(answer.status, 500)
    t.equal(await client.remaining('100'), '100')
    t.match(await client.balance(), { held: '0', used: '0' })
  }),
  statement(
    'async true answers with a task, which a poll and a list show, with links at its end',
    async (t, world) => {
      const client = await world.client('100')
      const submitted = await make(client, 'demo-image', { async: true, n: 2 })
      t.match(submitted, {
        status: 200,
        body: {
          id: /^img_/,
          object: 'image.task',
          model: 'demo-image',
          status: 'queued',
          created_at: Number,
        },
      })
      const { id } = submitted.body
      const ended = await client.ended(`${GENERATIONS}/${id}`)
      t.match(ended, {
        id,
        object: 'image.task',
        status: 'succeeded',
        data: [{ url: /^http/ }, { url: /^http/ }],
      })
      t.ok(inADay(ended.expires_at))
      t.match((await client.get(GENERATIONS)).body, { object: 'list', data: [{ id }], has_more: false })
      t.equal((await client.row(submitted)).cost, '25')
    },
  ),
  statement('async with b64_json is 400', async (t, world) => {
    const client = await world.client()
    t.match(await make(client, 'demo-image', { async: true, response_format: 'b64_json' }), invalid)
  }),
  statement('A failed task says why, and is refunded', async (t, world) => {
    const client = await world.client('100')
    const { body } = await make(client, 'demo-image', { async: true, prompt: simulate('fault=status:400') })
    t.match(await client.ended(`${GENERATIONS}/${body.id}`), {
      status: 'failed',
      error: { code: String, message: String },
    })
    t.equal(await client.remaining('100'), '100')
  }),
  statement('A foreign or unknown task is 404', async (t, world) => {
    const client = await world.client()
    const { body } = await make(client, 'demo-image', { async: true })
    const missing = { status: 404, body: { error: { code: 'not_found' } } }
    t.match(await (await world.client()).get(`${GENERATIONS}/${body.id}`), missing)
    t.match(await client.get(`${GENERATIONS}/img_00000000000000000000000000`), missing)
    await client.ended(`${GENERATIONS}/${body.id}`)
  }),
  statement(
    'Edits take JSON or a form, wait or answer with a task, and cost what a generation costs',
    async (t, world) => {
      const client = await world.client()
      const fields = { model: 'demo-image', prompt: 'night' }
      const whole = await client.post(EDITS, { ...fields, image: PNG_URI })
      const asForm = await client.post(EDITS, form(fields))
      for (const answer of [whole, asForm]) {
        t.match(answer, { status: 200, body: { data: [{ url: /^http/ }] } })
        t.equal((await client.row(answer)).cost, '12.5')
      }
      for (const body of [{ ...fields, image: PNG_URI, async: true }, form({ ...fields, async: 'true' })]) {
        const task = await client.post(EDITS, body)
        t.match(task, { status: 200, body: { object: 'image.task', status: 'queued' } })
        t.equal((await client.ended(`${GENERATIONS}/${task.body.id}`)).status, 'succeeded')
        t.equal((await client.row(task)).cost, '12.5')
      }
      t.match(await client.post(EDITS, fields), invalid, 'an image is required')
    },
  ),
  statement('A request that waits longer is kept alive by a 200 in chunks', async (t, world) => {
    const client = await world.client()
    const prompt = simulate(`delay=${KEPT_ALIVE_AFTER_SECONDS * 1000 + 500}`)
    const [fine, failed] = await Promise.all([
      make(client, 'demo-image', { prompt }),
      make(client, 'demo-image', { prompt: prompt.replace(']', ',outcome=fail]') }),
    ])
    t.match(fine, { status: 200, body: { data: [{ url: /^http/ }] } })
    t.match(
      failed,
      { status: 200, body: { error: { message: String, code: String } } },
      'and so a failure is 200',
    )
    t.equal((await client.row(failed)).cost, '0')
  }),
  statement('A model of another family is 503, one that the allowlist leaves out 403', async (t, world) => {
    const client = await world.client()
    t.equal((await make(client, 'demo-video')).status, 503)
    t.equal((await make(client, 'plain-chat-completions')).status, 503)
    const limited = await world.another(client, { allowedModels: ['demo-video'] })
    t.match(await make(limited, 'demo-image'), {
      status: 403,
      body: { error: { code: 'model_not_allowed' } },
    })
    t.match(await make(client, 'unheard-of'), { status: 400, body: { error: { code: 'model_not_found' } } })
  }),
])
