/** The adapters of Ark. */
import t from 'tap'
import { arkImages } from '../../../../src/channels/providers/ark/images.ts'
import { arkVideo } from '../../../../src/channels/providers/ark/video.ts'
import {
  answerOf,
  channelOf,
  fileWith,
  followOf,
  headerOf,
  jsonOf,
  linked,
  pollOf,
  stored,
  submitOf,
} from '../support.ts'

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
