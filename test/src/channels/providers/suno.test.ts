/** The adapter of Suno. */
import t from 'tap'
import { findMediaAdapter } from '../../../../src/channels/media/registry.ts'
import { answerOf, channelOf, fileWith, followOf, jsonOf, pollOf, producedIn, submitOf } from '../support.ts'

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
