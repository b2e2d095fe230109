/** The adapters of hosts of many models: fal, Replicate and the like. */
import t from 'tap'
import { channelEntry } from '../../../../schemas/config/catalog.ts'
import { findMediaAdapter } from '../../../../src/channels/media/registry.ts'
import { answerOf, followOf, headerOf, jsonOf, linked, pollOf, stored, submitOf } from '../support.ts'

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
