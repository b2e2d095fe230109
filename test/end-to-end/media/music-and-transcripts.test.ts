/** Songs and transcripts, from the request to the settled row, with the demonstration's models and prices. */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import type { LogJson } from '../../support/service.ts'
import { receivedIn, rowOf, upstreamCalls } from '../support.ts'
import {
  ABSENT,
  checkEntries,
  checkWallet,
  codeOf,
  demonstration,
  INVALID,
  KEY_REUSED,
  type MediaClient,
  messageOf,
  NO_CHANNEL,
  NO_CREDIT,
  NO_MODEL,
  NOT_ALLOWED,
  newClient,
  RFC_3339,
  typeBehind,
  ULID,
} from './support.ts'

const MUSIC = '/v1/music/generations'
const TRANSCRIPTS = '/v1/transcripts/extract'
const SONGS_PRICE = '19.41'
const TRANSCRIPT_PRICE = '20.22'
const DAY_MS = 24 * 60 * 60 * 1000

interface Track {
  readonly clip_id: string
  readonly audio_url: string
  readonly image_url: string
  readonly duration_sec: number
  readonly title: string
  readonly lyrics: string
}

const quick = (text: string, more = '') => `${text} [simulate: delay=300,queue=50${more}]`

/** The last instant at which a link of the service opens, epoch milliseconds. */
const expiryOf = (url: string) => Number(new URL(url).searchParams.get('expires')) * 1000

