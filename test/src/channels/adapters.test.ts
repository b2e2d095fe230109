/** Adapters of media and tasks: what they send, and what they read. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { LLMock } from '@copilotkit/aimock'
import fc from 'fast-check'
import t from 'tap'
import {
  CHAT_PROTOCOLS,
  type ChannelEntry,
  type ChannelProtocol,
  channelEntry,
} from '../../../schemas/config/catalog.ts'
import { type MediaWork, taskResult } from '../../../schemas/media/job.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import { startSimulator } from '../../../simulator/server.ts'
import type {
  MediaAdapter,
  MediaSubmit,
  PollOutcome,
  SubmitOutcome,
} from '../../../src/channels/media/adapter.ts'
import { findMediaFailureStatus, MEDIA_FAILURES } from '../../../src/channels/media/failure.ts'
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
import { task } from '../../../src/channels/media/task/task.ts'
import { arkImages } from '../../../src/channels/providers/ark/images.ts'
import { arkVideo } from '../../../src/channels/providers/ark/video.ts'
import { veo } from '../../../src/channels/providers/gemini/veo.ts'
import { minimaxImages } from '../../../src/channels/providers/minimax/images.ts'
import { minimaxMusic } from '../../../src/channels/providers/minimax/music.ts'
import { minimaxSpeech } from '../../../src/channels/providers/minimax/speech.ts'
import { minimaxVideo } from '../../../src/channels/providers/minimax/video.ts'
import { openaiImages } from '../../../src/channels/providers/openai/images.ts'
import { openaiSpeech } from '../../../src/channels/providers/openai/speech.ts'
import { dashscope } from '../../../src/channels/providers/qwen/dashscope.ts'
import { minimaxDialect } from '../../support/media-providers/minimax.ts'
import { KEY, startProvider } from '../../support/media-providers/provider.ts'
import { readText } from '../../support/source-files.ts'
import {
  answerOf,
  channelOf,
  fileWith,
  followOf,
  formOf,
  headerOf,
  jobOf,
  jsonOf,
  linked,
  pollOf,
  producedIn,
  REFERENCE,
  resolveUrl,
  sent,
  stored,
  submitOf,
} from './support.ts'

t.test('task adapter', async (t) => {
  const channel = channelOf('task', 'https://studio.example/gateway')
  const follow = followOf(task)
  const { find } = follow
  if (find === undefined) throw new Error('cannot be looked up')
  const link = { work: 'transcript', url: 'https://v.example/1' }
  const lipsync = {
    work: 'lipsync',
    source_video: stored('face.mp4', 'video/mp4'),
    audio: stored('words.mp3', 'audio/mpeg'),
    duration: 12,
  }

  t.test('a submit names the reference, and has files of the store as data URIs', async (t) => {
    const request = task.submit(channel, submitOf(lipsync))
    t.equal(request.url, 'https://studio.example/gateway/tasks')
    t.equal(headerOf(request, 'authorization'), 'Bearer k-1')
    t.equal(headerOf(request, 'accept'), 'application/json')
    t.strictSame(jsonOf(request), {
      reference: REFERENCE,
      kind: 'lipsync',
      model: 'model-1',
      input: {
        source_video: 'data:video/mp4;base64,inputs/face.mp4',
        audio: 'data:audio/mpeg;base64,inputs/words.mp3',
        duration: 12,
      },
    })
    t.equal(task.inlines, true)
  })

  t.test('a submit is accepted, done at once, refused, or nobody knows', async (t) => {
    const read = (status: number, body: unknown, job: object = link) =>
      task.readSubmit(answerOf(status, body), submitOf(job))
    for (const [state, isRunning] of [
      ['queued', false],
      ['running', true],
      ['cancelled', false],
      ['expired', false],
      ['resting', false],
    ] as const) {
      const accepted = { type: 'accepted', upstreamId: 't-1', isRunning, upstreamState: state }
      t.strictSame(read(200, { id: 't-1', state }), accepted)
    }
    t.match(read(200, { id: 't-1', state: 'succeeded', result: { content: 'Bread.' } }), {
      type: 'produced',
      result: { transcript: { content: 'Bread.', title: null } },
    })
    for (const [code, status, named] of [
      ['invalid_link', 400],
      ['unsupported_video', 400],
      ['no_speech', 400],
      ['asr_expired', 400],
      ['template_withdrawn', 400],
      ['content_policy', 400],
      ['quota_exhausted', 503],
      ['timeout', 504, { code: 'upstream_timeout' }],
      ['connection_failed', 502, { code: 'upstream_unreachable' }],
      ['constructor', 502],
      [7, 502],
    ] as const) {
      const body = { id: 't-1', state: 'failed', error: { code, message: 'No.' } }
      t.strictSame(read(200, body), { type: 'refused', status, message: 'No.', ...named })
    }
    t.strictSame(read(503, { error: { code: 'quota_exhausted', message: 'Later.' } }), {
      type: 'refused',
      status: 503,
      message: 'Later.',
    })
    for (const [status, code, named] of [
      [502, 'connection_failed', { code: 'upstream_unreachable' }],
      [504, 'timeout', { code: 'upstream_timeout' }],
      [500, 'generation_failed'],
    ] as const) {
      const refused = { type: 'refused', status, message: 'No.', ...named }
      t.strictSame(read(status, { error: { code, message: 'No.' } }), refused)
    }
    for (const [status, body] of [
      [200, ''],
      [200, '[]'],
      [502, { error: { code: 'timeout', message: 'bad gateway' } }],
      [504, { error: { code: 'generation_failed', message: 'gateway timeout' } }],
      [200, { state: 'queued' }],
      [200, { id: '', state: 'queued' }],
      [200, { id: 'x'.repeat(201), state: 'queued' }],
      [502, { error: { message: 'bad gateway' } }],
      [503, '<html>'],
    ] as const) {
      t.equal(read(status, body).type, 'unknown', JSON.stringify(body))
    }
  })

  t.test('every state is mapped, and an unknown one is recognised', async (t) => {
    const read = (body: unknown, status = 200) => follow.readPoll(answerOf(status, body), pollOf(lipsync))
    for (const [state, type] of [
      ['queued', 'queued'],
      ['running', 'running'],
      ['cancelled', 'cancelled'],
      ['expired', 'lapsed'],
      ['SUCCEEDED', 'unmapped'],
    ] as const) {
      t.strictSame(read({ id: 't-1', state }), { type, upstreamState: state })
    }
    const failed = { type: 'failed', upstreamState: 'failed' }
    t.strictSame(read({ state: 'failed', error: { code: 'no_speech', message: 'Nobody speaks.' } }), {
      ...failed,
      code: 'no_speech',
      message: 'Nobody speaks.',
    })
    t.strictSame(read({ state: 'failed' }), {
      ...failed,
      code: 'generation_failed',
      message: 'The task failed.',
    })
    const result = {
      video_url: 'https://studio.example/4.mp4',
      duration_sec: 11.64,
      width: 720,
      height: 1280,
    }
    t.match(read({ state: 'succeeded', result }), {
      type: 'produced',
      upstreamState: 'succeeded',
      result: {
        seconds: 11.64,
        files: [
          fileWith({
            role: 'video',
            upstream_url: result.video_url,
            width: 720,
            height: 1280,
            seconds: 11.64,
          }),
        ],
      },
    })
    t.match(read({ state: 'succeeded', result: {} }), { type: 'failed', code: 'generation_failed' })
    for (const [body, status] of [
      [{ error: { code: 'not_found', message: 'x' } }, 404],
      [{ id: 't-1' }, 200],
      ['', 200],
      [{ state: 'failed', error: {} }, 500],
    ] as const) {
      t.equal(read(body, status).type, 'error', JSON.stringify(body))
    }
  })

  t.test('only the contract’s own 404 says that nothing was taken on', async (t) => {
    t.equal(
      find.request(channel, 'vid_1', pollOf({ work: 'video', content: [] }).job).url,
      'https://studio.example/gateway/tasks?reference=vid_1',
    )
    const read = (status: number, body: unknown) => find.read(answerOf(status, body))
    t.strictSame(read(404, { error: { code: 'not_found', message: 'None.' } }), {
      type: 'refused',
      status: 502,
      message: 'The upstream did not take the work on.',
    })
    t.match(read(200, { id: 't-1', state: 'running' }), {
      type: 'accepted',
      upstreamId: 't-1',
      isRunning: true,
    })
    t.match(read(200, { id: 't-1', state: 'failed', error: { code: 'timeout' } }), { type: 'accepted' })
    t.match(read(200, { id: 't-1', state: 'succeeded', result: { content: 'x' } }), { type: 'accepted' })
    for (const [status, body] of [
      [404, '<html>'],
      [404, { error: { message: 'no route' } }],
      [404, { error: 'not_found' }],
      [501, ''],
      [503, { error: { code: 'not_found' } }],
      [200, {}],
    ] as const) {
      t.equal(read(status, body).type, 'unknown', `${status} ${JSON.stringify(body)}`)
    }
  })

  t.test('a task is cancelled by a post without a body', async (t) => {
    t.match(follow.cancel?.(channel, pollOf(lipsync, 'a/b')), {
      method: 'POST',
      url: 'https://studio.example/gateway/tasks/a%2Fb/cancel',
      body: null,
    })
  })
})

t.test('task page agrees with its adapter', async (t) => {
  // The examples of docs/upstream-task.md are what the adapter sends and what it understands.
  const page = readText('docs/upstream-task.md')
  const channel = channelOf('task', 'https://studio.example')

  const REFERENCE = 'vid_01K9F3Q4T5V6W7X8Y9Z0A1B2C3'

  interface Example {
    readonly kind: MediaWork
    readonly model: string
    readonly input: Record<string, unknown>
  }

  /** A block may have several values, each from the start of a line. */
  const examplesUnder = (text: string): unknown[] =>
    [...text.matchAll(/```json\n([\s\S]*?)```/g)].flatMap(([, json = '']) =>
      json.split(/^(?=\{)/m).map((value) => JSON.parse(value)),
    )

  const sectionOf = (heading: string): string => {
    const [, ...after] = page.split(`\n${heading}\n`)
    return (after[0] ?? '').split(/\n##+ /)[0] ?? ''
  }

  const kinds = [...sectionOf('## Kinds').matchAll(/^\| `(\w+)`(?:, `(\w+)`)? \| .+ \| .+ \|$/gm)].map(
    ([, ...names]) => names.filter((name) => name !== undefined),
  )
  /** The request and the result of each kind, in the order of the table. */
  const examples = examplesUnder(sectionOf('## Kinds'))

  t.test('every kind of the adapter has an example', async (t) => {
    t.strictSame(kinds.flat().toSorted(), task.works.toSorted())
    t.equal(examples.length, 2 * kinds.length)
  })

  const file = (value: unknown) => (value === undefined ? null : linked(String(value)))
  const files = (value: unknown) => (value as string[] | undefined)?.map((url) => linked(url)) ?? []

  /** The job that an input was made of. */
  function jobBehind({ kind, input }: Example): object {
    const base = { work: kind, ...input }
    switch (kind) {
      case 'image':
      case 'image_edit':
        return { ...base, images: files(input.images), mask: file(input.mask) }
      case 'video': {
        const parts = input.content as Record<string, unknown>[]
        const content = parts.map((part) =>
          part.type === 'text' ? part : { ...part, file: file(part.file) },
        )
        return { ...base, content }
      }
      case 'avatar_video':
      case 'voice':
        return { ...base, audio: file(input.audio) }
      case 'lipsync':
        return { ...base, source_video: file(input.source_video), audio: file(input.audio) }
      case 'motion':
        return { ...base, source_video: file(input.source_video), portraits: files(input.portraits) }
      case 'clip_compose': {
        const items = input.pip_config as Record<string, unknown>[]
        const pip_config = items.map((item) => ({ ...item, media: file(item.media) }))
        return { ...base, video: file(input.video), music: file(input.music), pip_config }
      }
      case 'avatar':
        return { ...base, source: file(input.source) }
      case 'subtitle':
        return { ...base, video: file(input.video) }
      default:
        return base
    }
  }

  for (const [index, names] of kinds.entries()) {
    t.test(`${names.join(', ')}: request and result`, async (t) => {
      const [request, result] = examples.slice(2 * index) as [Example, unknown]
      t.ok(names.includes(request.kind))
      const submit = { ...submitOf(jobBehind(request), request.model), reference: REFERENCE, resolveUrl }
      t.strictSame(jsonOf(task.submit(channel, submit)), { reference: REFERENCE, ...request })
      const answer = { id: 't-1', state: 'succeeded', result }
      const outcome = producedIn(followOf(task).readPoll(answerOf(200, answer), pollOf(jobBehind(request))))
      t.strictSame(taskResult.parse(outcome.result), outcome.result)
      t.strictSame(told(outcome.result), told(result), 'nothing is lost')
    })
  }

  /** Every text and number in a result, whatever their names. */
  function told(value: unknown): unknown[] {
    const values = (each: unknown): unknown[] =>
      typeof each === 'object' && each !== null
        ? Object.values(each).flatMap(values)
        : each === null
          ? []
          : [each]
    const positions = new Set(['video', 'audio', 'image', 'cover', 0, 1])
    return [...new Set(values(value).filter((each) => !positions.has(each as string)))].toSorted()
  }

  t.test('codes of the page are the codes of the adapter', async (t) => {
    const rows = [...sectionOf('## Errors').matchAll(/^\| `(\w+)` \|.*\| (\d*) ?\|$/gm)]
    const codes = rows.map(([, code, status]) => [code, status])
    const ours = Object.entries(MEDIA_FAILURES).map(([code, status]) => [code, String(status)])
    t.strictSame(codes.filter(([, status]) => status !== '').toSorted(), ours.toSorted())
  })

  t.test('the wait between two polls is within the bounds of the page', async (t) => {
    t.match(sectionOf('## How often it asks'), 'at least a second, at most ten')
    for (const [kind, { pollFirstMs, pollMaxMs }] of Object.entries(TASK_RULES))
      t.same([pollFirstMs, pollMaxMs <= 10_000], [1000, true], kind)
  })

  t.test('presets, templates and categories', async (t) => {
    const [presets, templates, categories] = examplesUnder(sectionOf('## What everybody may use'))
    t.strictSame(
      taskPresets('avatar').read(answerOf(200, presets)),
      (presets as { presets: unknown }).presets,
    )
    t.strictSame(readClipTemplates(answerOf(200, templates)), (templates as { list: unknown }).list)
    t.strictSame(readClipCategories(answerOf(200, categories)), (categories as { list: unknown }).list)
  })
})

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

