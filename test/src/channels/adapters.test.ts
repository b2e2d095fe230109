/** Adapters of media and tasks: the works of each protocol, and the fields that models take. */
import t from 'tap'
import { CHAT_PROTOCOLS, type ChannelProtocol, channelEntry } from '../../../schemas/config/catalog.ts'
import { findMediaFailureStatus } from '../../../src/channels/media/failure.ts'
import {
  findMediaAdapter,
  findPresets,
  listWorks,
  MEDIA_CHANNELS,
  MEDIA_PROTOCOLS,
} from '../../../src/channels/media/registry.ts'
import {
  clipCategoriesRequest,
  clipTemplatesRequest,
  readClipCategories,
  readClipTemplates,
  taskPresets,
} from '../../../src/channels/media/task/catalog.ts'
import { veo } from '../../../src/channels/providers/gemini/veo.ts'
import { minimaxMusic } from '../../../src/channels/providers/minimax/music.ts'
import { dashscope } from '../../../src/channels/providers/qwen/dashscope.ts'
import {
  answerOf,
  channelOf,
  followOf,
  headerOf,
  jobOf,
  jsonOf,
  linked,
  pollOf,
  producedIn,
  submitOf,
} from './support.ts'

t.test('media protocols and their works', async (t) => {
  const channel = channelOf('task', 'https://studio.example')

  t.test('no protocol of chat has an adapter of media', async (t) => {
    for (const protocol of [...CHAT_PROTOCOLS, 'toString', '']) {
      t.equal(findMediaAdapter(protocol), null)
      t.strictSame(listWorks(protocol), [])
      t.equal(findPresets(protocol, 'voice'), null)
    }
  })

  t.test('what each can be asked for', async (t) => {
    const { task, ...others } = MEDIA_CHANNELS
    t.equal(task!.works.length, 13)
    const works = Object.entries(others).map(([protocol, adapter]) => [protocol, adapter.works])
    t.strictSame(Object.fromEntries(works), {
      'openai-images': ['image', 'image_edit'],
      'ark-images': ['image'],
      'ark-video': ['video'],
      'openai-speech': ['speech'],
      elevenlabs: ['speech', 'voice'],
      suno: ['music'],
      fal: ['image', 'image_edit', 'video'],
      replicate: ['image', 'image_edit', 'video'],
      kling: ['image', 'video'],
      veo: ['video'],
      'minimax-images': ['image'],
      'minimax-video': ['video'],
      'minimax-speech': ['speech'],
      'minimax-music': ['music'],
      dashscope: ['image', 'image_edit', 'video'],
      runway: ['image', 'image_edit', 'video'],
    })
  })

  t.test('work that an adapter does not do is a fault of the caller', async (t) => {
    for (const adapter of Object.values(MEDIA_CHANNELS)) {
      if (adapter.works.includes('transcript')) continue
      const submit = submitOf({ work: 'transcript', url: 'x' })
      t.throws(() => adapter.submit(channel, submit), { message: 'no request for transcript' })
      t.strictSame(adapter.takesIn?.(submit.job) ?? [], [])
    }
  })

  t.test('where presets are', async (t) => {
    const known = findPresets('openai-speech', 'voice')
    t.ok(known?.type === 'known' && known.presets.some(({ id }) => id === 'alloy'))
    t.equal(findPresets('openai-speech', 'avatar'), null)
    t.equal(findPresets('elevenlabs', 'voice')?.type, 'asked')
    t.equal(findPresets('task', 'avatar')?.type, 'asked')
    t.equal(findPresets('task', 'voice')?.type, 'asked')
    t.equal(findPresets('suno', 'voice'), null)
  })

  t.test('presets and templates are asked for with the key', async (t) => {
    const requests = [
      [taskPresets('voice').request(channel), '/presets?kind=voice'],
      [clipTemplatesRequest(channel, null), '/clip-templates'],
      [clipTemplatesRequest(channel, 'c&d'), '/clip-templates?cate_id=c%26d'],
      [clipCategoriesRequest(channel), '/clip-templates/categories'],
    ] as const
    for (const [request, path] of requests) {
      t.match(request, { method: 'GET', url: `https://studio.example${path}`, body: null })
      t.equal(headerOf(request, 'authorization'), 'Bearer k-1')
    }
  })

  t.test('items without an id are left out, empty fields are filled, categories are sorted', async (t) => {
    const presets = [{ id: 'a', name: 'Ada' }, { id: 7 }, { name: 'nobody' }, null]
    t.strictSame(taskPresets('avatar').read(answerOf(200, { presets })), [
      { id: 'a', name: 'Ada' },
      { id: '7', name: '7' },
    ])
    t.strictSame(readClipTemplates(answerOf(200, { list: [{ style_id: 's', name: 'Bold', more: 1 }, {}] })), [
      { style_id: 's', name: 'Bold', cover_url: '', demo_url: '', cate_name: '', scene: '' },
    ])
    const list = [
      { cate_id: 'b', cate_name: 'B', sort: 2 },
      { cate_id: 'a', cate_name: 'A', sort: 1 },
    ]
    t.strictSame(readClipCategories(answerOf(200, { list })), list.toReversed())
  })

  t.test('a provider without the request has none; one that fails did not say', async (t) => {
    for (const status of [404, 501]) t.strictSame(readClipTemplates(answerOf(status, '')), [])
    for (const [status, body] of [
      [200, 'x'],
      [200, {}],
      [200, []],
      [500, { list: [] }],
    ] as const) {
      t.equal(readClipTemplates(answerOf(status, body)), null, JSON.stringify(body))
    }
  })

  t.test('a code that nobody knows counts as a failed generation', async (t) => {
    t.equal(findMediaFailureStatus('no_speech'), 400)
    t.equal(findMediaFailureStatus('quota_exhausted'), 503)
    t.equal(findMediaFailureStatus('timeout'), 504)
    t.equal(findMediaFailureStatus('toString'), 502)
  })
})

