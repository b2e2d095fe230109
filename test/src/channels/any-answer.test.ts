/** Adapters of media read whatever an upstream answers. */
import fc from 'fast-check'
import t from 'tap'
import { type MediaWork, taskResult } from '../../../schemas/media/job.ts'
import type { MediaAdapter, PollOutcome, SubmitOutcome } from '../../../src/channels/media/adapter.ts'
import { MEDIA_FAILURES } from '../../../src/channels/media/failure.ts'
import { findPresets, MEDIA_CHANNELS } from '../../../src/channels/media/registry.ts'
import { readClipCategories, readClipTemplates } from '../../../src/channels/media/task/catalog.ts'
import { answerOf, linked, pollOf, submitOf } from './support.ts'

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
