/** The adapter of upstreams that speak the task protocol, and its page. */
import t from 'tap'
import { type MediaWork, taskResult } from '../../../schemas/media/job.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import { MEDIA_FAILURES } from '../../../src/channels/media/failure.ts'
import {
  readClipCategories,
  readClipTemplates,
  taskPresets,
} from '../../../src/channels/media/task/catalog.ts'
import { task } from '../../../src/channels/media/task/task.ts'
import { readText } from '../../support/source-files.ts'
import {
  answerOf,
  channelOf,
  fileWith,
  followOf,
  headerOf,
  jsonOf,
  linked,
  pollOf,
  producedIn,
  REFERENCE,
  resolveUrl,
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