t.test('any answer is read without error', async (t) => {
  // Whatever an upstream answers, the adapters name an outcome: they never throw, and never take nothing for a result.
  const RUNS = 500
  const file = linked('https://example.com/a')

  const JOBS: Readonly<Record<MediaWork, object>> = {
    image: { work: 'image', prompt: 'so', n: 2 },
    image_edit: { work: 'image_edit', prompt: 'so', n: 1, images: [file] },
    video: { work: 'video', content: [] },
    avatar_video: { work: 'avatar_video', avatar: 'a', duration: 1 },
    lipsync: { work: 'lipsync', source_video: file, audio: file, duration: 1 },
    motion: {
      work: 'motion',
      source_video: file,
      portraits: [file],
      face_count: 1,
      resolution: 'fast',
      duration: 1,
    },
    clip_compose: {
      work: 'clip_compose',
      video: file,
      asr_id: 'a',
      enable_title_effect: false,
      enable_caption_effect: true,
      enable_keyword_effect: true,
    },
    music: { work: 'music', prompt: 'so', instrumental: false },
    speech: { work: 'speech', input: 'so', speed: 1 },
    voice: { work: 'voice', name: 'so', audio: file },
    avatar: { work: 'avatar', name: 'so', source: file, source_kind: 'image' },
    transcript: { work: 'transcript', url: 'so' },
    subtitle: { work: 'subtitle', video: file },
  }

  /** Names and values that vendors use, so that random answers reach the depths of the readers. */
  const NAMES = [
    ...['id', 'state', 'status', 'result', 'error', 'code', 'message', 'msg', 'data', 'taskId', 'response'],
    ...['sunoData', 'audioUrl', 'imageUrl', 'duration', 'content', 'video_url', 'url', 'b64_json', 'size'],
    ...[
      'images',
      'tracks',
      'audio_url',
      'segments',
      'showRange',
      'asr_id',
      'voice_id',
      'avatar_id',
      'detail',
    ],
    ...['duration_sec', 'width', 'frames', 'framespersecond', 'output_format', 'list', 'presets', 'voices'],
    ...['style_id', 'cate_id', 'sort', 'name', '__proto__', 'constructor', 'toString'],
  ]
  const VALUES = [
    ...['succeeded', 'failed', 'queued', 'running', 'expired', 'cancelled', 'SUCCESS', 'FIRST_SUCCESS'],
    ...['GENERATE_AUDIO_FAILED', 'CALLBACK_EXCEPTION', 'https://cdn.example/1', 'http://', 'data:,', '..'],
    ...['data:image/png;base64,', 'data:audio/mpeg;base64,AAAA', 'iVBORw0KGgo=', '1x1', '0x0', '5', '-1', ''],
    ...['\0', 'nul\0', '\ud83d', 'half \udc00', 'a'.repeat(4500), '\u{1f35e}'.repeat(3000)],
    ...['not_found', 'no_speech', 'Sensitive', 'constructor', '9999999999999999999999'],
  ]
  const leaf = fc.oneof(
    fc.constantFrom(...VALUES),
    fc.constantFrom(0, 1, -1, 200, 400, 1e300, 0.5, null, true, false),
    fc.string({ maxLength: 6 }),
  )
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof({ maxDepth: 5, withCrossShrink: true }, leaf, tie('list'), tie('object')),
    list: fc.array(tie('json'), { maxLength: 3 }),
    object: fc.dictionary(fc.constantFrom(...NAMES), tie('json'), { maxKeys: 6 }),
  }))

  /** What vendors answer when all is well. */
  const link = 'https://cdn.example/1'
  const picture = { url: link, b64_json: 'iVBORw0KGgo=', size: '1x1', width: 4, height: 3 }
  const song = {
    id: 'c',
    audioUrl: link,
    sourceAudioUrl: link,
    imageUrl: link,
    title: 'T',
    prompt: 'la',
    duration: 9,
  }
  const GOOD: readonly unknown[] = [
    { data: [picture, { url: link }, { error: { code: 'Sensitive', message: 'No.' } }], size: '2x2' },
    {
      id: 'cgt-1',
      status: 'succeeded',
      content: { video_url: link },
      duration: 5,
      frames: 9,
      framespersecond: 24,
    },
    { id: 'cgt-1', status: 'failed', error: { code: 'InvalidParameter', message: 'No.' } },
    { voice_id: 'v', requires_verification: false },
    {
      code: 200,
      msg: 'success',
      data: { taskId: 't-1', status: 'SUCCESS', response: { sunoData: [song, song] } },
    },
    { code: 200, data: { taskId: 't-1', status: 'SENSITIVE_WORD_ERROR', errorMessage: 'No.' } },
    { id: 't', state: 'succeeded', result: { video_url: link, duration_sec: 9, width: 4, height: 3 } },
    { id: 't', state: 'succeeded', result: { images: [picture], audio_url: link, duration_sec: 9 } },
    { id: 't', state: 'succeeded', result: { tracks: [{ clip_id: 'c', audio_url: link, image_url: link }] } },
    { id: 't', state: 'succeeded', result: { content: 'words', cover: link, duration_sec: 9 } },
    { id: 't', state: 'succeeded', result: { asr_id: 'a', segments: [{ showRange: [0, 1], content: 'w' }] } },
    { id: 't', state: 'succeeded', result: { avatar_id: 'a', voice_id: 'v' } },
    { id: 't', state: 'failed', error: { code: 'no_speech', message: 'Nobody.' } },
    { request_id: 'r', status: 'COMPLETED', images: [picture], video: { ...picture, duration: 4, fps: 24 } },
    { status: 'COMPLETED', detail: [{ type: 'content_policy_violation', msg: 'No.' }] },
    { id: 'p', status: 'succeeded', output: [link, link], metrics: { video_output_duration_seconds: 4 } },
    {
      code: 0,
      data: { task_id: 'k', task_status: 'succeed', task_result: { videos: [picture], images: [picture] } },
    },
    { code: 0, data: { task_id: 'k', task_status: 'failed', task_status_msg: 'No.' } },
    {
      name: 'operations/1',
      done: true,
      response: { generateVideoResponse: { generatedSamples: [{ video: { uri: link } }] } },
    },
    { name: 'operations/1', done: true, error: { code: 3, message: 'No.' } },
    { status: 'Success', file_id: 'f', file: { download_url: link }, base_resp: { status_code: 0 } },
    { data: { image_urls: [link, link] }, base_resp: { status_code: 0, status_msg: 'success' } },
    { data: { audio: 'fffb9064'.repeat(20), status: 2 }, extra_info: { audio_length: 1500 } },
    { data: { audio: link, status: 2 }, extra_info: { music_duration: 1500 }, trace_id: 't' },
    { name: 'operations/1', done: true, response: { videos: [{ gcsUri: 'gs://films/1.mp4' }] } },
    { status: 'Fail', base_resp: { status_code: 1027, status_msg: 'No.' } },
    {
      output: { task_id: 'd', task_status: 'SUCCEEDED', video_url: link, results: [picture] },
      usage: { SR: 720 },
    },
    { output: { task_status: 'FAILED', code: 'DataInspectionFailed', message: 'No.' } },
    { id: 'r', status: 'SUCCEEDED', output: [link] },
    { id: 'r', status: 'FAILED', failure: 'No.', failureCode: 'SAFETY.INPUT.TEXT' },
    { id: 'p', status: 'failed', error: 'Flagged as sensitive.' },
  ]

  /** The same with some of it gone, and some of it anything. */
  function shaken(value: unknown): fc.Arbitrary<unknown> {
    const anything = { weight: 1, arbitrary: json }
    const kept = (arbitrary: fc.Arbitrary<unknown>) => fc.oneof({ weight: 15, arbitrary }, anything)
    if (Array.isArray(value)) return kept(fc.tuple(...value.map(shaken)))
    if (typeof value !== 'object' || value === null) return kept(fc.constant(value))
    const fields = Object.entries(value).map(([name, each]) => [name, fc.option(shaken(each), { freq: 15 })])
    return kept(fc.record(Object.fromEntries(fields)))
  }

  const written = (value: unknown) => Buffer.from(JSON.stringify(value) ?? '')
  const body = fc.oneof(
    { weight: 10, arbitrary: fc.oneof(...GOOD.map(shaken)).map(written) },
    { weight: 3, arbitrary: json.map(written) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)) },
  )
  const answer = fc
    .tuple(
      fc.constantFrom(...Array(12).fill(200), 201, 302, 400, 404, 429, 500, 502),
      body,
      fc.constantFrom('application/json', 'audio/mpeg', ''),
    )
    .map(([status, bytes, type]) => answerOf(status, bytes, { 'content-type': type }))

  const isText = (text: unknown) => typeof text === 'string' && text.length <= 4000

  /** What a database does not keep: NUL, and halves of characters. */
  const UNKEPT = /\\u0000|\\ud[89a-f]/
  const MAX_WORD_CHARS = 100

  /** What is wrong with an outcome; null for nothing. */
  function wrongIn(outcome: SubmitOutcome | PollOutcome, work: MediaWork): string | null {
    const { inline: _, ...told } = { inline: null, ...outcome }
    if (UNKEPT.test(JSON.stringify(told))) return 'text that cannot be kept'
    if ('upstreamState' in outcome && outcome.upstreamState.length > MAX_WORD_CHARS) return 'no word'
    switch (outcome.type) {
      case 'produced': {
        const { result, inline } = outcome
        if (!taskResult.safeParse(result).success) return 'a result that cannot be kept'
        const isSomething = result.files.length > 0 || result.made_id !== null || result.transcript !== null
        if (!isSomething) return `nothing produced for ${work}`
        const isHere = (index: number) => inline.some((each) => each.file === index)
        const isLost = result.files.some(
          ({ upstream_url }, index) => (upstream_url === null) !== isHere(index),
        )
        if (isLost) return 'a file that is neither linked nor here'
        // How much of it is charged depends on what was asked for.
        const isCharged = result.seconds === null || (result.seconds > 0 && result.seconds <= 1e6)
        return isCharged ? null : `${result.seconds} s cannot be charged`
      }
      case 'refused':
        return outcome.status >= 400 && outcome.status <= 599 && isText(outcome.message) ? null : 'no refusal'
      case 'failed':
        return Object.hasOwn(MEDIA_FAILURES, outcome.code) && isText(outcome.message) ? null : 'no failure'
      case 'accepted':
        return /^[\x21-\x7e]{1,200}$/.test(outcome.upstreamId) ? null : 'no id'
      default:
        return null
    }
  }

  /** What the outcomes of an answer are. @throws Error where one cannot be */
  function readEverything(
    adapter: MediaAdapter,
    work: MediaWork,
    given: ReturnType<typeof answerOf>,
  ): readonly string[] {
    const outcomes: (SubmitOutcome | PollOutcome)[] = [adapter.readSubmit(given, submitOf(JOBS[work]))]
    if (adapter.follow !== null) {
      const polled = adapter.follow.readPoll(given, pollOf(JOBS[work]))
      outcomes.push(polled.type === 'finished' ? polled.result.read(given) : polled)
    }
    if (adapter.follow?.find) outcomes.push(adapter.follow.find.read(given))
    return outcomes.map((outcome) => {
      const wrong = wrongIn(outcome, work)
      if (wrong !== null) throw new Error(wrong)
      if (given.status >= 300 && outcome.type === 'produced') throw new Error(`produced by a ${given.status}`)
      return outcome.type
    })
  }

  for (const [protocol, adapter] of Object.entries(MEDIA_CHANNELS)) {
    for (const work of adapter.works) {
      t.test(`${protocol} reads any answer to ${work}`, async (t) => {
        const seen = new Set<string>()
        t.doesNotThrow(() =>
          fc.assert(
            fc.property(answer, (given) => {
              for (const type of readEverything(adapter, work, given)) seen.add(type)
            }),
            { numRuns: RUNS, examples: GOOD.map((good) => [answerOf(200, written(good))]) },
          ),
        )
        // Else the answers would be too strange to reach what reads them.
        t.ok(seen.has('produced'), [...seen].join(', '))
      })
    }
  }

  t.test('presets and templates are read from any answer', async (t) => {
    const places = Object.keys(MEDIA_CHANNELS).flatMap((protocol) => [
      findPresets(protocol, 'voice'),
      findPresets(protocol, 'avatar'),
    ])
    const sources = places.flatMap((place) => (place?.type === 'asked' ? [place.source] : []))
    t.equal(sources.length, 3)
    t.doesNotThrow(() =>
      fc.assert(
        fc.property(answer, (given) => {
          const lists = [...sources.map((source) => source.read(given)), readClipTemplates(given)]
          for (const list of [...lists, readClipCategories(given)]) {
            if (list !== null && !Array.isArray(list)) throw new Error('no list')
          }
        }),
      ),
    )
  })

  t.test('a body that is deeply nested is read', async (t) => {
    const deep = `${'{"error":'.repeat(5000)}"x"${'}'.repeat(5000)}`
    for (const adapter of Object.values(MEDIA_CHANNELS)) {
      const [work] = adapter.works
      for (const status of [200, 400, 500]) {
        t.doesNotThrow(() => readEverything(adapter, work ?? 'image', answerOf(status, deep)))
      }
    }
  })
})