t.test('music and transcripts', async (t) => {
  const service = await borrowService(t, demonstration())
  const make = async (client: MediaClient, body: object): Promise<string> => {
    const answer = await client.post(MUSIC, { model: 'demo-music', ...body })
    if (answer.status !== 200) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`)
    return answer.body.id as string
  }
  /** The `input` that the upstream got for a request. */
  const sent = async (client: MediaClient, body: object) => {
    const answer = await client.post(MUSIC, { model: 'demo-music', ...body })
    t.equal(answer.status, 200)
    const call = (await upstreamCalls(service)).findLast(({ path }) => path === '/api/v1/generate')!
    return JSON.parse((await receivedIn(service, call)).body) as Record<string, unknown>
  }

  await t.test('two songs are held, made, stored, charged at the flat price and found again', async (t) => {
    const client = await newClient(service, '100')
    const body = { model: 'demo-music', prompt: quick('a slow waltz', ',seconds=2') }
    const intent = { 'idempotency-key': 'waltz-1' }
    const submitted = await client.post(MUSIC, body, intent)
    t.equal(submitted.status, 200)
    const id = submitted.body.id as string
    t.match(id, new RegExp(`^mus_${ULID}$`))
    t.match(submitted.body.created_at, RFC_3339)
    t.same(submitted.body, {
      id,
      status: 'queued',
      model: 'demo-music',
      created_at: submitted.body.created_at,
    })
    const cancelled = await client.ask('DELETE', `${MUSIC}/${id}`)
    t.match(
      cancelled,
      { status: 409, body: { error: { code: 'task_not_cancellable' } } },
      'the upstream has no cancel',
    )
    const open = (await client.get(`/v1/logs?include=in_flight&ref=${id}`)).body
    t.match(open.in_flight, [
      {
        object: 'log.in_flight',
        task_id: id,
        request_id: submitted.trace,
        model: 'demo-music',
        unit_type: 'music',
        status: 'processing',
        estimate: SONGS_PRICE,
        key_name: 'test',
        submitted_at: submitted.body.created_at,
      },
    ])

    const replayed = await client.post(MUSIC, body, intent)
    t.same(replayed.body, submitted.body)
    t.equal(replayed.headers.get('idempotency-replayed'), 'true')

    const ended = await client.ended(`${MUSIC}/${id}`)
    const tracks = ended.tracks as Track[]
    t.same(ended, {
      id,
      model: 'demo-music',
      status: 'succeeded',
      upstream_status: 'SUCCESS',
      tracks,
      error_code: null,
      error_message: null,
      created_at: submitted.body.created_at,
      completed_at: ended.completed_at,
    })
    t.match(ended.completed_at, RFC_3339)
    t.equal(tracks.length, 2)
    t.equal(new Set(tracks.map(({ clip_id }) => clip_id)).size, 2)
    for (const [index, track] of tracks.entries()) {
      t.same(Object.keys(track).sort(), [
        'audio_url',
        'clip_id',
        'duration_sec',
        'image_url',
        'lyrics',
        'title',
      ])
      t.equal(typeof track.title, 'string')
      t.ok(Math.abs(track.duration_sec - 2) < 0.1, 'as long as it was made')
      t.match(track.audio_url, new RegExp(`^${service.baseUrl}/files/music/${id}-${index + 1}\\.mp3\\?`))
      t.ok(expiryOf(track.audio_url) > Date.now() + 6.9 * DAY_MS, 'for seven days')
      t.equal(await typeBehind(track.audio_url), 'audio/mpeg')
      t.equal(await typeBehind(track.image_url), 'image/png')
    }
    t.same((await client.get(`${MUSIC}/${id}`)).body.status, 'succeeded')

    const listed = await client.get(`${MUSIC}?limit=1&status=succeeded,failed`)
    t.match(listed.body, { object: 'list', has_more: false })
    t.match((listed.body.data as object[])[0], { ...ended, tracks: [{}, {}] })
    t.same((await client.get(`${MUSIC}?status=processing`)).body.data, [])
    t.match((await client.get(`${MUSIC}?status=all`)).body.data, [{ id }])

    const row = await rowOf(service, client.key, id)
    t.match(row, {
      status: 'success',
      model: 'demo-music',
      unit_type: 'music',
      unit_count: '1',
      cost: SONGS_PRICE,
      task_id: id,
      request_id: submitted.trace,
      error_code: null,
      attempts_count: null,
    })
    t.equal((row.result_urls as string[]).length, 4, 'two songs and two covers')
    t.ok(Date.parse(row.result_expires_at as string) > Date.now() + 6.9 * DAY_MS)
    const detail = (await client.get(`/v1/logs/${row.id}`)).body
    t.match(detail, {
      kind: 'music',
      request: [{ k: 'endpoint', v: `POST ${MUSIC}` }],
      request_note: '',
    })
    t.same((await client.get(`/v1/logs?include=in_flight&ref=${id}`)).body.in_flight, [])
    await checkEntries(t, service, client, id, { held: SONGS_PRICE, charged: SONGS_PRICE })
    await checkWallet(t, service, client, '100', [SONGS_PRICE])
  })

  await t.test('one song of two is the full price; none is a refund', async (t) => {
    const client = await newClient(service, '100')
    const [one, none, moderated] = await Promise.all([
      make(client, { prompt: quick('half', ',partial=1') }),
      make(client, { prompt: quick('nothing', ',outcome=fail') }),
      make(client, { prompt: quick('rude', ',outcome=moderation') }),
    ])
    const half = await client.ended(`${MUSIC}/${one}`)
    t.equal(half.status, 'succeeded')
    t.equal((half.tracks as Track[]).length, 1)
    t.match(await client.ended(`${MUSIC}/${none}`), {
      status: 'failed',
      tracks: { length: 0 },
      error_code: 'generation_failed',
      error_message: /\w/,
      completed_at: RFC_3339,
    })
    t.match(await client.ended(`${MUSIC}/${moderated}`), { status: 'failed', error_code: 'content_policy' })
    await checkEntries(t, service, client, one, { held: SONGS_PRICE, charged: SONGS_PRICE })
    for (const id of [none, moderated]) {
      await checkEntries(t, service, client, id, { held: SONGS_PRICE, charged: null })
      t.match(await rowOf(service, client.key, id), { status: 'error', cost: '0', unit_count: null })
    }
    await checkWallet(t, service, client, '100', [SONGS_PRICE])
  })

  await t.test('lyrics are sung in place of the prompt; an instrumental has none', async (t) => {
    const client = await newClient(service, '100')
    const text = { lyrics: '[Verse]\nBread, bread', prompt: 'a song', title: 'Bread', tags: 'folk' }
    t.match(await sent(client, { ...text, negative_tags: 'drums' }), {
      customMode: true,
      instrumental: false,
      prompt: text.lyrics,
      title: 'Bread',
      style: 'folk',
      negativeTags: 'drums',
    })
    t.match(await sent(client, { prompt: 'a song', lyrics: ' ' }), { customMode: false, prompt: 'a song' })
    const instrumental = await sent(client, { ...text, instrumental: true })
    t.match(instrumental, { customMode: false, instrumental: true, prompt: /^a song/ })
    t.match(await sent(client, { instrumental: true }), { customMode: true, instrumental: true })
  })

  await t.test('what is wrong with a request is said, and nothing is held', async (t) => {
    const client = await newClient(service, '100')
    const wrong: [object, RegExp][] = [
      [{}, /prompt and lyrics/],
      [{ prompt: ' ', lyrics: '' }, /prompt and lyrics/],
      [{ prompt: 'x'.repeat(201) }, /'prompt'.*200/],
      [{ lyrics: 'x'.repeat(3001) }, /'lyrics'.*3000/],
      [{ prompt: 'x', instrumental: 'yes' }, /'instrumental'/],
      [{ prompt: 7 }, /'prompt'/],
      [{ model: '', prompt: 'x' }, /'model'/],
    ]
    for (const [body, message] of wrong) {
      const answer = await client.post(MUSIC, { model: 'demo-music', ...body })
      t.match(codeOf(answer), INVALID)
      t.match(messageOf(answer), message)
    }
    const cat = { prompt: '🐈'.repeat(200) }
    t.equal((await client.post(MUSIC, { model: 'demo-music', ...cat })).status, 200, 'characters count')
    const prompt = 'a song'
    t.match(codeOf(await client.post(MUSIC, { model: 'nothing', prompt })), NO_MODEL)
    t.match(codeOf(await client.post(MUSIC, { model: 'demo-image', prompt })), NO_CHANNEL)
    for (const query of ['status=done', 'status=succeeded,queued', 'limit=0', 'limit=101', 'limit=x'])
      t.match(codeOf(await client.get(`${MUSIC}?${query}`)), INVALID, query)
  })

  await t.test('who may not, cannot pay, or asks for another’s', async (t) => {
    const poor = await newClient(service, '19.40999999')
    const answer = await poor.post(MUSIC, { model: 'demo-music', prompt: 'x' })
    t.match(answer, { status: 402, body: { error: { type: 'insufficient_quota', code: 'quota_exceeded' } } })
    t.match(await rowOf(service, poor.key, answer.trace), {
      status: 'rejected',
      cost: '0',
      model: 'demo-music',
      unit_type: 'music',
      unit_count: null,
      task_id: null,
      attempts_count: 0,
    })
    const songs = await poor.get('/v1/logs?unit_type=music')
    t.match(songs.body.data, [{ request_id: answer.trace }], 'found among songs, though none was made')
    const strict = await newClient(service, '100', { allowedModels: ['video-transcript'] })
    t.match(codeOf(await strict.post(MUSIC, { model: 'demo-music', prompt: 'x' })), NOT_ALLOWED)
    const owner = await newClient(service, '100')
    const id = await make(owner, { prompt: quick('mine') })
    for (const path of [`${MUSIC}/${id}`, `${MUSIC}/mus_00000000000000000000000000`])
      t.match(codeOf(await strict.get(path)), ABSENT)
    t.same((await strict.get(MUSIC)).body.data, [])
    const empty = await newClient(service, '0')
    t.equal((await empty.get(MUSIC)).status, 200, 'reading is free')
  })

  await t.test('a transcript costs what it costs when it is there', async (t) => {
    const client = await newClient(service, '100', { allowedModels: ['video-transcript'] })
    const url = 'https://v.example.com/Xy12ab/?simulate=delay%3D200'
    const [first, second] = await Promise.all([
      client.post(TRANSCRIPTS, { url }, { 'idempotency-key': 'words-1' }),
      client.post(TRANSCRIPTS, { input: `look: ${url}` }),
    ])
    t.equal(first.status, 200)
    t.same(Object.keys(first.body).sort(), [
      'content',
      'cover',
      'duration_sec',
      'model',
      'origin_link',
      'platform',
      'title',
    ])
    t.match(first.body, {
      model: 'video-transcript',
      content: /\w/,
      title: /\w/,
      platform: /\w/,
      duration_sec: 63.2,
      origin_link: /^https?:/,
    })
    const cover = first.body.cover as string
    t.equal(await typeBehind(cover), 'image/png')
    t.ok(expiryOf(cover) > Date.now() + 0.9 * DAY_MS && expiryOf(cover) < Date.now() + 1.1 * DAY_MS)
    t.equal(second.status, 200)
    const again = await client.post(TRANSCRIPTS, { url }, { 'idempotency-key': 'words-1' })
    t.same(again.body, first.body)
    t.equal(again.headers.get('idempotency-replayed'), 'true')
    const renamed = await client.post(
      TRANSCRIPTS,
      { input: url, url: null },
      { 'idempotency-key': 'words-1' },
    )
    t.same(renamed.body, first.body, 'the other name of the field')
    const other = await client.post(TRANSCRIPTS, { input: `${url}x` }, { 'idempotency-key': 'words-1' })
    t.same(codeOf(other), KEY_REUSED)
    const row = await rowOf(service, client.key, first.trace)
    t.match(row, {
      status: 'success',
      model: 'video-transcript',
      unit_type: 'transcript',
      unit_count: '1',
      cost: TRANSCRIPT_PRICE,
      task_id: new RegExp(`^trn_${ULID}$`),
      attempts_count: 1,
    })
    t.match((await client.get(`/v1/logs/${row.id}`)).body, { kind: null })
    await checkEntries(t, service, client, row.task_id as string, {
      held: TRANSCRIPT_PRICE,
      charged: TRANSCRIPT_PRICE,
    })
    await checkWallet(t, service, client, '100', [TRANSCRIPT_PRICE, TRANSCRIPT_PRICE])
  })

  await t.test('what cannot be extracted is said as it is, and is free', async (t) => {
    const client = await newClient(service, '500')
    const link = (directives: string) =>
      `https://v.example.com/${encodeURIComponent(directives)}?simulate=${encodeURIComponent(`delay=100,${directives}`)}`
    const cases: [string, number, string][] = [
      ['outcome=fail,code=invalid_link', 400, 'invalid_request'],
      ['outcome=fail,code=unsupported_video', 400, 'invalid_request'],
      ['outcome=moderation', 400, 'invalid_request'],
      ['outcome=fail,code=timeout', 504, 'upstream_timeout'],
      ['outcome=expire', 504, 'upstream_timeout'],
      ['outcome=fail,code=quota_exhausted', 503, 'service_unavailable'],
      ['outcome=fail,code=connection_failed', 502, 'upstream_unreachable'],
      ['outcome=fail', 502, 'upstream_error'],
      ['outcome=refuse,code=invalid_link', 400, 'invalid_request'],
      ['outcome=refuse,code=quota_exhausted', 503, 'upstream_error'],
      ['outcome=refuse,code=connection_failed', 502, 'upstream_unreachable'],
      ['outcome=refuse,code=timeout', 504, 'upstream_timeout'],
    ]
    const answers = await Promise.all(cases.map(([how]) => client.post(TRANSCRIPTS, { url: link(how) })))
    for (const [index, [how, status, word]] of cases.entries())
      t.match(codeOf(answers[index]!), { status, code: word }, how)
    const rows: LogJson[] = await service.logs(client.key, (found) => found.length === cases.length)
    for (const row of rows) t.match(row, { cost: '0', unit_count: null })
    const codes = new Map(rows.map((row) => [row.request_id, row.error_code]))
    for (const [index, [how, , word]] of cases.entries())
      t.equal(codes.get(answers[index]!.trace), word, `${how}: the row has the code of the answer`)
    await checkWallet(t, service, client, '500', [])
  })

  await t.test('a link that is none, too long, or cannot be paid', async (t) => {
    const client = await newClient(service, '100')
    for (const body of [{}, { url: ' ' }, { url: 'x'.repeat(2001) }, { input: 'x'.repeat(2001) }, { url: 5 }])
      t.match(codeOf(await client.post(TRANSCRIPTS, body)), INVALID)
    const strict = await newClient(service, '100', { allowedModels: ['demo-music'] })
    t.match(codeOf(await strict.post(TRANSCRIPTS, { url: 'x' })), NOT_ALLOWED)
    const poor = await newClient(service, '20.21')
    t.match(codeOf(await poor.post(TRANSCRIPTS, { url: 'x' })), NO_CREDIT)
  })
})
