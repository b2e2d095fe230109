/** Adapters against stand-ins of providers: the simulated one, and aimock. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { LLMock } from '@copilotkit/aimock'
import t from 'tap'
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import { type MediaWork, taskResult } from '../../../schemas/media/job.ts'
import { startSimulator } from '../../../simulator/server.ts'
import type {
  MediaAdapter,
  MediaSubmit,
  PollOutcome,
  SubmitOutcome,
} from '../../../src/channels/media/adapter.ts'
import { findMediaAdapter, findPresets } from '../../../src/channels/media/registry.ts'
import {
  clipCategoriesRequest,
  clipTemplatesRequest,
  readClipCategories,
  readClipTemplates,
  taskPresets,
} from '../../../src/channels/media/task/catalog.ts'
import { task } from '../../../src/channels/media/task/task.ts'
import { arkVideo } from '../../../src/channels/providers/ark/video.ts'
import { openaiImages } from '../../../src/channels/providers/openai/images.ts'
import { openaiSpeech } from '../../../src/channels/providers/openai/speech.ts'
import {
  channelOf,
  followOf,
  jobOf,
  linked,
  pollOf,
  producedIn,
  resolveUrl,
  sent,
  stored,
  submitOf,
} from './support.ts'

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
