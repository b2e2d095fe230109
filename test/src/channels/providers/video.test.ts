/** The adapters of video providers. */
import t from 'tap'
import { findMediaAdapter } from '../../../../src/channels/media/registry.ts'
import { veo } from '../../../../src/channels/providers/gemini/veo.ts'
import { minimaxImages } from '../../../../src/channels/providers/minimax/images.ts'
import { minimaxSpeech } from '../../../../src/channels/providers/minimax/speech.ts'
import { minimaxVideo } from '../../../../src/channels/providers/minimax/video.ts'
import { dashscope } from '../../../../src/channels/providers/qwen/dashscope.ts'
import { minimaxDialect } from '../../../support/media-providers/minimax.ts'
import { KEY, startProvider } from '../../../support/media-providers/provider.ts'
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
  REFERENCE,
  sent,
  stored,
  submitOf,
} from '../support.ts'

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