t.test('models of one provider take different fields', async (t) => {
  // Generations of models, and platforms of one model, are asked for the same in different fields.
  const runway = findMediaAdapter('runway')!

  const words = { type: 'text', text: 'the dough rises' }
  const linkTo = (name: string) => `https://example.com/${name}`
  const image = (name: string, role: string | null = null) => ({
    type: 'image',
    file: linked(linkTo(`${name}.png`)),
    role,
  })
  const video = { type: 'video', file: linked(linkTo('a.mp4')), role: null }
  const film = { work: 'video', content: [words], duration: 5, resolution: '720p', ratio: '16:9' }

  t.test(
    'DashScope: references keep the order of the request; from Wan 2.7 on all is one list',
    async (t) => {
      const channel = channelOf('dashscope', 'https://dashscope.example/api/v1')
      const encodeInput = (model: string, ...content: object[]) => {
        const request = dashscope.submit(channel, submitOf({ ...film, content: [words, ...content] }, model))
        t.match(request.url, /video-generation\/video-synthesis$/)
        const { input } = jsonOf(request) as { input: Record<string, unknown> }
        return input
      }
      const [one, two] = [image('1', 'reference'), image('2', 'reference')]
      t.strictSame(encodeInput('wan2.6-r2v', one, video, two), {
        prompt: 'the dough rises',
        reference_urls: ['1.png', 'a.mp4', '2.png'].map(linkTo),
      })
      const kinds = (model: string, ...content: object[]) =>
        (encodeInput(model, ...content).media as { type: string; url: string }[]).map(
          ({ type, url }) => `${type} ${url.slice(-5)}`,
        )
      t.strictSame(kinds('wan2.7-i2v', image('a'), image('z', 'last_frame')), [
        'first_frame a.png',
        'last_frame z.png',
      ])
      t.strictSame(kinds('wan2.7-i2v', video), ['first_clip a.mp4'])
      t.strictSame(kinds('wan2.7-r2v', video, image('a'), two), [
        'reference_video a.mp4',
        'reference_image a.png',
        'reference_image 2.png',
      ])
      t.strictSame(kinds('wan2.7-videoedit', video, one), ['video a.mp4', 'reference_image 1.png'])
      t.strictSame(kinds('wan2.7-r2v', image('a', 'first_frame'), image('b'), image('c', 'last_frame')), [
        'first_frame a.png',
        'reference_image b.png',
        'reference_image c.png',
      ])
      t.strictSame(kinds('wan2.7-videoedit', video, image('a'), image('b', 'first_frame')), [
        'video a.mp4',
        'reference_image a.png',
        'reference_image b.png',
      ])
      t.strictSame(encodeInput('wan2.7-t2v'), { prompt: 'the dough rises' })
      t.strictSame(encodeInput('wan2.6-r2v', image('1'), video), {
        prompt: 'the dough rises',
        reference_urls: ['1.png', 'a.mp4'].map(linkTo),
      })
    },
  )

  t.test('DashScope: a frame decides the ratio, a reference leaves it to the request', async (t) => {
    const channel = channelOf('dashscope', 'https://dashscope.example/api/v1')
    const parametersOf = (model: string, ...content: object[]) =>
      (jsonOf(dashscope.submit(channel, submitOf({ ...film, content: [words, ...content] }, model))) as Input)
        .parameters
    type Input = { parameters: object }
    const whole = { resolution: '720P', ratio: '16:9', duration: 5 }
    t.strictSame(parametersOf('wan2.7-r2v', image('a'), video), whole)
    t.strictSame(parametersOf('wan2.7-videoedit', video, image('a')), whole)
    const { ratio: _, ...framed } = whole
    t.strictSame(parametersOf('wan2.7-r2v', image('a', 'first_frame')), framed)
    t.strictSame(parametersOf('wan2.7-i2v', image('a')), framed)
    t.strictSame(parametersOf('wan2.7-i2v', image('z', 'last_frame')), framed)
    t.strictSame(parametersOf('wan2.6-r2v', image('a')), { size: '1280*720', duration: 5 })
  })

  t.test('DashScope: a size of an image in pixels, by its ratio, or in the words of the model', async (t) => {
    const channel = channelOf('dashscope', 'https://dashscope.example/api/v1')
    const sizeOf = (model: string, size: string | null) => {
      const picture = { work: 'image', prompt: 'a loaf', n: 1, size }
      const { parameters } = jsonOf(dashscope.submit(channel, submitOf(picture, model))) as {
        parameters: { size?: string }
      }
      return parameters.size
    }
    const cases: readonly (readonly [model: string, size: string | null, sent: string | undefined])[] = [
      ['wan2.7-image-pro', '4K', '4K'],
      ['wan2.7-image-pro', 'large', 'large'],
      ['wan2.7-image-pro', '1024x768', '1024*768'],
      ['wan2.7-image-pro', '1024*768', '1024*768'],
      ['wan2.7-image-pro', '16:9', '1696*960'],
      ['wan2.6-t2i', '3:4', '1104*1472'],
      ['wan2.6-t2i', '21:9', '1696*960'],
      ['wan2.2-t2i-flash', '16:9', '1280*720'],
      ['wan2.5-t2i-preview', '4:3', '1472*1104'],
      ['qwen-image', '16:9', '1664*928'],
      ['qwen-image-plus', '1:1', '1328*1328'],
    ]
    for (const [model, size, sent] of cases) t.equal(sizeOf(model, size), sent, `${model} ${size}`)
    for (const size of [null, 'auto', 'AUTO']) t.equal(sizeOf('wan2.6-t2i', size), undefined, String(size))
  })

  t.test('Runway: each family of models has its own sizes', async (t) => {
    const channel = channelOf('runway', 'https://runway.example/v1')
    const ratioOf = (model: string, more: object) =>
      (jsonOf(runway.submit(channel, submitOf({ ...film, ...more }, model))) as { ratio: string }).ratio
    t.equal(ratioOf('gen4_turbo', { ratio: '21:9' }), '1584:672')
    t.equal(ratioOf('veo3.1', { ratio: '21:9' }), '1280:720')
    t.equal(ratioOf('veo3.1', { ratio: '1:2', resolution: '1080p' }), '1080:1920')
    t.equal(ratioOf('gen3a_turbo', {}), '1280:768')
    const picture = { work: 'image', prompt: 'a loaf', n: 1, size: '720x720' }
    t.match(jsonOf(runway.submit(channel, submitOf(picture, 'gen4_image'))), { ratio: '720:720' })
    // The larger sizes cost more.
    for (const [size, sent] of [
      ['960x540', '1280:720'],
      ['640x360', '1280:720'],
      ['360*640', '720:1280'],
      ['512x512', '720:720'],
      ['1600x900', '1280:720'],
      ['1900x1900', '1080:1080'],
      ['3840x2160', '1920:1080'],
      ['16:9', '1920:1080'],
      ['1:1', '1024:1024'],
    ] as const)
      t.match(
        jsonOf(runway.submit(channel, submitOf({ ...picture, size }, 'gen4_image'))),
        { ratio: sent },
        size,
      )
  })

  const vertex = (more: object = {}) =>
    channelEntry.parse({
      ...{ id: 'vertex', protocol: 'veo', provider: 'vertex', api_key: 'k-1', models: {} },
      base_url: 'https://aiplatform.example/v1/projects/p/locations/l',
      ...more,
    })

  t.test('Veo at Vertex: one video, with its sound and its bucket where they are asked for', async (t) => {
    const ofModel = 'https://aiplatform.example/v1/projects/p/locations/l/publishers/google/models/veo-3.1'
    const request = veo.submit(
      vertex({ storage_uri: 'gs://films/new' }),
      submitOf({ ...film, generate_audio: false }, 'veo-3.1'),
    )
    t.equal(request.url, `${ofModel}:predictLongRunning`)
    t.strictSame(jsonOf(request), {
      instances: [{ prompt: 'the dough rises' }],
      parameters: {
        ...{ aspectRatio: '16:9', durationSeconds: 5, resolution: '720p' },
        ...{ sampleCount: 1, generateAudio: false, storageUri: 'gs://films/new' },
      },
    })
    const name = 'projects/p/locations/l/publishers/google/models/veo-3.1/operations/o-1'
    const asked = followOf(veo).poll(vertex(), pollOf(film, name))
    t.equal(asked.url, `${ofModel}:fetchPredictOperation`)
    t.strictSame(jsonOf(asked), { operationName: name })
  })

  t.test('Veo at Vertex: the access goes to Cloud Storage and nowhere else', async (t) => {
    const read = (made: object) =>
      followOf(veo).readPoll(
        answerOf(200, { name: 'o', done: true, response: { videos: [made] } }),
        pollOf(film),
      )
    const { result } = producedIn(read({ gcsUri: 'gs://films/a b/../1.mp4' }))
    const url = result.files[0]!.upstream_url!
    t.equal(url, 'https://storage.googleapis.com/films/a%20b/-/1.mp4')
    t.strictSame(veo.fileRequest?.(vertex(), url)?.headers, [['x-goog-api-key', 'k-1']])
    for (const other of ['https://storage.googleapis.com.evil.example/x', 'http://storage.googleapis.com/x'])
      t.equal(veo.fileRequest?.(vertex(), other), null)
    const gemini = channelOf('veo', 'https://gemini.example')
    t.equal(veo.fileRequest?.(gemini, 'https://gemini.example/v1beta/files/1')?.headers[0]?.[1], 'k-1')
    t.equal(veo.fileRequest?.(gemini, url), null)
    for (const made of [{ gcsUri: 'gs://' }, { gcsUri: 7 }, {}, { bytesBase64Encoded: 'no video' }])
      t.match(read(made), { type: 'failed', code: 'generation_failed' })
  })

  t.test('MiniMax: songs with words, with those that it writes, and without any', async (t) => {
    const channel = channelOf('minimax-music', 'https://minimax.example/v1')
    const bodyOf = (job: object) => {
      const whole = { work: 'music', instrumental: false, ...job }
      const request = minimaxMusic.submit(channel, submitOf(whole, 'music-2.6'))
      t.equal(request.url, 'https://minimax.example/v1/music_generation')
      const { model, output_format, audio_setting, ...rest } = jsonOf(request) as Record<string, unknown>
      t.strictSame([model, output_format, audio_setting], ['music-2.6', 'url', { format: 'mp3' }])
      return rest
    }
    t.strictSame(bodyOf({ lyrics: '[Verse] Rise', tags: 'folk' }), { prompt: 'folk', lyrics: '[Verse] Rise' })
    t.strictSame(bodyOf({ prompt: 'of bread', tags: 'folk' }), {
      prompt: 'of bread. folk',
      lyrics_optimizer: true,
    })
    t.strictSame(bodyOf({ instrumental: true }), { prompt: 'pop', is_instrumental: true })
  })
})