t.test('adapters against aimock', async (t) => {
  // The adapters' requests as somebody else's imitation of the vendors takes them, and its answers.
  const elevenlabs = findMediaAdapter('elevenlabs')!

  const fixture = (name: string) => readFileSync(new URL(`../../fixtures/media/${name}`, import.meta.url))
  const png = fixture('picture.png')
  const mp3 = fixture('plain.mp3')
  const VIDEO_URL = 'https://ark-content.example/1.mp4'

  const mock = new LLMock({
    port: 0,
    logLevel: 'silent',
    bytePlusVideo: { pollsBeforeInProgress: 1, pollsBeforeCompleted: 2 },
  })
  mock.onImage('a loaf', {
    images: [{ b64Json: png.toString('base64') }, { url: 'https://cdn.example/2.png' }],
  })
  mock.onElevenLabsTTS('Good morning', { audio: mp3.toString('base64'), format: 'mp3' })
  mock.onSpeech('Good evening', { audio: mp3.toString('base64'), format: 'mp3' })
  const finished = {
    id: 'cgt-1',
    model: 'seedance',
    status: 'succeeded',
    content: { video_url: VIDEO_URL },
    usage: { completion_tokens: 108900, total_tokens: 108900 },
    created_at: 1763712000,
    duration: 5,
    framespersecond: 24,
  }
  mock.on({ endpoint: 'video', userMessage: 'the dough rises' }, { json: finished })
  const moderated = {
    ...finished,
    status: 'failed',
    content: undefined,
    error: { code: 'OutputVideoSensitiveContentDetected', message: 'The video may be sensitive.' },
  }
  mock.on({ endpoint: 'video', userMessage: 'something rude' }, { json: moderated })

  t.before(() => mock.start())
  t.teardown(() => mock.stop())

  const channelAt = (protocol: ChannelEntry['protocol'], path: string) =>
    channelOf(protocol, `${mock.url}${path}`)

  t.test('images are generated', async (t) => {
    const submit = submitOf({ work: 'image', prompt: 'a loaf', n: 2, size: '1024x1024' }, 'gpt-image-1')
    const request = openaiImages.submit(channelAt('openai-images', '/v1'), submit)
    const { result, inline } = producedIn(openaiImages.readSubmit(await sent(request), submit))
    t.match(result.files, [{ width: 40, height: 24 }, { upstream_url: 'https://cdn.example/2.png' }])
    t.strictSame(
      inline.map(({ file, mediaType }) => [file, mediaType]),
      [[0, 'image/png']],
    )
    t.ok(inline[0]?.bytes.equals(png))
  })

  t.test('images are edited', async (t) => {
    const images = [stored('a.png', 'image/png'), stored('b.png', 'image/png')]
    const job = { work: 'image_edit', prompt: 'a loaf', n: 1, images, mask: stored('m.png', 'image/png') }
    const submit = submitOf(job, 'gpt-image-1')
    const request = openaiImages.submit(channelAt('openai-images', '/v1'), submit)
    t.equal(producedIn(openaiImages.readSubmit(await sent(request), submit)).result.files.length, 2)
  })

  t.test('a refusal of images is one', async (t) => {
    const submit = submitOf({ work: 'image', prompt: 'nothing known', n: 1 }, 'gpt-image-1')
    const request = openaiImages.submit(channelAt('openai-images', '/v1'), submit)
    t.match(openaiImages.readSubmit(await sent(request), submit), {
      type: 'refused',
      status: 404,
      message: 'No fixture matched',
    })
  })

  for (const [words, code] of [
    ['the dough rises', null],
    ['something rude', 'content_policy'],
  ] as const) {
    t.test(`a video goes from queued to its end: ${code ?? 'succeeded'}`, async (t) => {
      const channel = channelAt('ark-video', '/api/v3')
      const job = { work: 'video', content: [{ type: 'text', text: words }], duration: 5 }
      const submit = submitOf(job, 'seedance')
      const outcome = arkVideo.readSubmit(await sent(arkVideo.submit(channel, submit)), submit)
      if (outcome.type !== 'accepted') throw new Error(outcome.type)
      const poll = pollOf(job, outcome.upstreamId)
      const { poll: ask, readPoll } = followOf(arkVideo)
      t.strictSame(readPoll(await sent(ask(channel, poll)), poll), {
        type: 'running',
        upstreamState: 'running',
      })
      const end = readPoll(await sent(ask(channel, poll)), poll)
      if (code === null) {
        const { result } = producedIn(end)
        t.match(result, { seconds: 5, files: [{ role: 'video', upstream_url: VIDEO_URL }] })
      } else t.match(end, { type: 'failed', code, message: 'The video may be sensitive.' })
      const strange = pollOf(job, 'cgt-unknown')
      t.equal(readPoll(await sent(ask(channel, strange)), strange).type, 'error')
    })
  }

  for (const [adapter, protocol, path, input] of [
    [elevenlabs, 'elevenlabs', '', 'Good morning'],
    [openaiSpeech, 'openai-speech', '/v1', 'Good evening'],
  ] as const) {
    t.test(`${protocol} speaks`, async (t) => {
      const submit = submitOf({ work: 'speech', input, speed: 1 }, 'model-1')
      const outcome = adapter.readSubmit(
        await sent(adapter.submit(channelAt(protocol, path), submit)),
        submit,
      )
      const { result, inline } = producedIn(outcome)
      t.ok(inline[0]?.bytes.equals(mp3))
      t.equal(inline[0]?.mediaType, 'audio/mpeg')
      t.ok((result.seconds ?? 0) >= 1.5)
    })
  }
})

t.test('adapters against the simulated provider', async (t) => {
  // Every adapter against the dialect that the simulated provider has for it, kind by kind and end by end.
  const POLL_MS = 5

  const simulator = await startSimulator({ host: '127.0.0.1', port: 0 })
  t.teardown(() => simulator.close())

  /** The protocols that it has a dialect of. */
  type Simulated = keyof typeof BASES

  const channelAt = (protocol: Simulated): ChannelEntry =>
    channelOf(protocol, `${simulator.url}${BASES[protocol]}`)

  /** Where each dialect stands below the provider's own address. */
  const BASES = {
    'openai-images': '/v1',
    'ark-images': '/api/v3',
    'ark-video': '/api/v3',
    'openai-speech': '/v1',
    elevenlabs: '',
    suno: '',
    task: '/task',
  }

  let references = 0
  const asked = (job: object, model: string): MediaSubmit => ({
    ...submitOf(job, model),
    reference: `ref_${++references}`,
    resolveUrl: (file) => (file.from === 'url' ? resolveUrl(file) : 'data:image/png;base64,iVBORw0KGgo='),
  })

  async function submitted(protocol: Simulated, submit: MediaSubmit): Promise<SubmitOutcome> {
    const adapter = findMediaAdapter(protocol)!
    return adapter.readSubmit(await sent(adapter.submit(channelAt(protocol), submit)), submit)
  }

  /** Polls until the task is neither queued nor running; the test's own time limit ends it. */
  async function polled(
    protocol: Simulated,
    adapter: MediaAdapter,
    { job, upstreamModel }: MediaSubmit,
    upstreamId: string,
  ): Promise<PollOutcome> {
    const follow = followOf(adapter)
    const poll = { upstreamId, upstreamModel, job }
    for (;;) {
      const outcome = follow.readPoll(await sent(follow.poll(channelAt(protocol), poll)), poll)
      if (outcome.type !== 'queued' && outcome.type !== 'running') return outcome
      await sleep(POLL_MS)
    }
  }

  async function ended(protocol: Simulated, submit: MediaSubmit): Promise<SubmitOutcome | PollOutcome> {
    const outcome = await submitted(protocol, submit)
    const adapter = findMediaAdapter(protocol)!
    return outcome.type === 'accepted' ? polled(protocol, adapter, submit, outcome.upstreamId) : outcome
  }

  const file = linked('https://example.com/a.mp4')
  const film = { work: 'video', content: [{ type: 'text', text: 'the dough rises' }], duration: 2 }

  const JOBS = {
    image: { work: 'image', prompt: 'a loaf', n: 2, size: '1024x1024' },
    image_edit: {
      work: 'image_edit',
      prompt: 'a loaf',
      n: 1,
      images: [stored('a.png', 'image/png')],
      mask: stored('m.png', 'image/png'),
    },
    video: film,
    avatar_video: { work: 'avatar_video', avatar: 'face-1', audio: file, duration: 2 },
    lipsync: { work: 'lipsync', source_video: file, audio: file, duration: 2 },
    motion: {
      work: 'motion',
      source_video: file,
      portraits: [file],
      face_count: 1,
      resolution: 'max',
      duration: 2,
    },
    clip_compose: {
      work: 'clip_compose',
      video: file,
      asr_id: 'asr-1',
      enable_title_effect: false,
      enable_caption_effect: true,
      enable_keyword_effect: true,
    },
    music: { work: 'music', prompt: 'a song of bread', instrumental: false },
    speech: { work: 'speech', input: 'Good morning.', speed: 1 },
    voice: { work: 'voice', name: 'Ada', audio: stored('ada.mp3', 'audio/mpeg') },
    avatar: { work: 'avatar', name: 'Ada', source: file, source_kind: 'video' },
    transcript: { work: 'transcript', url: 'https://v.example.com/1' },
    subtitle: { work: 'subtitle', video: file },
  } satisfies Readonly<Record<MediaWork, object>>

  for (const protocol of Object.keys(BASES) as Simulated[]) {
    for (const work of findMediaAdapter(protocol)!.works) {
      t.test(`${protocol} does ${work}`, async (t) => {
        const submit = asked(JOBS[work], 'sim-studio@delay=30,queue=10')
        const { result, inline } = producedIn(await ended(protocol, submit))
        t.strictSame(taskResult.parse(result), result)
        for (const [index, { upstream_url, role }] of result.files.entries()) {
          const bytes = inline.find(({ file }) => file === index)?.bytes
          if (upstream_url === null) t.ok(bytes && bytes.length > 20, `${role} is here`)
          else t.equal((await fetch(upstream_url)).status, 200, `${role} is there`)
        }
      })
    }
  }

  const PICTURES = { work: 'image', prompt: 'a loaf', n: 4 }
  const MODERATED = { type: 'refused', status: 400 }

  /** Protocol, job, how the provider shall behave, and what comes of it. */
  const ENDS = [
    ['task', film, 'outcome=fail', { type: 'failed', code: 'generation_failed' }],
    ['task', film, 'outcome=moderation', { type: 'failed', code: 'content_policy' }],
    ['task', film, 'outcome=expire', { type: 'lapsed' }],
    ['task', film, 'outcome=cancel', { type: 'cancelled' }],
    ['task', film, 'outcome=unknown_state', { type: 'unmapped' }],
    ['task', JOBS.music, 'partial=1', { type: 'produced', result: { tracks: { length: 1 } } }],
    ['task', PICTURES, 'partial=3', { type: 'produced', result: { files: { length: 3 } } }],
    ['task', film, 'seconds=1.5', { type: 'produced', result: { seconds: 1.5 } }],
    ['task', film, 'no_seconds', { type: 'produced', result: { seconds: null } }],
    ['ark-video', film, 'outcome=fail', { type: 'failed', code: 'generation_failed' }],
    ['ark-video', film, 'outcome=moderation', { type: 'failed', code: 'content_policy' }],
    ['ark-video', film, 'outcome=expire', { type: 'lapsed' }],
    ['ark-video', film, 'outcome=cancel', { type: 'cancelled' }],
    ['ark-video', film, 'outcome=unknown_state', { type: 'unmapped' }],
    ['ark-video', film, 'outcome=refuse', { type: 'refused', status: 400 }],
    ['ark-video', film, 'seconds=1.5', { type: 'produced', result: { seconds: 1.5 } }],
    ['ark-video', film, 'no_seconds', { type: 'produced', result: { seconds: null } }],
    ['suno', JOBS.music, 'outcome=fail', { type: 'failed', code: 'generation_failed' }],
    ['suno', JOBS.music, 'outcome=moderation', { type: 'failed', code: 'content_policy' }],
    ['suno', JOBS.music, 'outcome=unknown_state', { type: 'unmapped' }],
    ['suno', JOBS.music, 'outcome=refuse', { type: 'refused', status: 400 }],
    ['suno', JOBS.music, 'outcome=fail,code=CALLBACK_EXCEPTION', { type: 'produced' }],
    ['suno', JOBS.music, 'partial=1', { type: 'produced', result: { tracks: { length: 1 } } }],
    ['suno', JOBS.music, 'partial=0', { type: 'failed', code: 'generation_failed' }],
    ['openai-images', PICTURES, 'partial=3', { type: 'produced', result: { files: { length: 3 } } }],
    ['openai-images', PICTURES, 'outcome=moderation', MODERATED],
    ['ark-images', PICTURES, 'partial=3', { type: 'produced', result: { files: { length: 3 } } }],
    ['ark-images', PICTURES, 'partial=0', MODERATED],
    ['ark-images', PICTURES, 'outcome=moderation', MODERATED],
  ] as const

  for (const [protocol, job, directives, expected] of ENDS) {
    t.test(`${protocol}, ${job.work}: ${directives}`, async (t) => {
      t.match(await ended(protocol, asked(job, `sim-studio@delay=30,${directives}`)), expected)
    })
  }

  t.test('a task is found by its reference, and one that nobody has never will be there', async (t) => {
    const { find } = followOf(task)
    if (find === undefined) throw new Error('cannot be looked up')
    const channel = channelAt('task')
    const lookUp = async (reference: string) =>
      find.read(await sent(find.request(channel, reference, jobOf(film))))
    const submit = asked(film, 'sim-studio')
    const accepted = await submitted('task', submit)
    t.match(accepted, { type: 'accepted', upstreamId: /^t-/ })
    t.match(await lookUp(submit.reference), {
      type: 'accepted',
      upstreamId: accepted.type === 'accepted' ? accepted.upstreamId : '',
    })
    const late = asked(film, 'sim-studio')
    t.match(await lookUp(late.reference), { type: 'refused', status: 502 })
    t.match(await submitted('task', late), { type: 'refused', status: 409 })
  })

  t.test('a second submit under one reference finds the first', async (t) => {
    const submit = asked(film, 'sim-studio@delay=600000,queue=600000')
    const first = await submitted('task', submit)
    t.match(first, { type: 'accepted' })
    t.strictSame(await submitted('task', submit), first)
  })

  t.test('a queued task is cancelled, a running one is not', async (t) => {
    const channel = channelAt('task')
    const { cancel } = followOf(task)
    if (cancel === undefined) throw new Error('cannot be cancelled')
    for (const [times, status, end] of [
      ['delay=60000,queue=60000', 200, 'cancelled'],
      ['delay=60,queue=0', 409, 'produced'],
    ] as const) {
      const submit = asked(film, `sim-studio@${times}`)
      const taken = await submitted('task', submit)
      if (taken.type !== 'accepted') throw new Error(taken.type)
      const { upstreamId } = taken
      const answer = await sent(cancel(channel, { upstreamId, upstreamModel: 'sim-studio', job: submit.job }))
      t.equal(answer.status, status)
      t.equal((await polled('task', task, submit, upstreamId)).type, end)
    }
  })

  t.test('codes of refusals keep their statuses', async (t) => {
    for (const [code, status] of [
      ['invalid_link', 400],
      ['unsupported_video', 400],
      ['content_policy', 400],
      ['quota_exhausted', 503],
      ['timeout', 504],
      ['connection_failed', 502],
    ] as const) {
      const submit = asked(JOBS.transcript, `sim-studio@outcome=refuse,code=${code}`)
      t.match(await submitted('task', submit), { type: 'refused', status }, code)
    }
  })

  t.test('a voice of ElevenLabs is listed or made, and speaks', async (t) => {
    const voices = findPresets('elevenlabs', 'voice')
    if (voices?.type !== 'asked') throw new Error('no list of voices')
    const list = async () =>
      voices.source.read(await sent(voices.source.request(channelAt('elevenlabs')))) ?? []
    const listed = await list()
    t.ok(listed.length > 0)
    const { result } = producedIn(await ended('elevenlabs', asked(JOBS.voice, 'sim-clone@delay=0')))
    const again = await list()
    t.notOk(
      again.some(({ id }) => id === result.made_id),
      'a customer’s voice is nobody else’s',
    )
    for (const voice of [listed[0]?.id, result.made_id]) {
      const speech = { ...JOBS.speech, voice, speed: 0.9 }
      const spoken = producedIn(await ended('elevenlabs', asked(speech, 'sim-speech@delay=0')))
      t.ok((spoken.result.seconds ?? 0) > 0, 'its length is read from the sound')
    }
    const nobody = { ...JOBS.speech, voice: 'nobody' }
    t.match(await ended('elevenlabs', asked(nobody, 'sim-speech@delay=0')), { type: 'refused' })
  })

  t.test('OpenAI’s voices all speak', async (t) => {
    const voices = findPresets('openai-speech', 'voice')
    if (voices?.type !== 'known') throw new Error('no voices')
    for (const { id } of voices.presets) {
      const spoken = producedIn(
        await ended('openai-speech', asked({ ...JOBS.speech, voice: id }, 'sim-speech@delay=0')),
      )
      t.ok((spoken.result.seconds ?? 0) > 0, id)
    }
  })

  t.test('presets, templates and categories are listed, and what they name is taken', async (t) => {
    const channel = channelAt('task')
    const listPresets = async (kind: 'avatar' | 'voice') => {
      const source = taskPresets(kind)
      return source.read(await sent(source.request(channel)))
    }
    const [avatar] = (await listPresets('avatar')) ?? []
    const [voice] = (await listPresets('voice')) ?? []
    const speech = { work: 'avatar_video', avatar: avatar?.id, voice: voice?.id, text: 'Hello.', duration: 1 }
    producedIn(await ended('task', asked(speech, 'sim-studio@delay=0')))

    const categories = readClipCategories(await sent(clipCategoriesRequest(channel))) ?? []
    const all = readClipTemplates(await sent(clipTemplatesRequest(channel, null))) ?? []
    t.ok(categories.length > 0 && all.length > 0)
    const some =
      readClipTemplates(await sent(clipTemplatesRequest(channel, categories[0]?.cate_id ?? ''))) ?? []
    t.ok(some.length > 0 && some.every(({ cate_name }) => cate_name === categories[0]?.cate_name))
    const clip = (video_style_id?: string) =>
      ended('task', asked({ ...JOBS.clip_compose, video_style_id }, 'sim-studio@delay=0'))
    producedIn(await clip(some[0]?.style_id))
    t.match(await clip('withdrawn'), { type: 'refused', status: 400 })
  })
})

