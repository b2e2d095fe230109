/** Simulated images, videos, speech and music. */
import t from 'tap'
import { drawPng, filmMp4, soundMp3, toPlayedSeconds } from '../../simulator/media/samples.ts'
import { FormError, readForm } from '../../simulator/requests.ts'
import type { Json } from './dialects-support.ts'
import { complaintsOfDecoder, readMp3, readMp4, readPng } from './media/probe.ts'
import { type Headers, isCut, KEYED, type MediaClient, mediaClient, textAt } from './media-support.ts'

t.test('openai images', async (t) => {
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
    const late = client
      .post(GENERATIONS, asked({}, 'sim-image@delay=300,outcome=fail'))
      .then(({ status }) => {
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
})

t.test('ark images', async (t) => {
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
})

t.test('ark video', async (t) => {
  const client = await mediaClient(t)

  const TASKS = '/api/v3/contents/generations/tasks'
  const WORDS = { type: 'text', text: 'The dough rises.' }
  const PICTURE = { type: 'image_url', image_url: { url: 'https://example.com/dough.jpg' } }

  const asked = (model = 'sim-film', fields: object = {}) => ({ model, content: [WORDS], ...fields })

  t.test('a film is made of the size and length that were asked for', async (t) => {
    const fields = { duration: 3, resolution: '480p', ratio: '9:16', seed: 7, watermark: false }
    const submitted = await client.post(TASKS, asked('sim-film@delay=40,queue=10', fields))
    t.same(Object.keys(submitted.json), ['id'])
    const path = `${TASKS}/${textAt(submitted.json, 'id')}`
    const { json } = await client.until(path, (answer) => textAt(answer.json, 'status') === 'succeeded')
    const echoed = { duration: 3, resolution: '480p', ratio: '9:16', seed: 7 }
    t.match(json, { model: /^sim-film/, ...echoed, created_at: Number, usage: { total_tokens: Number } })
    const film = await client.get(textAt(json, 'content', 'video_url'))
    t.equal(film.type, 'video/mp4')
    t.match(readMp4(film.bytes), { width: 480, height: 854, seconds: 3 })
  })

  t.test('the older flags behind the words are read too', async (t) => {
    const content = [{ type: 'text', text: 'A loaf --dur 2 --rs 480p --ratio 1:1' }]
    const { json } = await client.post(TASKS, asked('sim-film@delay=0', { content }))
    const done = await client.get(`${TASKS}/${textAt(json, 'id')}`)
    t.match(done.json, { duration: 2, resolution: '480p', ratio: '1:1' })
  })

  t.test('a task is reported in the states of the vendor', async (t) => {
    const told = async (directives: string, fields: object = {}) => {
      const { json } = await client.post(TASKS, asked(`sim-film@${directives}`, fields))
      return (await client.get(`${TASKS}/${textAt(json, 'id')}`)).json
    }
    t.match(await told('queue=600000'), { status: 'queued' })
    t.match(await told('queue=0,outcome=stuck'), { status: 'running' })
    t.match(await told('delay=0,outcome=fail'), { status: 'failed', error: { code: 'InternalServiceError' } })
    const moderated = { status: 'failed', error: { code: 'OutputVideoSensitiveContentDetected' } }
    t.match(await told('delay=0,outcome=moderation'), moderated)
    t.match(await told('delay=0,outcome=expire'), { status: 'expired' })
    t.match(await told('delay=0,outcome=cancel'), { status: 'cancelled' })
    t.match(await told('delay=0,outcome=unknown_state'), { status: 'paused' })
    t.match(await told('delay=0,seconds=4.2'), { status: 'succeeded', duration: 4.2 })
    t.equal((await told('delay=0,no_seconds')).duration, undefined)
    const video = { type: 'video_url', video_url: { url: 'https://example.com/a.mp4' } }
    const reference = { content: [WORDS, video] }
    t.match(await told('delay=0,input_seconds=9', reference), { input_video_duration: 9 })
  })

  t.test('only a queued task is cancelled', async (t) => {
    const queued = await client.post(TASKS, asked('sim-film@queue=600000'))
    const path = `${TASKS}/${textAt(queued.json, 'id')}`
    t.equal((await client.remove(path)).status, 200)
    t.match((await client.get(path)).json, { status: 'cancelled' })
    t.match(await client.remove(path), { status: 400, json: { error: { code: 'InvalidAction' } } })
    t.equal((await client.remove(`${TASKS}/none`)).status, 404)
  })

  t.test('what the vendor refuses is refused in its shape', async (t) => {
    const client = await mediaClient(t)
    const content = (...parts: object[]) => asked('sim-film', { content: parts })
    const refused: [object, number, object][] = [
      [{ model: 'sim-film' }, 400, { code: 'InvalidParameter', param: 'content', type: 'BadRequest' }],
      [content(), 400, { param: 'content' }],
      [content({ ...PICTURE, role: 'middle' }), 400, { param: 'content.0.role' }],
      [content({ ...PICTURE, image_url: { url: 'dough.jpg' } }), 400, { param: 'content.0.image_url.url' }],
      [content(WORDS, { ...PICTURE, role: 'last_frame' }), 400, { message: /last frame/ }],
      [asked('sim-film', { ratio: '2:1' }), 400, { param: 'ratio' }],
      [asked('sim-film', { duration: 0 }), 400, { param: 'duration' }],
      [asked('other'), 404, { code: 'InvalidEndpointOrModel.NotFound', type: 'NotFound' }],
      [asked('sim-film@fault=status:429'), 429, { type: 'TooManyRequests' }],
      [asked('sim-film@fault=status:500'), 500, { code: 'InternalServiceError' }],
      [asked('sim-film@outcome=refuse,code=Overdue'), 400, { code: 'Overdue' }],
    ]
    for (const [body, status, error] of refused)
      t.match(await client.post(TASKS, body), { status, json: { error } }, JSON.stringify(error))
    t.same(await client.tasks(), [])
    const stranger = await client.post(TASKS, asked(), { authorization: 'Bearer sim-bad-key' })
    t.match(stranger, { status: 401, json: { error: { code: 'AuthenticationError', type: 'Unauthorized' } } })
    t.match(await client.get(`${TASKS}/none`), { status: 404, json: { error: { code: 'ResourceNotFound' } } })
  })

  t.test('an answer that is cut leaves a task behind, and polls fail as directed', async (t) => {
    const client = await mediaClient(t)
    t.ok(
      await isCut(client.post(TASKS, asked('sim-film@accept_then_cut,delay=0,poll_fault=garbage,times=1'))),
    )
    const [task] = await client.tasks('dialect=ark-video')
    const poll = () => client.get(`${TASKS}/${task?.id}`)
    t.ok(await isCut(poll()))
    t.match((await poll()).json, { status: 'succeeded' })
    t.equal((await client.submits('dialect=ark-video')).length, 1)
  })
})

t.test('speech', async (t) => {
  const client = await mediaClient(t)

  const SPEECH = '/v1/audio/speech'
  const TEXT = 'x'.repeat(120)
  const XI = { 'xi-api-key': 'sim-key' }
  const speak = (voice: string) => `/v1/text-to-speech/${voice}?output_format=mp3_44100_128`
  const asked = (fields: object = {}, model = 'sim-speech@delay=0') => ({
    ...{ model, input: TEXT, voice: 'alloy' },
    ...fields,
  })

  t.test('openai-speech: a text is said in as much time as it takes, faster with speed', async (t) => {
    const said = await client.post(SPEECH, asked())
    t.match(said, { status: 200, type: 'audio/mpeg' })
    t.equal(readMp3(said.bytes).seconds, 10.008)
    t.same((await client.post(SPEECH, asked())).bytes, said.bytes)
    t.equal(readMp3((await client.post(SPEECH, asked({ speed: 2 }))).bytes).seconds, 4.992)
    const told = await client.post(SPEECH, asked({}, 'sim-speech@delay=0,seconds=3'))
    t.equal(readMp3(told.bytes).seconds, 3)
  })

  t.test('openai-speech: what the vendor refuses is refused in its shape', async (t) => {
    const refused: [object, number, object][] = [
      [asked({ input: '' }), 400, { param: 'input', type: 'invalid_request_error' }],
      [asked({ input: 'x'.repeat(4097) }), 400, { param: 'input' }],
      [asked({ voice: 'nobody' }), 400, { param: 'voice' }],
      [asked({ speed: 9 }), 400, { param: 'speed' }],
      [asked({ pitch: 1 }), 400, { param: 'pitch' }],
      [asked({ response_format: 'wav' }), 400, { param: 'response_format' }],
      [asked({}, 'other'), 404, { code: 'model_not_found' }],
      [asked({}, 'sim@outcome=moderation'), 400, { code: 'content_policy_violation' }],
      [asked({ input: 'Hello [simulate: outcome=fail]' }), 500, { type: 'server_error' }],
      [asked({}, 'sim@fault=stream_error'), 200, { type: 'server_error' }],
    ]
    for (const [body, status, error] of refused)
      t.match(await client.post(SPEECH, body), { status, json: { error } }, JSON.stringify(error))
    t.equal((await client.post(SPEECH, asked(), {})).status, 401)
    t.ok(await isCut(client.post(SPEECH, asked({}, 'sim@delay=0,fault=reset:100'))))
  })

  t.test('elevenlabs: a premade voice and a cloned one speak', async (t) => {
    const client = await mediaClient(t, XI)
    const body = { text: TEXT, model_id: 'sim-speech@delay=0', voice_settings: { speed: 1.2 } }
    const said = await client.post(speak('sim-voice-ada'), body)
    t.match(said, { status: 200, type: 'audio/mpeg' })
    t.equal(readMp3(said.bytes).seconds, 8.328)
    const form = new FormData()
    form.append('name', 'Ada [simulate: delay=0]')
    form.append('files', new Blob([said.bytes], { type: 'audio/mpeg' }), 'ada.mp3')
    const { json } = await client.post('/v1/voices/add', form)
    t.match(json, { voice_id: /^clone[0-9a-f]{16}$/, requires_verification: false })
    const voice = textAt(json, 'voice_id')
    t.equal((await client.post(speak(voice), body)).status, 200)
    const listed = (await client.get('/v1/voices')).json.voices as unknown as Json[]
    t.match(listed.at(0), { voice_id: /\S/, name: /\S/, category: 'premade' })
    t.match(listed.at(-1), { voice_id: voice, name: /^Ada/, category: 'cloned' })
    t.match((await client.remove(`/v1/voices/${voice}`)).json, { status: 'ok' })
    t.match(await client.post(speak(voice), body), { status: 404 })
    t.match((await client.remove(`/v1/voices/${voice}`)).json, { detail: { status: 'voice_does_not_exist' } })
  })

  t.test('elevenlabs: what the vendor refuses is refused in its shape', async (t) => {
    const client = await mediaClient(t, XI)
    const path = speak('sim-voice-ada')
    const refused: [string, object, number, object][] = [
      [path, {}, 422, [{ loc: ['body', 'text'], msg: String }]],
      [
        path,
        { text: 'x', voice_settings: { speed: 3 } },
        422,
        [{ loc: ['body', 'voice_settings', 'speed'] }],
      ],
      [speak('nobody'), { text: 'x' }, 404, { status: 'voice_not_found' }],
      [path, { text: 'x', model_id: 'other' }, 400, { status: 'model_not_found' }],
      [
        path,
        { text: 'x', model_id: 'sim@fault=status:429' },
        429,
        { status: 'too_many_concurrent_requests' },
      ],
      [
        path,
        { text: 'x', model_id: 'sim@outcome=refuse,code=quota_exceeded' },
        400,
        { status: 'quota_exceeded' },
      ],
      ['/v1/voices/add', { name: 'Ada' }, 400, { status: 'invalid_request', message: /multipart/ }],
    ]
    for (const [at, body, status, detail] of refused)
      t.match(await client.post(at, body), { status, json: { detail } }, JSON.stringify(detail))
    const form = (file?: Blob) => {
      const made = new FormData()
      made.append('name', 'Ada')
      if (file !== undefined) made.append('files', file, 'ada.mp3')
      return made
    }
    t.match(await client.post('/v1/voices/add', form()), {
      status: 422,
      json: { detail: [{ loc: ['body', 'files'] }] },
    })
    t.match(await client.post('/v1/voices/add', form(new Blob([]))), { status: 400 })
    const strangers: Headers[] = [{}, { 'xi-api-key': 'sim-bad-key' }]
    for (const headers of strangers)
      t.match(await client.get('/v1/voices', headers), {
        status: 401,
        json: { detail: { status: 'invalid_api_key' } },
      })
  })

  t.test('elevenlabs: a fault that stands in the way of a clone leaves no voice', async (t) => {
    const client = await mediaClient(t, XI)
    const add = async (directives: string) => {
      const form = new FormData()
      form.append('name', 'Ada')
      form.append('files', new Blob(['sound']), 'ada.mp3')
      return client.post('/v1/voices/add', form, { ...XI, 'x-simulate': directives })
    }
    const count = async () => ((await client.get('/v1/voices')).json.voices as unknown as Json[]).length
    const before = await count()
    t.equal((await add('fault=status:500')).status, 500)
    t.equal((await add('outcome=fail')).status, 500)
    t.equal(await count(), before)
    t.ok(await isCut(add('accept_then_cut,delay=0')))
    t.equal(await count(), before + 1)
  })
})

t.test('suno', async (t) => {
  const client = await mediaClient(t)

  const GENERATE = '/api/v1/generate'
  const RECORD = '/api/v1/generate/record-info?taskId='

  function asked(model: string, fields: object = {}) {
    const callBackUrl = 'https://example.com/done'
    return { model, customMode: false, instrumental: false, prompt: 'Bread', callBackUrl, ...fields }
  }

  /** Submits and polls once: the reported `data`. */
  async function told(client: MediaClient, directives: string, fields: object = {}): Promise<Json> {
    const { json } = await client.post(GENERATE, asked(`sim-song@${directives}`, fields))
    return (await client.get(RECORD + textAt(json, 'data', 'taskId'))).json.data as Json
  }

  t.test('two songs come of a generation, with sounds and covers', async (t) => {
    const submitted = await client.post(GENERATE, asked('sim-song@delay=60,queue=20,seconds=30'))
    t.match(submitted.json, { code: 200, msg: 'success', data: { taskId: /^[0-9a-f]{32}$/ } })
    const path = RECORD + textAt(submitted.json, 'data', 'taskId')
    const { json } = await client.until(path, (answer) => textAt(answer.json, 'data', 'status') === 'SUCCESS')
    t.match(json.data, { type: 'GENERATE', errorCode: null })
    const songs = json.data?.response?.sunoData as unknown as Json[]
    t.equal(songs.length, 2)
    t.not(songs[0]?.id, songs[1]?.id)
    for (const song of songs) {
      t.match(song, { title: /\S/, prompt: /Bread/, duration: 30 })
      t.equal(readMp3((await client.get(textAt(song, 'audioUrl'))).bytes).seconds, 30)
      t.match(readPng((await client.get(textAt(song, 'imageUrl'))).bytes), { width: 512 })
    }
  })

  t.test('a generation is reported in the states of the vendor', async (t) => {
    t.match(await told(client, 'queue=600000'), { status: 'PENDING', response: null })
    t.match(await told(client, 'queue=0,outcome=stuck'), { status: 'TEXT_SUCCESS', response: null })
    t.match(await told(client, 'delay=0,outcome=fail'), { status: 'GENERATE_AUDIO_FAILED', errorCode: 500 })
    t.match(await told(client, 'delay=0,outcome=fail,code=CREATE_TASK_FAILED'), {
      status: 'CREATE_TASK_FAILED',
    })
    const uncalled = await told(client, 'delay=0,outcome=fail,code=CALLBACK_EXCEPTION')
    t.match(uncalled, { status: 'CALLBACK_EXCEPTION', response: { sunoData: [{ audioUrl: /mp3$/ }] } })
    t.match(await told(client, 'delay=0,outcome=moderation'), { status: 'SENSITIVE_WORD_ERROR' })
    t.match(await told(client, 'delay=0,outcome=unknown_state'), { status: 'ARCHIVED' })
  })

  t.test('the first song is there before the second', async (t) => {
    const first = await told(client, 'queue=0,outcome=stuck,code=FIRST_SUCCESS')
    t.match(first, { status: 'FIRST_SUCCESS', response: { sunoData: [{ audioUrl: /mp3$/ }] } })
    t.equal(first.response?.sunoData?.[1], undefined)
    const { json } = await client.post(GENERATE, asked('sim-song@delay=60,queue=0'))
    const seen: string[] = []
    await client.until(RECORD + textAt(json, 'data', 'taskId'), (answer) => {
      seen.push(textAt(answer.json, 'data', 'status'))
      return seen.at(-1) === 'SUCCESS'
    })
    const order = ['TEXT_SUCCESS', 'FIRST_SUCCESS', 'SUCCESS']
    t.same(
      seen,
      seen.toSorted((one, other) => order.indexOf(one) - order.indexOf(other)),
      'never backwards',
    )
  })

  t.test('one song of two succeeds, or none', async (t) => {
    const audio = async (partial: number) => {
      const data = await told(client, `delay=0,partial=${partial}`)
      const songs = data.response?.sunoData as unknown as Json[]
      return songs.map(({ audioUrl, duration }) => [audioUrl !== ('' as unknown), duration !== null])
    }
    const sung = [true, true]
    const unsung = [false, false]
    t.same(
      [await audio(2), await audio(1), await audio(0)],
      [
        [sung, sung],
        [sung, unsung],
        [unsung, unsung],
      ],
    )
  })

  t.test('custom mode sings the lyrics under the title, and an instrumental has none', async (t) => {
    const lyrics = '[Verse]\nBread, bread'
    const custom = { customMode: true, prompt: lyrics, style: 'folk', title: 'Bread' }
    const sung = await told(client, 'delay=0', custom)
    t.match(sung.response?.sunoData, [{ prompt: lyrics, title: 'Bread', tags: 'folk' }])
    const silent = await told(client, 'delay=0', { ...custom, prompt: undefined, instrumental: true })
    t.match(silent.response?.sunoData, [{ prompt: '', title: 'Bread' }])
  })

  t.test('what the vendor refuses is refused in its shape', async (t) => {
    const client = await mediaClient(t)
    const custom = { customMode: true, prompt: 'x', style: 'folk', title: 'Bread' }
    const refused: [object, number, RegExp][] = [
      [asked('sim-song', { prompt: undefined }), 400, /prompt/],
      [asked('sim-song', { callBackUrl: undefined }), 400, /callBackUrl/],
      [asked('sim-song', { customMode: undefined }), 400, /customMode/],
      [asked('sim-song', { ...custom, style: undefined }), 400, /style/],
      [asked('sim-song', { ...custom, title: undefined }), 400, /title/],
      [asked('sim-song', { ...custom, prompt: undefined }), 400, /prompt/],
      [asked('sim-song', { prompt: 'x'.repeat(501) }), 413, /500/],
      [asked('sim-song', { ...custom, prompt: 'x'.repeat(3001) }), 413, /3000/],
      [asked('other'), 400, /model/],
      [asked('sim-song@fault=status:429'), 429, /Rate limit/],
    ]
    for (const [body, status, msg] of refused)
      t.match(
        await client.post(GENERATE, body),
        { status, json: { code: status, msg, data: null } },
        `${msg}`,
      )
    const asRefused = await client.post(GENERATE, asked('sim-song@outcome=refuse'))
    t.match(asRefused, { status: 200, json: { code: 400, data: null } }, 'a refusal under 200')
    t.match(await client.post(GENERATE, asked('sim-song'), {}), { status: 401, json: { code: 401 } })
    t.match(await client.get(`${RECORD}none`), { status: 404, json: { code: 404 } })
    t.same(await client.tasks(), [])
  })

  t.test('an answer that is cut leaves a task, and a poll that fails changes nothing', async (t) => {
    const client = await mediaClient(t)
    const model = 'sim-song@accept_then_cut,delay=0,poll_fault=status:500,times=1'
    t.ok(await isCut(client.post(GENERATE, asked(model))))
    const [task] = await client.tasks()
    const poll = () => client.get(RECORD + task?.id)
    t.match([await poll(), await poll()], [{ status: 500 }, { json: { data: { status: 'SUCCESS' } } }])
    t.match(await client.tasks(), [{ polls: 2 }])
  })
})

t.test('multipart', async (t) => {
  const TYPE = 'multipart/form-data; boundary=x1'
  const field = (name: string, value: string) =>
    `--x1\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  const file = (name: string, data: string) =>
    `--x1\r\ncontent-disposition: form-data; name="${name}"; filename="a.png"\r\ncontent-type: image/png\r\n\r\n${data}\r\n`
  const END = '--x1--\r\n'

  t.test('fields and files are distinguished, and files keep every byte', async (t) => {
    const bytes = '\r\n--x\r\n--x2\0\xff--\r\n'
    const body = Buffer.from(
      `${field('n', '2')}${file('image', bytes)}${file('image[]', '')}${END}`,
      'latin1',
    )
    for (const type of [TYPE, 'Multipart/Form-Data; charset=utf-8; boundary="x1"']) {
      const form = await readForm(body, type)
      t.same(form.fields(), { n: '2' })
      const [first, second, ...others] = form.files('image', 'image[]')
      t.match(first, { name: 'image', fileName: 'a.png', type: 'image/png' })
      t.equal(first?.data.toString('latin1'), bytes)
      t.equal(second?.data.length, 0)
      t.same(others, [])
    }
  })

  t.test('the last of two fields with one name counts, in UTF-8', async (t) => {
    const form = await readForm(
      Buffer.from(`${field('prompt', 'a')}${field('prompt', 'Brød 🍞')}${END}`),
      TYPE,
    )
    t.same(form.fields(), { prompt: 'Brød 🍞' })
  })

  t.test('what is no form, or a torn one, is refused', async (t) => {
    const whole = `${field('n', '2')}${END}`
    const refused: [string, string | undefined, RegExp][] = [
      [whole, undefined, /Not multipart/],
      [whole, 'application/json', /Not multipart/],
      [whole, 'multipart/form-data', /Not multipart/],
      ['', TYPE, /Unexpected end/],
      [whole.slice(0, -8), TYPE, /Unexpected end/],
      [whole.replace('name=', 'nome='), TYPE, /no name/],
      [field('n', '2').repeat(101) + END, TYPE, /more than 100 parts/],
    ]
    for (const [body, type, message] of refused)
      await t.rejects(readForm(Buffer.from(body), type), { constructor: FormError, message })
  })
})

t.test('task contract', async (t) => {
  const client = await mediaClient(t)

  const TASKS = '/task/tasks'
  const LIPSYNC = {
    source_video: 'https://example.com/face.mp4',
    audio: 'https://example.com/words.mp3',
    duration: 12,
  }

  let references = 0
  /** A request with a reference that no other has. */
  function work(kind: string, input: object, model = 'sim-studio', reference = `ref_${++references}`) {
    return { reference, kind, model, input }
  }

  /** Submits work that is done at once, and gives its result. */
  async function resultOf(client: MediaClient, kind: string, input: object, directives = ''): Promise<Json> {
    const body = work(kind, input, `sim-studio@delay=0${directives}`)
    const { json } = await client.post(TASKS, body)
    if (json.state !== ('succeeded' as unknown)) throw new Error(JSON.stringify(json))
    return json.result as Json
  }

  t.test(
    'a task goes from queued to running to its end, and is reported the same way each time',
    async (t) => {
      const submitted = await client.post(TASKS, work('lipsync', LIPSYNC, 'sim-studio@delay=60,queue=20'))
      t.equal(submitted.status, 200)
      t.match(submitted.json, { id: /^t-[0-9a-f]{32}$/, state: /queued|running/ })
      const path = `${TASKS}/${textAt(submitted.json, 'id')}`
      const done = await client.until(path, ({ json }) => textAt(json, 'state') === 'succeeded')
      t.match(done.json, { result: { video_url: /^http/, duration_sec: 12, input_video_duration_sec: 12 } })
      t.same((await client.get(path)).json, done.json)
      const [task] = await client.tasks()
      t.match(task, { kind: 'lipsync', state: 'succeeded', ended_at: /Z$/ })
      t.ok((task?.polls ?? 0) >= 2)
    },
  )

  t.test('every kind delivers real files of what was asked for', async (t) => {
    const bytes = async (link: Json | undefined) => (await client.get(String(link))).bytes

    const transcript = await resultOf(client, 'transcript', { url: 'look: https://v.example.com/Xy/ !' })
    t.match(transcript, { content: /\S/, platform: 'v.example.com', duration_sec: 63.2 })
    t.match(readPng(await bytes(transcript.cover)), { width: 512 })

    const avatar = { name: 'Ada', source: 'https://example.com/a.png', source_kind: 'image' }
    const { avatar_id } = await resultOf(client, 'avatar', avatar)
    const { voice_id } = await resultOf(client, 'voice', { name: 'Ada', audio: 'https://example.com/a.mp3' })
    const speech = { avatar: avatar_id, voice: voice_id, text: 'Good morning.', duration: 3 }
    const spoken = await resultOf(client, 'avatar_video', speech)
    t.match(readMp4(await bytes(spoken.video_url)), { width: 540, height: 960, seconds: 3 })

    const portraits = ['https://example.com/a.png']
    const motion = {
      source_video: LIPSYNC.source_video,
      portraits,
      face_count: 1,
      resolution: 'max',
      duration: 8,
    }
    const moved = await resultOf(client, 'motion', motion, ',seconds=7.5,input_seconds=9')
    t.match(moved, { duration_sec: 7.5, input_video_duration_sec: 9 })
    t.equal(readMp4(await bytes(moved.video_url)).seconds, 7.5)

    const content = [{ type: 'text', text: 'The dough rises.' }]
    const film = await resultOf(client, 'video', { content, duration: 2, resolution: '480p', ratio: '1:1' })
    t.match(film, { width: 480, height: 480, duration_sec: 2 })
    t.match(readMp4(await bytes(film.video_url)), { width: 480, height: 480, seconds: 2 })

    const { asr_id, segments } = await resultOf(client, 'subtitle', { video: LIPSYNC.source_video })
    t.match(segments, [{ showRange: [0, 1800], content: /\S/ }])
    const flags = { enable_title_effect: true, enable_caption_effect: true, enable_keyword_effect: false }
    const clip = { video: LIPSYNC.source_video, asr_id, video_style_id: 'sim-style-bold', ...flags }
    t.match(await resultOf(client, 'clip_compose', clip), { video_url: /\.mp4$/ })

    const said = await resultOf(client, 'speech', { input: 'x'.repeat(60), speed: 1 })
    t.equal(readMp3(await bytes(said.audio_url)).seconds, Number(said.duration_sec))

    const image = { prompt: 'A loaf', n: 3, size: '640x480' }
    const { images } = await resultOf(client, 'image', image, ',partial=2')
    t.match(images, [{ width: 640, height: 480 }, { url: /^http/ }, {}])
    t.match(readPng(await bytes(images?.[0]?.url)), { width: 640, height: 480 })
    t.equal(images?.[2]?.url, undefined)
  })

  t.test('two songs come of a generation, and one alone has a sound where it is asked to', async (t) => {
    const song = { prompt: 'Bread', instrumental: false }
    const whole = await resultOf(client, 'music', song, ',seconds=30')
    const [first, second] = whole.tracks as unknown as Json[]
    for (const track of [first, second]) {
      t.match(track, { clip_id: /\S/, title: /\S/, lyrics: /Bread/, duration_sec: 30 })
      t.equal(readMp3((await client.get(String(track?.audio_url))).bytes).seconds, 30)
    }
    const half = await resultOf(client, 'music', song, ',partial=1')
    t.match(half.tracks, [{ audio_url: /mp3$/ }, { clip_id: /\S/ }])
    t.equal(half.tracks?.[1]?.audio_url, undefined)
    t.equal((await resultOf(client, 'music', song, ',no_seconds')).tracks?.[0]?.duration_sec, undefined)
  })

  t.test('a task ends as its directives say, or never', async (t) => {
    const ended = async (directives: string) => {
      const model = `sim-studio@delay=0,${directives}`
      return (await client.post(TASKS, work('lipsync', LIPSYNC, model))).json
    }
    t.match(await ended('outcome=fail'), { state: 'failed', error: { code: 'generation_failed' } })
    t.match(await ended('outcome=fail,code=no_speech'), { state: 'failed', error: { code: 'no_speech' } })
    t.match(await ended('outcome=moderation'), { state: 'failed', error: { code: 'content_policy' } })
    t.match(await ended('outcome=expire'), { state: 'expired' })
    t.match(await ended('outcome=cancel'), { state: 'cancelled' })
    t.match(await ended('outcome=unknown_state'), { state: 'resting' })
    t.match(await ended('outcome=stuck'), { state: 'running' })
    t.equal((await ended('outcome=fail')).result, undefined)
  })

  t.test('directives stand in the texts and in the links of an input too', async (t) => {
    const state = async (kind: string, input: object) =>
      (await client.post(TASKS, work(kind, input))).json.state
    const text = { input: 'Hello [simulate: delay=0; outcome=fail]', speed: 1 }
    t.equal(await state('speech', text), 'failed')
    const link = 'https://example.com/talk.mp4?a=1&simulate=delay%3D0%2Coutcome%3Dexpire'
    t.equal(await state('subtitle', { video: link }), 'expired')
  })

  t.test('a reference is taken on once', async (t) => {
    const body = work('lipsync', LIPSYNC, 'sim-studio@outcome=stuck', 'ref_once')
    const first = await client.post(TASKS, body)
    const second = await client.post(TASKS, body)
    t.equal(second.status, 200)
    t.equal(second.json.id, first.json.id)
    const other = await client.post(TASKS, { ...body, input: { ...LIPSYNC, duration: 13 } })
    t.equal(other.status, 400)
    t.match(other.json, { error: { code: 'reference_reuse' } })
    t.equal((await client.tasks('reference=ref_once')).length, 1)
    t.equal((await client.submits('reference=ref_once')).length, 3)
  })

  t.test('an answer that is cut leaves a task, found by its reference; a refused one does not', async (t) => {
    const cut = work('lipsync', LIPSYNC, 'sim-studio@accept_then_cut,outcome=stuck')
    t.ok(await isCut(client.post(TASKS, cut)))
    const found = await client.get(`${TASKS}?reference=${cut.reference}`)
    t.match(found, { status: 200, json: { id: /^t-/, state: /queued|running/ } })
    t.match(await client.submits(`reference=${cut.reference}`), [{ task_id: found.json.id }])

    const reset = work('lipsync', LIPSYNC, 'sim-studio@fault=reset:head')
    t.ok(await isCut(client.post(TASKS, reset)))
    t.match(await client.submits(`reference=${reset.reference}`), [{ task_id: null }])
    const missing = await client.get(`${TASKS}?reference=${reset.reference}`)
    t.match(missing, { status: 404, json: { error: { code: 'not_found' } } })
    const late = await client.post(TASKS, { ...reset, model: 'sim-studio' })
    t.equal(late.status, 409, 'what was denied is not taken on later')
  })

  t.test('faults strike submits, polls, searches and files, each so often as it is said', async (t) => {
    const client = await mediaClient(t)
    for (const [status, code] of [
      [429, 'rate_limited'],
      [500, 'generation_failed'],
      [503, 'quota_exhausted'],
    ] as const) {
      const failed = await client.post(TASKS, work('lipsync', LIPSYNC, `sim-studio@fault=status:${status}`))
      t.match(failed, { status, json: { error: { code } } })
    }
    t.equal((await client.tasks()).length, 0)

    const later = 'poll_fault=status:500,file_fault=reset:100,times=1'
    const body = work('lipsync', LIPSYNC, `sim-studio@delay=0,${later}`)
    const { json } = await client.post(TASKS, body)
    const poll = () => client.get(`${TASKS}/${textAt(json, 'id')}`)
    t.same([(await poll()).status, (await poll()).status], [500, 200])
    t.equal((await client.get(`${TASKS}?reference=${body.reference}`)).status, 200)
    const link = textAt(json, 'result', 'video_url')
    t.ok(await isCut(client.get(link)))
    t.equal(readMp4((await client.get(link)).bytes).seconds, 12)
  })

  t.test('a file that is not there is not found', async (t) => {
    t.equal((await client.get('/files/none.mp4')).status, 404)
  })

  t.test('only a queued task is cancelled', async (t) => {
    const client = await mediaClient(t)
    const queued = await client.post(TASKS, work('lipsync', LIPSYNC, 'sim-studio@queue=600000'))
    const path = `${TASKS}/${textAt(queued.json, 'id')}/cancel`
    for (const _ of [1, 2]) t.match(await client.post(path), { status: 200, json: { state: 'cancelled' } })
    t.match(await client.tasks(), [{ state: 'cancelled', cancels: 2 }])
    const running = await client.post(TASKS, work('lipsync', LIPSYNC, 'sim-studio@queue=0,outcome=stuck'))
    const refused = await client.post(`${TASKS}/${textAt(running.json, 'id')}/cancel`)
    t.match(refused, { status: 409, json: { error: { code: 'not_cancellable' } } })
    t.equal((await client.post(`${TASKS}/t-none/cancel`)).status, 404)
  })

  t.test('what does not keep to the contract is refused, and the field is named', async (t) => {
    const content = [{ type: 'text', text: 'x' }]
    const flags = { enable_title_effect: false, enable_caption_effect: true, enable_keyword_effect: true }
    const clip = { video: LIPSYNC.source_video, asr_id: 'asr-1', ...flags }
    const pip = { media: 'https://example.com/a.png', begin_time: 5, end_time: 5 }
    const refused: [object, number, string, RegExp][] = [
      [work('lipsync', { ...LIPSYNC, audio: null }), 400, 'invalid_input', /input.audio/],
      [work('lipsync', { ...LIPSYNC, audio: 'file:///etc/passwd' }), 400, 'invalid_input', /input.audio/],
      [work('video', { content, seed: null }), 400, 'invalid_input', /input.seed/],
      [work('video', { content: [] }), 400, 'invalid_input', /input.content/],
      [work('music', { instrumental: false }), 400, 'invalid_input', /input/],
      [work('opera', {}), 400, 'invalid_input', /kind/],
      [
        work('avatar_video', { avatar: 'sim-face-mei', duration: 3 }),
        400,
        'invalid_input',
        /audio, or voice/,
      ],
      [work('speech', { input: 'x', voice: 'nobody', speed: 1 }), 400, 'invalid_input', /voice/],
      [work('clip_compose', { ...clip, video_style_id: 'none' }), 400, 'template_withdrawn', /template/],
      [work('clip_compose', { ...clip, asr_id: 'old' }), 400, 'asr_expired', /recognition/],
      [work('clip_compose', { ...clip, pip_config: [pip] }), 400, 'invalid_input', /pip_config.0.end_time/],
      [work('lipsync', LIPSYNC, 'other'), 404, 'not_found', /other/],
      [{ ...work('lipsync', LIPSYNC), reference: 'a b' }, 400, 'invalid_input', /reference/],
    ]
    for (const [body, status, code, message] of refused)
      t.match(await client.post(TASKS, body), { status, json: { error: { code, message } } }, code)
    const asked = work('lipsync', LIPSYNC, 'sim-studio@outcome=refuse,code=quota_exhausted')
    t.match(await client.post(TASKS, asked), { status: 503, json: { error: { code: 'quota_exhausted' } } })
    const bad = { authorization: 'Bearer sim-bad-key' }
    for (const headers of [bad, {}]) {
      const stranger = await client.post(TASKS, work('lipsync', LIPSYNC), headers)
      t.match(stranger, { status: 401, json: { error: { code: 'unauthorized' } } })
    }
    t.equal((await client.get(`${TASKS}/t-none`)).status, 404)
  })

  t.test('presets, templates and categories are there for everybody', async (t) => {
    t.match((await client.get('/task/presets?kind=avatar')).json, {
      presets: [{ id: 'sim-face-mei', name: 'Mei' }],
    })
    t.match((await client.get('/task/presets?kind=voice')).json, { presets: [{ id: 'sim-voice-ada' }] })
    t.equal((await client.get('/task/presets')).status, 400)
    const { json } = await client.get('/task/clip-templates')
    t.equal((json.list as unknown as Json[]).length, 3)
    t.equal(readPng((await client.get(textAt(json, 'list', 0, 'cover_url'))).bytes).width, 270)
    t.equal(readMp4((await client.get(textAt(json, 'list', 0, 'demo_url'))).bytes).seconds, 3)
    const food = await client.get('/task/clip-templates?cate_id=sim-cate-food')
    t.match(food.json.list, [{ style_id: 'sim-style-crust', cate_name: 'Food', scene: 'vertical' }])
    t.match((await client.get('/task/clip-templates/categories', KEYED)).json, {
      list: [
        { cate_id: 'sim-cate-talk', sort: 1 },
        { cate_id: 'sim-cate-food', sort: 2 },
      ],
    })
  })

  t.test('a test ends an open task by hand', async (t) => {
    for (const state of ['succeeded', 'failed', 'expired']) {
      const { json } = await client.post(TASKS, work('lipsync', LIPSYNC, 'sim-studio@outcome=stuck'))
      const id = textAt(json, 'id')
      t.match((await client.post(`/simulator/tasks/${id}/end?state=${state}`)).json, { id, state })
      t.match((await client.get(`${TASKS}/${id}`)).json, { state })
    }
    t.equal((await client.post('/simulator/tasks/none/end')).status, 404)
    t.equal((await client.remove('/simulator/tasks')).status, 204)
    t.same(await client.tasks(), [])
  })
})

t.test('made files open', async (t) => {
  type Equal = { equal(found: string, wanted: string, name: string): boolean }

  /** Not every machine has a decoder; where there is one it has nothing to say. */
  const opens = (t: Equal, file: Buffer, name: string) => t.equal(complaintsOfDecoder(file) ?? '', '', name)

  t.test('a picture has the size that was asked for, and the same seed draws the same', async (t) => {
    for (const [widthPixels, heightPixels] of [
      [1, 1],
      [33, 17],
      [1024, 1792],
      [4096, 4096],
    ] as const) {
      const picture = { widthPixels, heightPixels, seed: 7 }
      const file = drawPng(picture)
      t.match(readPng(file), { width: widthPixels, height: heightPixels })
      t.same(drawPng(picture), file)
      opens(t, file, `${widthPixels}x${heightPixels}`)
    }
    const square = { widthPixels: 64, heightPixels: 64 }
    t.notSame(drawPng({ ...square, seed: 1 }), drawPng({ ...square, seed: 2 }))
  })

  t.test('a film has the size and the length that were asked for', async (t) => {
    for (const [widthPixels, heightPixels, seconds] of [
      [64, 64, 1],
      [16, 16, 0.4],
      [854, 480, 7.5],
      [1080, 1920, 60],
    ] as const) {
      const film = { widthPixels, heightPixels, seconds }
      const file = filmMp4(film)
      const facts = readMp4(file)
      t.match(facts, { width: widthPixels, height: heightPixels, seconds })
      t.same(filmMp4(film), file)
      opens(t, file, `${widthPixels}x${heightPixels}, ${seconds} s`)
    }
  })

  t.test('a sound lasts as long as was asked for, to 24 ms', async (t) => {
    for (const seconds of [0.5, 1, 63.2, 198.44]) {
      const file = soundMp3({ seconds, seed: 5 })
      t.equal(readMp3(file).seconds, toPlayedSeconds(seconds))
      t.ok(Math.abs(toPlayedSeconds(seconds) - seconds) <= 0.024, `${seconds} s`)
      opens(t, file, `${seconds} s`)
    }
    t.notSame(soundMp3({ seconds: 1, seed: 1 }), soundMp3({ seconds: 1, seed: 2 }))
  })
})
