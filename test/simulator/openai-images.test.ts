import t from 'tap'
import type { Json } from './dialects-support.ts'
import { readPng } from './media/probe.ts'
import { isCut, type MediaClient, mediaClient, textAt } from './media-support.ts'

const client = await mediaClient(t)

const GENERATIONS = '/v1/images/generations'
const EDITS = '/v1/images/edits'

const asked = (fields: object = {}, model = 'sim-image@delay=0') => ({ model, prompt: 'A loaf', ...fields })

/** Size and number of the pictures behind the links of an answer. */
async function drawn(client: MediaClient, body: object): Promise<[number, number][]> {
  const { json } = await client.post(GENERATIONS, body)
  const links = (json.data as unknown as Json[]).map(({ url }) => String(url))
  const files = await Promise.all(links.map((link) => client.get(link)))
  return files.map(({ bytes }) => {
    const { width, height } = readPng(bytes)
    return [width, height]
  })
}

t.test('pictures come as links or as they are, as many and as large as asked for', async (t) => {
  t.same(await drawn(client, asked()), [[1024, 1024]])
  t.same(await drawn(client, asked({ n: 3, size: '1536x1024' })), Array(3).fill([1536, 1024]))
  const { json } = await client.post(GENERATIONS, asked({ response_format: 'b64_json', size: '640x480' }))
  t.match(json, { created: Number, size: '640x480', usage: { total_tokens: Number } })
  const again = await client.post(GENERATIONS, asked({ response_format: 'b64_json', size: '640x480' }))
  t.equal(textAt(again.json, 'data', 0, 'b64_json'), textAt(json, 'data', 0, 'b64_json'))
  t.match(readPng(Buffer.from(textAt(json, 'data', 0, 'b64_json'), 'base64')), { width: 640, height: 480 })
  t.same(await drawn(client, asked({ n: 4 }, 'sim-image@delay=0,partial=2,size=300x200')), [
    [300, 200],
    [300, 200],
  ])
})

t.test('each model has its own way with sizes and numbers', async (t) => {
  const of = (model: string, fields: object) => drawn(client, asked(fields, `${model}@delay=0`))
  t.same(await of('sim-grid', { n: 1, size: '1920x1080' }), Array(4).fill([1024, 576]))
  t.same(await of('sim-grid', { size: '900x1200', prompt: 'A loaf --hd' }), Array(4).fill([1536, 2048]))
  t.same(await of('sim-no-size', { size: '64x64', prompt: 'A loaf, 9:16' }), [[576, 1024]])
  t.same(await of('sim-no-size', { size: '64x64' }), [[1024, 1024]])
  t.same(await of('sim-tiered', {}), [[2048, 2048]])
  t.same(await of('sim-tiered', { size: '1280x720' }), [[1280, 720]])
  for (const [model, size] of [
    ['sim-tiered', '640x640'],
    ['sim-image-hd', '1024x1024'],
    ['sim-image', '5000x10'],
    ['sim-image', 'large'],
  ] as const) {
    const refused = await client.post(GENERATIONS, asked({ size }, model))
    t.match(refused, { status: 400, json: { error: { param: 'size' } } }, `${model} ${size}`)
  }
})

t.test('a picture is edited from uploaded files', async (t) => {
  const png = new Blob([Buffer.from('picture\r\n--x')], { type: 'image/png' })
  const form = (fields: Record<string, string | Blob>) => {
    const made = new FormData()
    for (const [name, value] of Object.entries({ model: 'sim-image@delay=0', prompt: 'Darker', ...fields }))
      made.append(name, value)
    return made
  }
  const edited = form({ image: png, mask: png, size: '512x512', n: '2', response_format: 'b64_json' })
  edited.append('image[]', png)
  const { status, json } = await client.post(EDITS, edited)
  t.equal(status, 200)
  t.match(readPng(Buffer.from(textAt(json, 'data', 1, 'b64_json'), 'base64')), { width: 512, height: 512 })
  const refused: [FormData | object, RegExp][] = [
    [form({}), /'image'/],
    [form({ image: new Blob([]) }), /empty/],
    [form({ image: new Blob(['text'], { type: 'text/plain' }) }), /mimetype/],
    [form({ image: png, n: '11' }), /n/],
    [form({ image: png, colour: 'red' }), /Unknown parameter: 'colour'/],
    [asked({ image: 'x' }), /multipart/],
  ]
  for (const [body, message] of refused)
    t.match(await client.post(EDITS, body), { status: 400, json: { error: { message } } }, String(message))
})

t.test('what the vendor refuses is refused in its shape', async (t) => {
  const refused: [object, number, object][] = [
    [{ model: 'sim-image' }, 400, { param: 'prompt', type: 'invalid_request_error' }],
    [asked({ n: 11 }), 400, { param: 'n' }],
    [asked({ colour: 'red' }), 400, { param: 'colour' }],
    [asked({ response_format: 'gif' }), 400, { param: 'response_format' }],
    [asked({}, 'other'), 404, { code: 'model_not_found' }],
    [asked({}, 'sim-image@outcome=moderation'), 400, { code: 'moderation_blocked' }],
    [asked({}, 'sim-image@outcome=fail'), 500, { type: 'server_error' }],
    [asked({}, 'sim-image@outcome=refuse'), 400, { type: 'invalid_request_error' }],
    [asked({ prompt: 'x [simulate: fault=status:429]' }), 429, { code: 'rate_limit_exceeded' }],
  ]
  for (const [body, status, error] of refused)
    t.match(await client.post(GENERATIONS, body), { status, json: { error } }, JSON.stringify(error))
  const bad = await client.post(GENERATIONS, asked(), { authorization: 'Bearer sim-bad-key' })
  t.match(bad, { status: 401, json: { error: { code: 'invalid_api_key' } } })
  t.equal((await client.post(GENERATIONS, asked(), {})).status, 401)
})

t.test('work that fails takes its time before it does, and stuck work is never answered', async (t) => {
  const client = await mediaClient(t)
  const ends: string[] = []
  const late = client.post(GENERATIONS, asked({}, 'sim-image@delay=300,outcome=fail')).then(({ status }) => {
    ends.push(`late ${status}`)
  })
  const stuck = client.post(GENERATIONS, asked({}, 'sim-image@outcome=stuck'))
  const early = await client.post(GENERATIONS, asked({}, 'sim-image@delay=0,outcome=fail'))
  ends.push(`early ${early.status}`)
  await late
  t.same(ends, ['early 500', 'late 500'])
  const stats = await (await fetch(`${client.url}/simulator/stats`)).json()
  t.match(stats, { running: 1, faulted: 2 })
  await client.close()
  t.ok(await isCut(stuck))
})

t.test('faults strike where directed, and every request is counted', async (t) => {
  const client = await mediaClient(t)
  t.ok(await isCut(client.post(GENERATIONS, asked({}, 'sim-image@delay=0,fault=reset:20'))))
  t.ok(await isCut(client.post(GENERATIONS, asked({}, 'sim-image@fault=garbage'))))
  const flaky = asked({}, 'sim-image@delay=0,fault=status:503,times=1')
  t.same(
    [(await client.post(GENERATIONS, flaky)).status, (await client.post(GENERATIONS, flaky)).status],
    [503, 200],
  )
  t.equal((await client.submits('dialect=openai-images')).length, 4)
})