t.test('ark adapters', async (t) => {
  const BASE = 'https://ark.example/api/v3'
  const images = channelOf('ark-images', BASE)
  const videos = channelOf('ark-video', BASE)
  const follow = followOf(arkVideo)
  const film = { work: 'video', content: [{ type: 'text', text: 'the dough rises' }] }

  t.test('one image is no sequence, several are one of at most so many', async (t) => {
    const extra = { watermark: false, stream: true, sequential_image_generation_options: { max_images: 15 } }
    const one = arkImages.submit(images, submitOf({ work: 'image', prompt: 'a loaf', n: 1 }))
    t.equal(one.url, `${BASE}/images/generations`)
    t.strictSame(jsonOf(one), {
      model: 'model-1',
      prompt: 'a loaf',
      sequential_image_generation: 'disabled',
      response_format: 'url',
    })
    const three = { work: 'image', prompt: 'a loaf', n: 3, size: '2048x2048', extra }
    t.strictSame(jsonOf(arkImages.submit(images, submitOf(three))), {
      watermark: false,
      sequential_image_generation_options: { max_images: 3 },
      model: 'model-1',
      prompt: 'a loaf',
      size: '2048x2048',
      sequential_image_generation: 'auto',
      response_format: 'url',
    })
  })

  t.test('reference images stand in the request: one as itself, several as a list', async (t) => {
    const link = linked('https://example.com/a.png')
    const kept = stored('b.png', 'image/png')
    const imageOf = (files: unknown[]) => {
      const job = { work: 'image', prompt: 'so', n: 1, images: files }
      return (jsonOf(arkImages.submit(images, submitOf(job))) as { image: unknown }).image
    }
    t.equal(imageOf([link]), 'https://example.com/a.png')
    t.strictSame(imageOf([link, kept]), ['https://example.com/a.png', 'data:image/png;base64,inputs/b.png'])
  })

  t.test('images of a sequence that failed are left out; when all failed it is a refusal', async (t) => {
    const submit = submitOf({ work: 'image', prompt: 'a loaf', n: 3 })
    const error = { code: 'OutputImageSensitiveContentDetected', message: 'The image may be sensitive.' }
    const data = [{ url: 'https://cdn.example/1.jpeg', size: '2048x1536' }, { error }]
    const some = arkImages.readSubmit(
      answerOf(200, { model: 'm', data, usage: { generated_images: 1 } }),
      submit,
    )
    t.match(some, {
      type: 'produced',
      result: {
        files: [
          fileWith({ role: 'image', upstream_url: 'https://cdn.example/1.jpeg', width: 2048, height: 1536 }),
        ],
      },
    })
    const refused = { type: 'refused', status: 400, message: 'The image may be sensitive.' }
    t.strictSame(arkImages.readSubmit(answerOf(200, { data: [{ error }] }), submit), refused)
    t.strictSame(arkImages.readSubmit(answerOf(200, { error }), submit), refused)
    const busy = { error: { code: 'ServerOverloaded', message: 'Busy.' } }
    t.match(arkImages.readSubmit(answerOf(200, busy), submit), { type: 'refused', status: 503 })
  })

  t.test('an overdue account is one without credit', async (t) => {
    const refusal = (code: string) => answerOf(403, { error: { code, message: 'No.', type: 'Forbidden' } })
    const image = submitOf({ work: 'image', prompt: 'a loaf', n: 1 })
    for (const [code, status] of [
      ['AccountOverdueError', 402],
      ['AccessDenied', 403],
    ] as const) {
      t.match(arkImages.readSubmit(refusal(code), image), { type: 'refused', status })
      t.match(arkVideo.readSubmit(refusal(code), submitOf(film)), { type: 'refused', status })
    }
  })

  t.test('a video task has its parts, roles and settings', async (t) => {
    const job = {
      work: 'video',
      content: [
        { type: 'text', text: 'the dough rises' },
        { type: 'image', file: linked('https://example.com/a.png'), role: 'first_frame' },
        { type: 'video', file: linked('https://example.com/b.mp4'), role: null },
      ],
      duration: 5,
      resolution: '720p',
      ratio: '16:9',
      seed: 7,
      fps: 24,
      watermark: false,
      camera_fixed: true,
      generate_audio: false,
      extra: { service_tier: 'flex', callback_url: 'https://evil.example', model: 'mine', frames: 288 },
      frames: 288,
    }
    const request = arkVideo.submit(videos, submitOf(job, 'seedance'))
    t.equal(request.url, `${BASE}/contents/generations/tasks`)
    t.equal(headerOf(request, 'authorization'), 'Bearer k-1')
    t.strictSame(jsonOf(request), {
      model: 'seedance',
      duration: 5,
      content: [
        { type: 'text', text: 'the dough rises' },
        { type: 'image_url', image_url: { url: 'https://example.com/a.png' }, role: 'first_frame' },
        { type: 'video_url', video_url: { url: 'https://example.com/b.mp4' }, role: 'reference_video' },
      ],
      resolution: '720p',
      ratio: '16:9',
      seed: 7,
      framespersecond: 24,
      watermark: false,
      camera_fixed: true,
      generate_audio: false,
    })
  })

  t.test('a submit is accepted, refused, or nobody knows', async (t) => {
    const read = (status: number, body: unknown) =>
      arkVideo.readSubmit(answerOf(status, body), submitOf(film))
    const accepted = { type: 'accepted', upstreamId: 'cgt-1', isRunning: false, upstreamState: 'queued' }
    t.strictSame(read(200, { id: 'cgt-1' }), accepted)
    t.strictSame(read(200, `\ufeff  {"id":"cgt-1"}\n`), accepted)
    const words = { error: { code: 'InvalidParameter', message: 'duration is too long', param: 'duration' } }
    t.strictSame(read(400, words), { type: 'refused', status: 400, message: 'duration is too long' })
    t.strictSame(read(200, words), { type: 'refused', status: 400, message: 'duration is too long' })
    t.strictSame(read(429, { error: { message: 'queue full' } }), {
      type: 'refused',
      status: 429,
      message: 'queue full',
    })
    t.match(read(500, { error: { message: 'oops' } }), { type: 'refused', status: 500 })
    t.match(read(302, ''), { type: 'refused', status: 500 })
    for (const [status, body] of [
      [200, ''],
      [200, '{}'],
      [200, { id: '..' }],
      [200, { id: 'a b' }],
      [500, '<html>'],
      [502, words],
      [504, words],
      [408, words],
    ] as const) {
      t.equal(read(status, body).type, 'unknown', `${status} ${JSON.stringify(body)}`)
    }
  })

  t.test('every state of a video task is mapped', async (t) => {
    const read = (body: unknown, status = 200) => follow.readPoll(answerOf(status, body), pollOf(film))
    for (const [status, type] of [
      ['queued', 'queued'],
      ['running', 'running'],
      ['cancelled', 'cancelled'],
      ['expired', 'lapsed'],
      ['preparing', 'unmapped'],
    ] as const) {
      t.strictSame(read({ id: 'cgt-1', status }), { type, upstreamState: status })
    }
    const codes = [
      ['OutputVideoSensitiveContentDetected', 'content_policy'],
      ['InputImageSensitiveContentDetected.PrivacyInformation', 'content_policy'],
      ['InvalidParameter.InvalidImage', 'invalid_input'],
      ['QuotaExceeded', 'quota_exhausted'],
      ['InternalServiceTimeout', 'timeout'],
      ['InternalServiceError', 'generation_failed'],
    ]
    for (const [code, ours] of codes) {
      const error = { code, message: 'No.' }
      const failed = { type: 'failed', upstreamState: 'failed', code: ours, message: 'No.' }
      t.strictSame(read({ status: 'failed', error }), failed)
    }
    t.match(read({ status: 'failed', error: null }), { type: 'failed', message: 'The generation failed.' })
    for (const [body, status] of [
      [{ error: { message: 'not found' } }, 404],
      ['<html>', 200],
      [{}, 200],
      [{ status: 7 }, 200],
    ] as const) {
      t.equal(read(body, status).type, 'error', JSON.stringify(body))
    }
  })

  t.test('a finished video has its link and its length', async (t) => {
    const video_url = 'https://ark-content.example/1.mp4?sig=1'
    const read = (facts: object) =>
      follow.readPoll(
        answerOf(200, { id: 'cgt-1', status: 'succeeded', content: { video_url }, ...facts }),
        pollOf(film),
      )
    const done = read({ duration: 5, resolution: '720p', ratio: '16:9', framespersecond: 24, usage: {} })
    t.match(done, {
      type: 'produced',
      upstreamState: 'succeeded',
      result: { seconds: 5, files: [fileWith({ role: 'video', upstream_url: video_url, seconds: 5 })] },
      inline: { length: 0 },
    })
    const secondsOf = (facts: object) => {
      const outcome = read(facts)
      return outcome.type === 'produced' ? outcome.result.seconds : outcome.type
    }
    t.equal(secondsOf({ duration: '5.2' }), 5.2)
    t.equal(secondsOf({ frames: 121, framespersecond: 24 }), 121 / 24)
    t.equal(secondsOf({}), null)
    t.equal(secondsOf({ duration: 1e300 }), 1e6, 'longer than anything lasts')
    for (const duration of [-1, 0, 'long', null]) t.equal(secondsOf({ duration }), null)
    t.match(read({ content: {} }), { type: 'failed', code: 'generation_failed' })
    t.match(read({ content: null }), { type: 'failed', code: 'generation_failed' })
  })

  t.test('a task is polled and cancelled by its id, which cannot lead elsewhere', async (t) => {
    const { poll, cancel, find } = follow
    t.equal(poll(videos, pollOf(film, 'cgt-1')).url, `${BASE}/contents/generations/tasks/cgt-1`)
    t.equal(poll(videos, pollOf(film, 'a/../b?c')).url, `${BASE}/contents/generations/tasks/a%2F..%2Fb%3Fc`)
    t.equal(poll(videos, pollOf(film, '..')).url, `${BASE}/contents/generations/tasks/-`)
    t.match(cancel?.(videos, pollOf(film, 'cgt-1')), {
      method: 'DELETE',
      url: `${BASE}/contents/generations/tasks/cgt-1`,
      body: null,
    })
    t.equal(find, undefined)
  })
})