t.test('sound is asked for in each providers words', async (t) => {
  // Each adapter asks for sound, and for none, in its provider's field; without either it sends nothing.
  const words = { type: 'text', text: 'the dough rises' }
  const frame = { type: 'image', file: linked('https://example.com/a.png'), role: 'first_frame' }
  const video = { type: 'video', file: linked('https://example.com/a.mp4'), role: null }
  const film = { work: 'video', content: [words, frame], duration: 5, resolution: '720p' }

  const channel = (protocol: ChannelProtocol, more: object = {}) => ({
    ...channelOf(protocol, 'https://provider.example/v1'),
    ...more,
  })

  /** Every value of a request by its path. */
  function valuesOf(value: unknown, path = ''): Map<string, unknown> {
    if (value === null || typeof value !== 'object') return new Map([[path, value]])
    return new Map(Object.entries(value).flatMap(([name, each]) => [...valuesOf(each, `${path}/${name}`)]))
  }

  const ASKED: readonly (readonly [ChannelProtocol, object, path: string, on: unknown, off: unknown])[] = [
    ['ark-video', {}, '/generate_audio', true, false],
    ['kling', {}, '/sound', 'on', 'off'],
    ['veo', { provider: 'vertex' }, '/parameters/generateAudio', true, false],
    ['dashscope', {}, '/parameters/audio', true, false],
    ['runway', {}, '/audio', true, false],
    ['fal', {}, '/generate_audio', true, false],
    ['fal', { input_names: { generate_audio: 'with_sound' } }, '/with_sound', true, false],
    ['replicate', {}, '/input/generate_audio', true, false],
    ['task', {}, '/input/generate_audio', true, false],
  ]

  /** Those that cannot be asked. */
  const FIXED: readonly (readonly [ChannelProtocol, object, content: readonly object[]])[] = [
    ['veo', {}, [words]],
    ['minimax-video', {}, [words]],
    ['runway', {}, [words, video]],
    ['fal', { input_names: { generate_audio: '' } }, [words]],
    ['replicate', { input_names: { generate_audio: '' } }, [words]],
  ]

  function sent(protocol: ChannelProtocol, more: object, job: object, generate_audio: boolean | null) {
    const adapter = findMediaAdapter(protocol)!
    return valuesOf(
      jsonOf(adapter.submit(channel(protocol, more), submitOf({ ...job, generate_audio }, 'model-1'))),
    )
  }

  t.test('sound on, off, or as the provider does by itself', async (t) => {
    for (const [protocol, more, path, on, off] of ASKED) {
      const name = `${protocol} ${JSON.stringify(more)}`
      const unasked = sent(protocol, more, film, null)
      t.notOk(unasked.has(path), name)
      t.strictSame(sent(protocol, more, film, true), new Map([...unasked, [path, on]]), name)
      t.equal(sent(protocol, more, film, false).get(path), off, name)
      t.notOk(findMediaAdapter(protocol)!.fixesSound?.(channel(protocol, more), jobOf(film)), name)
    }
  })

  t.test('a request says nothing of it where the provider has no field', async (t) => {
    for (const [protocol, more, content] of FIXED) {
      const job = { ...film, content }
      const unasked = [...sent(protocol, more, job, null)]
      for (const generate_audio of [true, false])
        t.same([...sent(protocol, more, job, generate_audio)], unasked, protocol)
      t.ok(findMediaAdapter(protocol)!.fixesSound?.(channel(protocol, more), jobOf(job)), protocol)
    }
  })

  t.test('no adapter of videos is left out', async (t) => {
    const known = new Set([...ASKED, ...FIXED].map(([protocol]) => protocol))
    t.same(
      MEDIA_PROTOCOLS.filter((protocol) => listWorks(protocol).includes('video') && !known.has(protocol)),
      [],
    )
  })
})