t.test('hosted adapters', async (t) => {
  // What hosts of many models are asked for: their usual names of fields, and those that a channel has for them.
  const fal = findMediaAdapter('fal')!
  const replicate = findMediaAdapter('replicate')!

  const channelOf = (protocol: 'fal' | 'replicate', base_url: string, input_names = {}) =>
    channelEntry.parse({ id: 'host', protocol, base_url, api_key: 'k-1', models: {}, input_names })

  const atFal = channelOf('fal', 'https://queue.example')
  const atReplicate = channelOf('replicate', 'https://api.example/v1')
  const film = {
    work: 'video',
    content: [
      { type: 'text', text: 'the dough rises' },
      { type: 'image', file: linked('https://example.com/a.png'), role: 'first_frame' },
      { type: 'image', file: stored('z.png', 'image/png'), role: 'last_frame' },
    ],
    duration: 5,
    resolution: '720p',
    ratio: '16:9',
    seed: 7,
    generate_audio: false,
  }

  t.test('fal: a video is asked for at the path of its model, with the key', async (t) => {
    const request = fal.submit(atFal, submitOf(film, 'fal-ai/kling-video/v2/pro'))
    t.equal(request.url, 'https://queue.example/fal-ai/kling-video/v2/pro')
    t.equal(headerOf(request, 'authorization'), 'Key k-1')
    t.strictSame(jsonOf(request), {
      prompt: 'the dough rises',
      seed: 7,
      image_url: 'https://example.com/a.png',
      end_image_url: 'data:image/png;base64,inputs/z.png',
      duration: '5',
      resolution: '720p',
      aspect_ratio: '16:9',
      generate_audio: false,
    })
    const durationFor = (model: string) =>
      (jsonOf(fal.submit(atFal, submitOf(film, model))) as { duration: unknown }).duration
    t.equal(durationFor('fal-ai/veo3'), '5s')
    t.equal(durationFor('fal-ai/sora-2/text-to-video'), 5)
  })

  t.test('fal: images have a number, a size in pixels and their references', async (t) => {
    const bodyOf = (job: object, names = {}) =>
      jsonOf(
        fal.submit(channelOf('fal', 'https://queue.example', names), submitOf({ prompt: 'a loaf', ...job })),
      )
    t.strictSame(bodyOf({ work: 'image', n: 1 }), { prompt: 'a loaf' })
    t.strictSame(bodyOf({ work: 'image', n: 3, size: '1024x768', extra: { negative_prompt: 'rye', n: 9 } }), {
      negative_prompt: 'rye',
      prompt: 'a loaf',
      image_size: { width: 1024, height: 768 },
      num_images: 3,
    })
    t.strictSame(bodyOf({ work: 'image', n: 1, size: '16:9' }), { prompt: 'a loaf', aspect_ratio: '16:9' })
    t.strictSame(bodyOf({ work: 'image', n: 1, size: '4K' }), { prompt: 'a loaf', image_size: '4K' })
    const link = linked('https://example.com/a.png')
    t.match(bodyOf({ work: 'image_edit', n: 1, images: [link], mask: link }), {
      image_url: 'https://example.com/a.png',
      mask_url: 'https://example.com/a.png',
    })
    t.match(bodyOf({ work: 'image_edit', n: 1, images: [link, link] }), {
      image_urls: ['https://example.com/a.png', 'https://example.com/a.png'],
    })
    const named = bodyOf({ work: 'image_edit', n: 2, images: [link] }, { image: 'image_urls[]', n: '' })
    t.strictSame(named, { prompt: 'a loaf', image_urls: ['https://example.com/a.png'] })
  })

  t.test('fal: requests are followed at their application', async (t) => {
    const follow = followOf(fal)
    const poll = { ...pollOf(film, 'r-1'), upstreamModel: 'fal-ai/kling-video/v2/pro' }
    const at = 'https://queue.example/fal-ai/kling-video/requests/r-1'
    t.equal(follow.poll(atFal, poll).url, `${at}/status`)
    t.match(follow.cancel?.(atFal, poll), { method: 'PUT', url: `${at}/cancel` })
    const outcome = follow.readPoll(answerOf(200, { status: 'COMPLETED' }), poll)
    if (outcome.type !== 'finished') throw new Error(outcome.type)
    t.equal(outcome.result.request(atFal).url, at)
    t.equal(headerOf(outcome.result.request(atFal), 'authorization'), 'Key k-1')
    const stray = { ...poll, upstreamId: '..' }
    t.equal(follow.poll(atFal, stray).url, 'https://queue.example/fal-ai/kling-video/requests/-/status')
  })

  t.test('fal: an error of a finished request is its end; one of the way to it is not', async (t) => {
    const poll = { ...pollOf(film, 'r-1'), upstreamModel: 'fal-ai/veo3' }
    const read = (status: number, body: unknown, error?: string) => {
      const outcome = followOf(fal).readPoll(answerOf(200, { status: 'COMPLETED', error }), poll)
      if (outcome.type !== 'finished') throw new Error(outcome.type)
      return outcome.result.read(answerOf(status, body))
    }
    const detail = (type: string) => ({ detail: [{ msg: 'No.', type }] })
    for (const [status, type, code] of [
      [422, 'content_policy_violation', 'content_policy'],
      [422, 'image_too_small', 'invalid_input'],
      [422, 'file_download_error', 'source_unreachable'],
      [500, 'internal_server_error', 'generation_failed'],
      [504, 'generation_timeout', 'timeout'],
    ] as const)
      t.strictSame(read(status, detail(type)), {
        type: 'failed',
        upstreamState: 'COMPLETED',
        code,
        message: 'No.',
      })
    t.match(read(502, '', 'Runner gone'), { type: 'failed', message: 'Runner gone' })
    for (const [status, body] of [
      [502, ''],
      [401, { detail: 'No key.' }],
      [404, { detail: 'Not found' }],
      [429, { detail: 'Slow down' }],
    ] as const)
      t.equal(read(status, body).type, 'error', String(status))
    t.match(read(200, {}), { type: 'failed', code: 'generation_failed' })
  })

  t.test('Replicate: models, versions and deployments have their own addresses', async (t) => {
    const version = 'a'.repeat(64)
    for (const [model, path, named] of [
      ['black-forest-labs/flux-dev', '/models/black-forest-labs/flux-dev/predictions', undefined],
      ['deployments/acme/films', '/deployments/acme/films/predictions', undefined],
      [`acme/films:${version}`, '/predictions', version],
      [version, '/predictions', version],
    ] as const) {
      const request = replicate.submit(atReplicate, submitOf(film, model))
      t.equal(request.url, `https://api.example/v1${path}`)
      t.equal((jsonOf(request) as { version?: string }).version, named)
    }
    t.strictSame(jsonOf(replicate.submit(atReplicate, submitOf(film, 'acme/films'))), {
      input: {
        prompt: 'the dough rises',
        seed: 7,
        image: 'https://example.com/a.png',
        last_frame: 'data:image/png;base64,inputs/z.png',
        duration: 5,
        resolution: '720p',
        aspect_ratio: '16:9',
        generate_audio: false,
      },
    })
    const picture = submitOf({ work: 'image', prompt: 'a loaf', n: 2, size: '1024x768' }, 'acme/pictures')
    t.match(jsonOf(replicate.submit(atReplicate, picture)), {
      input: { width: 1024, height: 768, num_outputs: 2 },
    })
    const sized = channelOf('replicate', 'https://api.example/v1', { size: 'resolution' })
    t.strictSame(jsonOf(replicate.submit(sized, picture)), {
      input: { prompt: 'a loaf', resolution: '1024x768', num_outputs: 2 },
    })
  })

  t.test('Replicate: every state, and every form of an output', async (t) => {
    const read = (body: object, job: object = film) =>
      followOf(replicate).readPoll(answerOf(200, body), pollOf(job))
    for (const [status, type] of [
      ['starting', 'queued'],
      ['processing', 'running'],
      ['canceled', 'cancelled'],
      ['aborted', 'lapsed'],
      ['paused', 'unmapped'],
    ] as const)
      t.strictSame(read({ status }), { type, upstreamState: status })
    const link = 'https://replicate.delivery/1.mp4'
    const metrics = { video_output_duration_seconds: 4 }
    for (const output of [link, [link], { video: link }])
      t.match(read({ status: 'succeeded', output, metrics }), {
        type: 'produced',
        result: { seconds: 4, files: [{ role: 'video', upstream_url: link, seconds: 4 }] },
      })
    const still = 'https://replicate.delivery/a/thumbnail.jpg?x=1.mp4'
    for (const output of [[still, link], { thumbnail: still, video: link }])
      t.match(
        read({ status: 'succeeded', output }),
        { result: { files: [{ role: 'video', upstream_url: link }] } },
        'its picture is not the video',
      )
    const pictures = read({ status: 'succeeded', output: [link, link] }, { work: 'image', prompt: 'x', n: 2 })
    t.match(pictures, { type: 'produced', result: { files: { length: 2 } } })
    for (const [error, code] of [
      ['The input was flagged as sensitive (E005)', 'content_policy'],
      ['Prediction timed out', 'timeout'],
      ['size must be at least 512', 'invalid_input'],
      ['CUDA out of memory', 'generation_failed'],
    ] as const)
      t.match(read({ status: 'failed', error }), { type: 'failed', code, message: error })
    t.match(read({ status: 'succeeded', output: null }), { type: 'failed', code: 'generation_failed' })
  })

  t.test('an account without credit lets another channel try', async (t) => {
    const body = { title: 'Insufficient credit', detail: 'Top up.', status: 402 }
    t.match(replicate.readSubmit(answerOf(402, body), submitOf(film)), { type: 'refused', status: 402 })
    const locked =
      'User is locked. Reason: Exhausted balance. Top up your balance at fal.ai/dashboard/billing.'
    t.match(fal.readSubmit(answerOf(403, { detail: locked }), submitOf(film)), {
      type: 'refused',
      status: 402,
    })
    t.match(fal.readSubmit(answerOf(429, { detail: 'Slow down' }), submitOf(film)), {
      type: 'refused',
      status: 429,
      message: 'Slow down',
    })
    for (const adapter of [fal, replicate])
      for (const [status, text] of [
        [200, '{}'],
        [200, '<html>'],
        [504, { detail: 'x' }],
        [500, ''],
      ] as const)
        t.equal(adapter.readSubmit(answerOf(status, text), submitOf(film)).type, 'unknown')
  })
})

t.test('openai images adapter', async (t) => {
  const channel = channelOf('openai-images', 'https://up.example/v1', { 'X-Team': 'blue' })
  const png = readFileSync(new URL('../../fixtures/media/picture.png', import.meta.url))
  const image = submitOf({ work: 'image', prompt: 'a loaf', n: 2, size: '1024x1024' })

  t.test('a generation is JSON, and never says in which form the answer shall come', async (t) => {
    const extra = { quality: 'high', response_format: 'url', stream: true, partial_images: 2, model: 'mine' }
    const job = { work: 'image', prompt: 'a loaf', n: 2, size: '1024x1024', extra }
    const request = openaiImages.submit(channel, submitOf(job, 'gpt-image-1'))
    t.equal(request.method, 'POST')
    t.equal(request.url, 'https://up.example/v1/images/generations')
    t.equal(headerOf(request, 'authorization'), 'Bearer k-1')
    t.equal(headerOf(request, 'x-team'), 'blue')
    t.equal(headerOf(request, 'content-type'), undefined)
    t.strictSame(jsonOf(request), {
      quality: 'high',
      model: 'gpt-image-1',
      prompt: 'a loaf',
      n: 2,
      size: '1024x1024',
    })
  })

  t.test('without a size the upstream has its own', async (t) => {
    const request = openaiImages.submit(channel, submitOf({ work: 'image', prompt: 'a loaf', n: 1 }))
    t.strictSame(jsonOf(request), { model: 'model-1', prompt: 'a loaf', n: 1 })
  })

  t.test('an edit is a form with the images and the mask', async (t) => {
    const job = {
      work: 'image_edit',
      prompt: 'as a woodcut',
      n: 1,
      images: [stored('a.png', 'image/png'), stored('b.png', 'image/png')],
      mask: stored('m.png', 'image/png'),
      extra: { output_compression: 80, background: 'opaque' },
    }
    const request = openaiImages.submit(channel, submitOf(job))
    t.equal(request.url, 'https://up.example/v1/images/edits')
    t.strictSame(formOf(request), [
      ['background', 'opaque'],
      ['output_compression', '80'],
      ['model', 'model-1'],
      ['prompt', 'as a woodcut'],
      ['n', '1'],
      ['image[]', 'inputs/a.png'],
      ['image[]', 'inputs/b.png'],
      ['mask', 'inputs/m.png'],
    ])
  })

  t.test('a generation from reference images is an edit; links are taken in first', async (t) => {
    const link = linked('https://example.com/a.png')
    const mask = linked('https://example.com/m.png')
    const kept = stored('b.png', 'image/png')
    const { job } = submitOf({ work: 'image', prompt: 'so', n: 1, images: [link, kept], mask })
    t.strictSame(openaiImages.takesIn?.(job), [link, mask])
    t.equal(openaiImages.inlines, false)
    const request = openaiImages.submit(
      channel,
      submitOf({ work: 'image', prompt: 'so', n: 1, images: [kept] }),
    )
    t.equal(request.url, 'https://up.example/v1/images/edits')
  })

  t.test('images come as bytes, whose kind and size are their own', async (t) => {
    const body = {
      created: 1763712000,
      data: [{ b64_json: png.toString('base64'), revised_prompt: 'a loaf of bread' }],
      size: '1024x1024',
      output_format: 'webp',
      usage: { total_tokens: 100 },
    }
    const outcome = producedIn(openaiImages.readSubmit(answerOf(200, body), image))
    t.strictSame(outcome.result.files, [
      fileWith({ role: 'image', media_type: 'image/png', width: 40, height: 24 }),
    ])
    t.strictSame(outcome.inline, [{ file: 0, bytes: png, mediaType: 'image/png' }])
  })

  t.test('images come as links or data URIs; one without either is not delivered', async (t) => {
    const body = {
      data: [
        { url: 'https://cdn.example/1.png' },
        { url: 'ftp://cdn.example/2.png' },
        { b64_json: '<html>no</html>' },
        { b64_json: '' },
        { revised_prompt: 'nothing' },
        { url: `data:image/png;base64,${png.toString('base64')}` },
      ],
      size: '1536x1024',
    }
    const outcome = producedIn(openaiImages.readSubmit(answerOf(200, body), image))
    t.strictSame(outcome.result.files, [
      fileWith({ role: 'image', upstream_url: 'https://cdn.example/1.png', width: 1536, height: 1024 }),
      fileWith({ role: 'image', media_type: 'image/png', width: 40, height: 24 }),
    ])
    t.strictSame(
      outcome.inline.map(({ file }) => file),
      [1],
    )
  })

  t.test('bytes of no known kind get no name that a browser would run', async (t) => {
    const unknown = Buffer.from([0, 1, 2, 3]).toString('base64')
    for (const [data, output_format] of [
      [{ url: `data:image/svg+xml;base64,${unknown}` }, undefined],
      [{ url: `data:text/html;charset=utf-8;base64,${unknown}` }, undefined],
      [{ b64_json: unknown }, 'svg+xml'],
    ] as const) {
      const { inline } = producedIn(
        openaiImages.readSubmit(answerOf(200, { data: [data], output_format }), image),
      )
      t.match(inline, [{ mediaType: 'image/png' }])
    }
  })

  t.test('refusals keep status and words', async (t) => {
    const policy = {
      error: { message: 'Your request was rejected.', code: 'moderation_blocked', type: 'image' },
    }
    const unpaid = {
      error: { message: 'Billing hard limit has been reached.', code: 'billing_hard_limit_reached' },
    }
    const refusals = [
      [answerOf(400, policy), 400, 'Your request was rejected.'],
      [answerOf(429, { error: { message: 'Pay.', code: 'insufficient_quota' } }), 402, 'Pay.'],
      [answerOf(400, unpaid), 402, 'Billing hard limit has been reached.'],
      [answerOf(429, { error: { message: 'Slow down.' } }), 429, 'Slow down.'],
      [answerOf(503, '<html>busy</html>'), 503, 'The upstream answered with status 503.'],
      [answerOf(307, ''), 502, 'The upstream answered with status 307.'],
      [answerOf(200, policy), 400, 'Your request was rejected.'],
      [answerOf(200, { error: 'internal' }), 502, 'internal'],
      [answerOf(200, { data: [{ b64_json: png.toString('base64') }], error: 'internal' }), 502, 'internal'],
    ] as const
    for (const [answer, status, message] of refusals) {
      t.strictSame(openaiImages.readSubmit(answer, image), { type: 'refused', status, message })
    }
  })

  t.test('a 200 that cannot be read is neither success nor refusal', async (t) => {
    const text = Buffer.from('<svg onload="x()">').toString('base64')
    const failed = '{"base_resp":{"status_code":1026,"status_msg":"no"},"data":null}'
    const texts = [`{"data":[{"b64_json":"${text}"}]}`, '{"data":[{"b64_json":"iVBORw0KGgo="}', failed]
    for (const body of ['', '<html>', '[]', 'null', '{}', '{"data":[]}', '{"data":{"url":"x"}}', ...texts]) {
      t.equal(openaiImages.readSubmit(answerOf(200, body), image).type, 'unknown', body)
    }
  })
})

t.test('speech adapters', async (t) => {
  const elevenlabs = findMediaAdapter('elevenlabs')!
  const voicesPlace = elevenlabs.presets?.voice
  if (voicesPlace?.type !== 'asked') throw new Error('no list of voices')
  const elevenlabsVoices = voicesPlace.source

  const openai = channelOf('openai-speech', 'https://up.example/v1')
  const eleven = channelOf('elevenlabs', 'https://eleven.example')
  const mp3 = readFileSync(new URL('../../fixtures/media/plain.mp3', import.meta.url))
  const speech = { work: 'speech', input: 'Good morning.', speed: 1 }
  const voice = { work: 'voice', name: 'Ada', audio: stored('ada.mp3', 'audio/mpeg') }

  t.test('OpenAI is always told a voice, and a speed only if it is another than usual', async (t) => {
    const request = openaiSpeech.submit(openai, submitOf(speech, 'tts-1'))
    t.equal(request.url, 'https://up.example/v1/audio/speech')
    t.equal(headerOf(request, 'authorization'), 'Bearer k-1')
    t.strictSame(jsonOf(request), {
      model: 'tts-1',
      input: 'Good morning.',
      voice: 'alloy',
      response_format: 'mp3',
    })
    t.match(jsonOf(openaiSpeech.submit(openai, submitOf({ ...speech, voice: 'nova', speed: 1.25 }))), {
      voice: 'nova',
      speed: 1.25,
    })
  })

  t.test('ElevenLabs has the voice in the path, which cannot lead elsewhere', async (t) => {
    const request = elevenlabs.submit(eleven, submitOf(speech, 'eleven_v3'))
    const { pathname, search } = new URL(request.url)
    t.match(pathname, /^\/v1\/text-to-speech\/[A-Za-z0-9]{20}$/)
    t.equal(search, '?output_format=mp3_44100_128')
    t.equal(headerOf(request, 'xi-api-key'), 'k-1')
    t.equal(headerOf(request, 'authorization'), undefined)
    t.strictSame(jsonOf(request), { text: 'Good morning.', model_id: 'eleven_v3' })
    const pathOf = (voice: string) =>
      new URL(elevenlabs.submit(eleven, submitOf({ ...speech, voice })).url).pathname
    t.equal(pathOf('v-1'), '/v1/text-to-speech/v-1')
    t.equal(pathOf('../voices/add?'), '/v1/text-to-speech/..%2Fvoices%2Fadd%3F')
    t.equal(pathOf('..'), '/v1/text-to-speech/-')
    const slow = elevenlabs.submit(eleven, submitOf({ ...speech, speed: 0.8 }))
    t.match(jsonOf(slow), { voice_settings: { speed: 0.8 } })
  })

  for (const adapter of [openaiSpeech, elevenlabs]) {
    const read = (status: number, body: unknown, type?: string) =>
      adapter.readSubmit(answerOf(status, body, type ? { 'content-type': type } : {}), submitOf(speech))

    t.test(`sound from ${adapter === elevenlabs ? 'ElevenLabs' : 'OpenAI'} has its own length`, async (t) => {
      for (const type of ['audio/mpeg', 'application/octet-stream', undefined]) {
        const outcome = producedIn(read(200, mp3, type))
        const { seconds, files } = outcome.result
        t.ok(seconds !== null && seconds >= 1.5 && seconds < 1.6, String(seconds))
        t.strictSame(files, [fileWith({ role: 'audio', media_type: 'audio/mpeg', seconds })])
        t.strictSame(outcome.inline, [{ file: 0, bytes: mp3, mediaType: 'audio/mpeg' }])
      }
      const opus = read(200, 'OggS', 'Audio/Ogg; codecs=opus')
      t.match(opus, { result: { seconds: null }, inline: [{ mediaType: 'audio/ogg' }] })
      // Under no other name, whatever it is called: it is handed out by the gateway.
      t.match(read(200, mp3, 'text/html'), { inline: [{ mediaType: 'audio/mpeg' }] })
    })

    t.test('text in place of sound is no success', async (t) => {
      const json = 'application/json; charset=utf-8'
      t.strictSame(read(200, { error: { message: 'no credit' } }, json), {
        type: 'refused',
        status: 502,
        message: 'no credit',
      })
      t.equal(read(200, '', 'audio/mpeg').type, 'unknown')
      t.equal(read(200, '<html>', 'text/html').type, 'unknown')
      t.equal(read(200, '{"cut', json).type, 'unknown')
      t.equal(read(200, '<svg>', 'image/svg+xml').type, 'unknown')
      for (const type of ['audio/mpeg', 'application/octet-stream', undefined]) {
        t.equal(read(200, '<html>', type).type, 'unknown')
        t.equal(read(200, '{"cut', type).type, 'unknown')
        for (const body of [{}, { error: { message: 'no credit' } }])
          t.match(read(200, JSON.stringify(body), type), { type: 'refused', status: 502 })
      }
    })

    t.test('refusals keep status and words', async (t) => {
      const bodies = [
        { detail: { status: 'voice_not_found', message: 'No such voice.' } },
        { detail: [{ loc: ['body', 'text'], msg: 'No such voice.', type: 'missing' }] },
        { detail: 'No such voice.' },
        { error: { message: 'No such voice.', type: 'invalid_request_error', code: null } },
      ]
      for (const body of bodies) {
        t.strictSame(read(422, body), { type: 'refused', status: 422, message: 'No such voice.' })
      }
    })
  }

  t.test('a plan of the operator’s that is used up is no wrong key', async (t) => {
    const read = (status: string) =>
      elevenlabs.readSubmit(answerOf(401, { detail: { status, message: 'No.' } }), submitOf(speech))
    t.strictSame(read('quota_exceeded'), { type: 'refused', status: 402, message: 'No.' })
    t.strictSame(read('invalid_api_key'), { type: 'refused', status: 401, message: 'No.' })
    const quota = { error: { code: 'insufficient_quota', message: 'Pay.' } }
    t.match(openaiSpeech.readSubmit(answerOf(429, quota), submitOf(speech)), { type: 'refused', status: 402 })
  })

  t.test('a voice is learned from bytes', async (t) => {
    const link = linked('https://example.com/ada.mp3')
    const asked = submitOf({ ...voice, audio: link })
    t.strictSame(elevenlabs.takesIn?.(asked.job), [link])
    t.strictSame(elevenlabs.takesIn?.(submitOf(voice).job), [])
    const request = elevenlabs.submit(eleven, submitOf(voice))
    t.equal(request.url, 'https://eleven.example/v1/voices/add')
    t.equal(headerOf(request, 'xi-api-key'), 'k-1')
    t.strictSame(formOf(request), [
      ['name', 'Ada'],
      ['files', 'inputs/ada.mp3'],
    ])
  })

  t.test('a voice is made, refused, or nobody knows', async (t) => {
    const read = (body: unknown, status = 200) =>
      elevenlabs.readSubmit(answerOf(status, body), submitOf(voice))
    t.match(read({ voice_id: 'v-9', requires_verification: false }), {
      type: 'produced',
      result: { made_id: 'v-9', files: { length: 0 } },
      inline: { length: 0 },
    })
    t.match(read({ voice_id: 'v-9', requires_verification: true }), { type: 'refused', status: 400 })
    t.match(read({ detail: { status: 'voice_limit_reached', message: 'Too many voices.' } }, 400), {
      type: 'refused',
      status: 400,
      message: 'Too many voices.',
    })
    t.match(read({ detail: { message: 'No.' } }), { type: 'refused', status: 502, message: 'No.' })
    for (const body of ['', '[]', '{}', '{"voice_id":""}']) t.equal(read(body).type, 'unknown', body)
  })

  t.test('only voices that the vendor made itself are for everybody', async (t) => {
    t.equal(elevenlabsVoices.request(eleven).url, 'https://eleven.example/v1/voices')
    const voices = [
      { voice_id: 'v-1', name: 'George', category: 'premade' },
      { voice_id: 'v-2', name: 'A customer', category: 'cloned' },
      { voice_id: 'v-3', category: 'premade' },
      { name: 'nobody', category: 'premade' },
      7,
    ]
    t.strictSame(elevenlabsVoices.read(answerOf(200, { voices })), [
      { id: 'v-1', name: 'George' },
      { id: 'v-3', name: 'v-3' },
    ])
    t.equal(elevenlabsVoices.read(answerOf(500, {})), null)
    t.equal(elevenlabsVoices.read(answerOf(200, 'x')), null)
  })
})

t.test('suno adapter', async (t) => {
  const suno = findMediaAdapter('suno')!

  const channel = channelOf('suno', 'https://suno.example')
  const follow = followOf(suno)
  const sung = { work: 'music', lyrics: '[Verse]\nBread, bread\nrise', instrumental: false }

  const bodyOf = (job: object) => jsonOf(suno.submit(channel, submitOf({ work: 'music', ...job }, 'V5')))
  const always = { model: 'V5', callBackUrl: 'https://suno.example/api/v1/generate/callback' }

  t.test('with lyrics they are sung, in custom mode, under a title and a style', async (t) => {
    t.strictSame(
      bodyOf({
        lyrics: '[Verse]\nBread',
        prompt: 'ignored',
        title: 'Loaf',
        tags: 'folk',
        negative_tags: 'drums',
        instrumental: false,
      }),
      {
        customMode: true,
        style: 'folk',
        title: 'Loaf',
        prompt: '[Verse]\nBread',
        instrumental: false,
        negativeTags: 'drums',
        ...always,
      },
    )
    t.match(bodyOf(sung), { title: 'Bread, bread', style: 'pop' })
    t.match(bodyOf({ lyrics: `[Verse]\n${'la'.repeat(90)}`, instrumental: false }), { title: /^(la){40}$/ })
    const title = `a${'🍞'.repeat(50)}`
    t.match(bodyOf({ ...sung, title }), { title: /^a🍞{39}$/u }, 'no half of a character')
  })

  t.test('without lyrics a prompt inspires', async (t) => {
    t.strictSame(bodyOf({ prompt: 'a song of bread', tags: 'folk', instrumental: false }), {
      customMode: false,
      prompt: 'a song of bread. folk',
      instrumental: false,
      ...always,
    })
  })

  t.test('an instrumental has no lyrics, whatever was sent', async (t) => {
    t.strictSame(bodyOf({ prompt: 'calm piano', lyrics: 'la', instrumental: true }), {
      customMode: false,
      prompt: 'calm piano',
      instrumental: true,
      ...always,
    })
    t.strictSame(bodyOf({ instrumental: true }), {
      customMode: true,
      style: 'pop',
      title: 'Untitled',
      instrumental: true,
      ...always,
    })
  })

  t.test('an error in a 200 is a refusal with the status that it means', async (t) => {
    const read = (status: number, body: unknown) => suno.readSubmit(answerOf(status, body), submitOf(sung))
    t.strictSame(read(200, { code: 200, msg: 'success', data: { taskId: '5c79be8e' } }), {
      type: 'accepted',
      upstreamId: '5c79be8e',
      isRunning: false,
      upstreamState: 'PENDING',
    })
    for (const [code, status] of [
      [400, 400],
      [401, 401],
      [402, 402],
      [405, 429],
      [413, 400],
      [422, 422],
      [429, 429],
      [430, 429],
      [455, 503],
      [500, 500],
      [1, 500],
    ]) {
      const body = { code, msg: 'Not so.', data: null }
      t.strictSame(read(200, body), { type: 'refused', status, message: 'Not so.' })
    }
    t.strictSame(read(401, { code: 401, msg: 'No access.' }), {
      type: 'refused',
      status: 401,
      message: 'No access.',
    })
    for (const [status, body] of [
      [200, ''],
      [200, { code: 200, data: null }],
      [200, { code: 200, data: {} }],
      [502, { code: 500, msg: 'x' }],
      [500, '<html>'],
    ] as const) {
      t.equal(read(status, body).type, 'unknown', JSON.stringify(body))
    }
  })

  const song = (id: string, facts: object) => ({
    id,
    title: 'Bread',
    prompt: 'la',
    duration: 121.3,
    ...facts,
  })
  const first = song('c-1', { audioUrl: 'https://cdn.example/1.mp3', imageUrl: 'https://cdn.example/1.jpeg' })
  const second = song('c-2', { audioUrl: 'https://cdn.example/2.mp3', imageUrl: '', duration: '98.5' })
  const silent = song('c-2', { audioUrl: '', streamAudioUrl: 'https://cdn.example/2', imageUrl: null })

  const readPoll = (status: string, sunoData: unknown, rest: object = {}, job: object = sung) =>
    follow.readPoll(
      answerOf(200, {
        code: 200,
        msg: 'success',
        data: { taskId: 't-1', status, response: { taskId: 't-1', sunoData }, errorMessage: null, ...rest },
      }),
      pollOf(job),
    )

  t.test('two songs have their sounds, covers and facts', async (t) => {
    const outcome = producedIn(readPoll('SUCCESS', [first, second]))
    t.equal(outcome.upstreamState, 'SUCCESS')
    t.strictSame(outcome.result.tracks, [
      { clip_id: 'c-1', title: 'Bread', lyrics: 'la', seconds: 121.3 },
      { clip_id: 'c-2', title: 'Bread', lyrics: 'la', seconds: 98.5 },
    ])
    t.strictSame(outcome.result.files, [
      fileWith({ role: 'audio', upstream_url: 'https://cdn.example/1.mp3', seconds: 121.3, track: 0 }),
      fileWith({ role: 'cover', upstream_url: 'https://cdn.example/1.jpeg', track: 0 }),
      fileWith({ role: 'audio', upstream_url: 'https://cdn.example/2.mp3', seconds: 98.5, track: 1 }),
    ])
  })

  t.test('one song of two is a success, in whatever place it stands', async (t) => {
    for (const status of ['SUCCESS', 'GENERATE_AUDIO_FAILED']) {
      const outcome = readPoll(status, [silent, first], { errorMessage: 'one failed' })
      t.match(outcome, {
        type: 'produced',
        upstreamState: status,
        result: { tracks: [{ clip_id: 'c-1' }], files: [{ track: 0 }, { track: 0 }] },
      })
      t.equal(outcome.type === 'produced' && outcome.result.tracks.length, 1)
    }
  })

  t.test('without a song the task failed', async (t) => {
    for (const status of ['SUCCESS', 'GENERATE_AUDIO_FAILED']) {
      for (const songs of [[silent, silent], [], null, 'x']) {
        t.match(readPoll(status, songs), { type: 'failed', code: 'generation_failed', upstreamState: status })
      }
    }
    const words = { errorMessage: 'The lyrics hold a forbidden word.' }
    t.strictSame(readPoll('SENSITIVE_WORD_ERROR', null, words), {
      type: 'failed',
      upstreamState: 'SENSITIVE_WORD_ERROR',
      code: 'content_policy',
      message: 'The lyrics hold a forbidden word.',
    })
    t.match(readPoll('CREATE_TASK_FAILED', null), { type: 'failed', code: 'generation_failed' })
  })

  t.test('the first song alone is no end', async (t) => {
    t.strictSame(readPoll('FIRST_SUCCESS', [first, silent]), {
      type: 'running',
      upstreamState: 'FIRST_SUCCESS',
    })
    t.strictSame(readPoll('TEXT_SUCCESS', []), { type: 'running', upstreamState: 'TEXT_SUCCESS' })
    t.strictSame(readPoll('PENDING', null), { type: 'queued', upstreamState: 'PENDING' })
    t.strictSame(readPoll('REMIXING', null), { type: 'unmapped', upstreamState: 'REMIXING' })
  })

  t.test('a callback that nobody took says nothing of the songs', async (t) => {
    t.equal(readPoll('CALLBACK_EXCEPTION', []).type, 'running')
    t.equal(readPoll('CALLBACK_EXCEPTION', [first, silent]).type, 'running')
    t.equal(readPoll('CALLBACK_EXCEPTION', [first, second]).type, 'produced')
  })

  t.test('an instrumental has no lyrics though the field is filled', async (t) => {
    const outcome = readPoll('SUCCESS', [first], {}, { work: 'music', prompt: 'calm', instrumental: true })
    t.match(outcome, { result: { tracks: [{ lyrics: null }] } })
  })

  t.test('a poll that failed is no failed task', async (t) => {
    const read = (status: number, body: unknown) => follow.readPoll(answerOf(status, body), pollOf(sung))
    for (const [status, body] of [
      [200, { code: 404, msg: 'no task', data: null }],
      [200, { code: 500, msg: 'x', data: { status: 'SUCCESS' } }],
      [200, { code: 200, data: {} }],
      [200, '<html>'],
      [500, ''],
    ] as const) {
      t.equal(read(status, body).type, 'error', JSON.stringify(body))
    }
    t.equal(
      follow.poll(channel, pollOf(sung, 'a&b=c')).url,
      'https://suno.example/api/v1/generate/record-info?taskId=a%26b%3Dc',
    )
  })
})

t.test('video provider adapters', async (t) => {
  // What Kling, Veo, MiniMax, DashScope and Runway are asked for, and what their answers mean.
  const kling = findMediaAdapter('kling')!
  const runway = findMediaAdapter('runway')!

  const words = { type: 'text', text: 'the dough rises' }
  const first = { type: 'image', file: linked('https://example.com/a.png'), role: 'first_frame' }
  const last = { type: 'image', file: stored('z.png', 'image/png'), role: 'last_frame' }
  const film = { work: 'video', content: [words], duration: 5, resolution: '1080p', ratio: '9:16' }
  const framed = { ...film, content: [words, first, last] }

  const atKling = channelOf('kling', 'https://kling.example/v1')
  const atVeo = channelOf('veo', 'https://gemini.example')
  const atMinimax = channelOf('minimax-video', 'https://minimax.example/v1')
  const atDashscope = channelOf('dashscope', 'https://dashscope.example/api/v1')
  const atRunway = channelOf('runway', 'https://runway.example/v1')

  t.test('Kling: words and frames have their own paths, and every job our id', async (t) => {
    const worded = kling.submit(atKling, submitOf({ ...film, generate_audio: true }, 'kling-v2-6'))
    t.equal(worded.url, 'https://kling.example/v1/videos/text2video')
    t.strictSame(jsonOf(worded), {
      model_name: 'kling-v2-6',
      prompt: 'the dough rises',
      mode: 'pro',
      duration: '5',
      aspect_ratio: '9:16',
      sound: 'on',
      external_task_id: REFERENCE,
    })
    const request = kling.submit(atKling, submitOf(framed))
    t.equal(request.url, 'https://kling.example/v1/videos/image2video')
    t.match(jsonOf(request), { image: 'https://example.com/a.png', image_tail: 'inputs/z.png' })
    const picture = submitOf({ work: 'image', prompt: 'a loaf', n: 2, size: '2048x1152' })
    t.match(jsonOf(kling.submit(atKling, picture)), { n: 2, aspect_ratio: '16:9', resolution: '2k' })
    const { find, poll } = followOf(kling)
    t.equal(poll(atKling, pollOf(framed, 'k-1')).url, 'https://kling.example/v1/videos/image2video/k-1')
    t.equal(
      find?.request(atKling, REFERENCE, jobOf(film)).url,
      `https://kling.example/v1/videos/text2video/${REFERENCE}`,
    )
  })

  t.test('Kling: a task that is not found may still come', async (t) => {
    const { find } = followOf(kling)
    const read = (status: number, body: unknown) => find?.read(answerOf(status, body))
    t.match(read(404, { code: 1203, message: 'resource does not exist' }), { type: 'unknown' })
    t.match(read(502, '<html>'), { type: 'unknown' })
    t.match(read(200, { code: 0, data: { task_id: 'k-1', task_status: 'processing' } }), {
      type: 'accepted',
      upstreamId: 'k-1',
      isRunning: true,
    })
  })

  t.test('Kling: codes of refusals', async (t) => {
    const read = (status: number, code: number) =>
      kling.readSubmit(answerOf(status, { code, message: 'No.', request_id: 'r' }), submitOf(film))
    for (const [http, code, status] of [
      [200, 1002, 401],
      [200, 1102, 402],
      [200, 1201, 400],
      [200, 1301, 400],
      [200, 1302, 429],
      [200, 5000, 500],
      [200, 1304, 402],
      [400, 1301, 400],
      [429, 1303, 429],
      // Its account or its resource pack is used up, or its address is not on a list.
      [429, 1101, 402],
      [429, 1102, 402],
      [429, 1304, 402],
    ] as const)
      t.match(read(http, code), { type: 'refused', status, message: 'No.' }, `${http} ${code}`)
    t.equal(read(504, 5002).type, 'unknown')
  })

  t.test('Veo: a video to continue has other names at the Gemini API than at Vertex AI', async (t) => {
    const video = { type: 'video', file: stored('a.mp4', 'video/mp4'), role: null }
    const sentTo = (channel: typeof atVeo) =>
      jsonOf(veo.submit(channel, submitOf({ ...film, content: [words, video] }, 'veo-3.1')))
    t.match(sentTo(atVeo), {
      instances: [{ video: { encodedVideo: 'inputs/a.mp4', encoding: 'video/mp4' } }],
    })
    t.match(sentTo({ ...atVeo, provider: 'vertex' }), {
      instances: [{ video: { bytesBase64Encoded: 'inputs/a.mp4', mimeType: 'video/mp4' } }],
    })
  })

  t.test('an account of the operator’s that is used up is no fault of the request', async (t) => {
    const readDashscope = (body: object) => dashscope.readSubmit(answerOf(400, body), submitOf(film))
    const readRunway = (error: string) => runway.readSubmit(answerOf(400, { error }), submitOf(film))
    const overdue = 'Access denied, please make sure your account is in good standing.'
    t.match(readDashscope({ code: 'Arrearage', message: overdue }), { type: 'refused', status: 402 })
    t.match(readDashscope({ code: 'InvalidParameter', message: 'No.' }), { type: 'refused', status: 400 })
    const empty = 'You do not have enough credits to run this task.'
    t.match(readRunway(empty), { type: 'refused', status: 402, message: empty })
    t.match(readRunway('Validation of body failed'), { type: 'refused', status: 400 })
  })

  t.test('Veo: frames are bytes, links to them are fetched before', async (t) => {
    t.strictSame(veo.takesIn?.(jobOf(framed)), [linked('https://example.com/a.png')])
    const taken = { ...first, file: stored('a.png', 'image/png') }
    const submit = submitOf({ ...framed, content: [words, taken, last] }, 'veo-3.1')
    const request = veo.submit(atVeo, submit)
    t.equal(request.url, 'https://gemini.example/v1beta/models/veo-3.1:predictLongRunning')
    t.equal(headerOf(request, 'x-goog-api-key'), 'k-1')
    t.strictSame(jsonOf(request), {
      instances: [
        {
          prompt: 'the dough rises',
          image: { bytesBase64Encoded: 'inputs/a.png', mimeType: 'image/png' },
          lastFrame: { bytesBase64Encoded: 'inputs/z.png', mimeType: 'image/png' },
        },
      ],
      parameters: { aspectRatio: '9:16', durationSeconds: 5, resolution: '1080p' },
    })
    const { poll, readPoll } = followOf(veo)
    t.equal(
      poll(atVeo, pollOf(film, 'models/veo-3.1/operations/../x')).url,
      'https://gemini.example/v1beta/models/veo-3.1/operations/-/x',
    )
    const filtered = { raiMediaFilteredCount: 1, raiMediaFilteredReasons: ['A celebrity.'] }
    const read = (body: object) => readPoll(answerOf(200, { name: 'o', done: true, ...body }), pollOf(film))
    t.match(read({ response: { generateVideoResponse: filtered } }), {
      type: 'failed',
      code: 'content_policy',
      message: 'A celebrity.',
    })
    for (const [code, message, ours] of [
      [3, 'Bad ratio.', 'invalid_input'],
      [8, 'Quota.', 'quota_exhausted'],
      [13, 'Internal.', 'generation_failed'],
      [3, 'The prompt violates the policy.', 'content_policy'],
    ] as const)
      t.match(read({ error: { code, message } }), { type: 'failed', code: ours, message })
    t.match(read({ response: {} }), { type: 'failed', code: 'generation_failed' })
  })

  t.test('MiniMax: a failure in a 200 is a refusal, unless its time was over', async (t) => {
    t.strictSame(jsonOf(minimaxVideo.submit(atMinimax, submitOf(framed, 'MiniMax-Hailuo-02'))), {
      model: 'MiniMax-Hailuo-02',
      prompt: 'the dough rises',
      first_frame_image: 'https://example.com/a.png',
      last_frame_image: 'data:image/png;base64,inputs/z.png',
      duration: 5,
      resolution: '1080P',
    })
    const read = (status_code: number) =>
      minimaxVideo.readSubmit(
        answerOf(200, { task_id: '', base_resp: { status_code, status_msg: 'No.' } }),
        submitOf(film),
      )
    for (const [code, status] of [
      [1002, 429],
      [1004, 401],
      [1008, 402],
      [1026, 400],
      [2013, 400],
      [2042, 400],
      [20132, 400],
      [1000, 500],
    ] as const)
      t.match(read(code), { type: 'refused', status, message: 'No.' }, String(code))
    t.equal(read(1001).type, 'unknown')
    t.equal(read(0).type, 'unknown', 'no task is named')
  })

  t.test('MiniMax: the file of a finished task is looked up, with the size that the task had', async (t) => {
    const { readPoll } = followOf(minimaxVideo)
    const done = { status: 'Success', file_id: '7', video_width: 1366, video_height: 768 }
    const outcome = readPoll(answerOf(200, done), pollOf(film))
    if (outcome.type !== 'finished') throw new Error(outcome.type)
    t.equal(outcome.result.request(atMinimax).url, 'https://minimax.example/v1/files/retrieve?file_id=7')
    const download_url = 'https://cdn.example/7.mp4'
    t.match(outcome.result.read(answerOf(200, { file: { download_url } })), {
      type: 'produced',
      result: { files: [{ upstream_url: download_url, width: 1366, height: 768 }] },
    })
    const limited = { base_resp: { status_code: 1002, status_msg: 'rate limit' } }
    t.match(outcome.result.read(answerOf(200, limited)), { type: 'error', reason: 'rate limit' })
    t.match(readPoll(answerOf(200, { status: '', ...limited }), pollOf(film)), { type: 'error' })
  })

  t.test('MiniMax: images come with the answer, without those that were filtered', async (t) => {
    const provider = await startProvider(t, minimaxDialect)
    const channel = { ...channelOf('minimax-images', `${provider.url}/v1`), api_key: KEY }
    const drawn = async (prompt: string) => {
      const submit = submitOf({ work: 'image', prompt, n: 3, size: '1920x1080' }, 'image-01')
      return minimaxImages.readSubmit(await sent(minimaxImages.submit(channel, submit)), submit)
    }
    t.equal(producedIn(await drawn('good loaves')).result.files.length, 2)
    t.match(provider.calls[0]?.body, {
      model: 'image-01',
      n: 3,
      aspect_ratio: '16:9',
      response_format: 'url',
    })
    t.match(await drawn('improper'), { type: 'refused', status: 400, message: 'input new_sensitive' })
    t.match(await drawn('busy'), { type: 'refused', status: 429 })
    t.match(await drawn('broken'), { type: 'unknown' })
  })

  t.test('MiniMax: sound comes in the answer', async (t) => {
    const provider = await startProvider(t, minimaxDialect)
    const channel = { ...channelOf('minimax-speech', `${provider.url}/v1`), api_key: KEY }
    const spoken = async (input: string) => {
      const submit = submitOf({ work: 'speech', input, speed: 1.25 }, 'speech-2.6-hd')
      return minimaxSpeech.readSubmit(await sent(minimaxSpeech.submit(channel, submit)), submit)
    }
    const { result, inline } = producedIn(await spoken('good morning'))
    t.equal(result.seconds, 1.5)
    t.equal(result.billed_characters, 12)
    t.equal(producedIn(await spoken('日本')).result.billed_characters, 4, 'a Chinese character counts as two')
    t.equal(inline[0]?.mediaType, 'audio/mpeg')
    t.equal(inline[0]?.bytes.length, 417)
    t.match(provider.calls[0]?.body, {
      voice_setting: { voice_id: 'English_expressive_narrator', speed: 1.25 },
    })
    t.match(await spoken('improper'), { type: 'refused', status: 400 })
    const none = { data: { audio: 'no' }, base_resp: { status_code: 0 } }
    const submit = submitOf({ work: 'speech', input: 'x', speed: 1 })
    t.match(minimaxSpeech.readSubmit(answerOf(200, none), submit), { type: 'unknown' })
  })

  t.test('DashScope: each generation of models has its service and its fields', async (t) => {
    const orderOf = (job: object, model: string) => {
      const request = dashscope.submit(atDashscope, submitOf(job, model))
      t.equal(headerOf(request, 'x-dashscope-async'), 'enable')
      return [request.url.replace('https://dashscope.example/api/v1/services/aigc/', ''), jsonOf(request)]
    }
    t.strictSame(orderOf(film, 'wan2.5-t2v-preview'), [
      'video-generation/video-synthesis',
      {
        model: 'wan2.5-t2v-preview',
        input: { prompt: 'the dough rises' },
        parameters: { size: '1080*1920', duration: 5 },
      },
    ])
    t.match(orderOf(film, 'wan2.7-t2v')[1], { parameters: { resolution: '1080P', ratio: '9:16' } })
    t.match(orderOf({ ...film, content: [words, first] }, 'wan2.5-i2v-preview')[1], {
      input: { img_url: 'https://example.com/a.png' },
      parameters: { resolution: '1080P' },
    })
    t.match(orderOf(framed, 'wan2.2-kf2v-flash'), [
      'image2video/video-synthesis',
      { input: { first_frame_url: 'https://example.com/a.png', last_frame_url: /^data:/ } },
    ])
    const picture = {
      work: 'image',
      prompt: 'a loaf',
      n: 2,
      size: '1280x720',
      extra: { negative_prompt: 'rye' },
    }
    t.strictSame(orderOf(picture, 'qwen-image'), [
      'text2image/image-synthesis',
      {
        model: 'qwen-image',
        input: { prompt: 'a loaf', negative_prompt: 'rye' },
        parameters: { size: '1280*720', n: 2 },
      },
    ])
    t.strictSame(orderOf(picture, 'wan2.6-t2i'), [
      'image-generation/generation',
      {
        model: 'wan2.6-t2i',
        input: { messages: [{ role: 'user', content: [{ text: 'a loaf' }] }] },
        parameters: { size: '1280*720', n: 2, negative_prompt: 'rye' },
      },
    ])
    const edit = {
      work: 'image_edit',
      prompt: 'browner',
      n: 1,
      images: [linked('https://example.com/a.png')],
    }
    t.match(orderOf(edit, 'wan2.5-i2i-preview'), [
      'image2image/image-synthesis',
      { input: { images: ['https://example.com/a.png'] } },
    ])
  })

  t.test('DashScope: length, resolution and length of the input are those that it reports', async (t) => {
    const read = (output: object, usage: object = {}) =>
      followOf(dashscope).readPoll(answerOf(200, { output, usage }), pollOf(film))
    const done = { task_status: 'SUCCEEDED', video_url: 'https://oss.example/1.mp4' }
    t.match(read(done, { output_video_duration: 4, duration: 9, input_video_duration: 5, SR: 720 }), {
      type: 'produced',
      result: { seconds: 4, input_seconds: 5, variant: '720p' },
    })
    t.match(read(done, { video_duration: 5 }), { result: { seconds: 5, variant: null } })
    for (const [code, ours] of [
      ['DataInspectionFailed', 'content_policy'],
      ['InvalidParameter.Size', 'invalid_input'],
      ['InvalidURL.ConnectionRefused', 'source_unreachable'],
      ['Throttling.AllocationQuota', 'quota_exhausted'],
      ['InternalError.Timeout', 'timeout'],
      ['InternalError', 'generation_failed'],
    ] as const)
      t.match(read({ task_status: 'FAILED', code, message: 'No.' }), { code: ours, message: 'No.' }, code)
    t.match(read({ task_status: 'UNKNOWN' }), { type: 'error' })
    t.match(read({ task_status: 'CANCELED' }), { type: 'cancelled' })
  })

  t.test('Runway: what a video begins with chooses the path; ratios are in pixels', async (t) => {
    const orderOf = (job: object) => {
      const request = runway.submit(atRunway, submitOf(job, 'gen4_turbo'))
      t.equal(headerOf(request, 'x-runway-version'), '2024-11-06')
      return [request.url.replace('https://runway.example/v1', ''), jsonOf(request)]
    }
    t.strictSame(orderOf(film), [
      '/text_to_video',
      { model: 'gen4_turbo', promptText: 'the dough rises', ratio: '1080:1920', duration: 5 },
    ])
    t.match(orderOf({ ...framed, resolution: null }), [
      '/image_to_video',
      {
        ratio: '720:1280',
        promptImage: [
          { uri: 'https://example.com/a.png', position: 'first' },
          { uri: /^data:image/, position: 'last' },
        ],
      },
    ])
    const source = { type: 'video', file: linked('https://example.com/a.mp4'), role: null }
    t.match(orderOf({ ...film, ratio: '1584:672', content: [words, source] }), [
      '/video_to_video',
      { videoUri: 'https://example.com/a.mp4', ratio: '1584:672' },
    ])
    const picture = { work: 'image', prompt: 'a loaf', n: 1, size: '1000x1000', images: [first.file] }
    t.match(orderOf(picture), [
      '/text_to_image',
      { ratio: '1024:1024', referenceImages: [{ uri: 'https://example.com/a.png', tag: 'image1' }] },
    ])
  })

  t.test('Runway: the channel’s own version of the interface stands', async (t) => {
    const channel = channelOf('runway', 'https://runway.example/v1', { 'X-Runway-Version': '2025-01-01' })
    const { headers } = followOf(runway).poll(channel, pollOf(film))
    t.strictSame(
      headers.filter(([name]) => name === 'x-runway-version'),
      [['x-runway-version', '2025-01-01']],
    )
  })

  t.test('Runway: codes of failures', async (t) => {
    const read = (failureCode: string) =>
      followOf(runway).readPoll(
        answerOf(200, { id: 'r', status: 'FAILED', failure: 'No.', failureCode }),
        pollOf(film),
      )
    for (const [code, ours] of [
      ['SAFETY.INPUT.TEXT', 'content_policy'],
      ['INPUT_PREPROCESSING.SAFETY.TEXT', 'content_policy'],
      ['ASSET.INVALID', 'invalid_input'],
      ['INTERNAL.BAD_OUTPUT.CODE01', 'generation_failed'],
      ['INPUT_PREPROCESSING.INTERNAL', 'generation_failed'],
      ['THIRD_PARTY.UNAVAILABLE', 'generation_failed'],
    ] as const)
      t.match(read(code), { type: 'failed', code: ours, message: 'No.' }, code)
    t.match(followOf(runway).readPoll(answerOf(200, { id: 'r', status: 'THROTTLED' }), pollOf(film)), {
      type: 'queued',
    })
  })
})
