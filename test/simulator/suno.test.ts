import t from 'tap'
import type { Json } from './dialects-support.ts'
import { readMp3, readPng } from './media/probe.ts'
import { isCut, type MediaClient, mediaClient, textAt } from './media-support.ts'

const client = await mediaClient(t)

const GENERATE = '/api/v1/generate'
const RECORD = '/api/v1/generate/record-info?taskId='

function asked(model: string, fields: object = {}) {
  const callBackUrl = 'https://example.com/done'
  return { model, customMode: false, instrumental: false, prompt: 'Bread', callBackUrl, ...fields }
}

/** Submits and polls once: the reported `data`. */
async function told(client: MediaClient, directives: string, fields: object = {}): Promise<Json> {
  const { json } = await client.post(GENERATE, asked(`sim-song@${directives}`, fields))
  return (await client.get(RECORD + textAt(json, 'data', 'taskId'))).json.data as Json
}

t.test('two songs come of a generation, with sounds and covers', async (t) => {
  const submitted = await client.post(GENERATE, asked('sim-song@delay=60,queue=20,seconds=30'))
  t.match(submitted.json, { code: 200, msg: 'success', data: { taskId: /^[0-9a-f]{32}$/ } })
  const path = RECORD + textAt(submitted.json, 'data', 'taskId')
  const { json } = await client.until(path, (answer) => textAt(answer.json, 'data', 'status') === 'SUCCESS')
  t.match(json.data, { type: 'GENERATE', errorCode: null })
  const songs = json.data?.response?.sunoData as unknown as Json[]
  t.equal(songs.length, 2)
  t.not(songs[0]?.id, songs[1]?.id)
  for (const song of songs) {
    t.match(song, { title: /\S/, prompt: /Bread/, duration: 30 })
    t.equal(readMp3((await client.get(textAt(song, 'audioUrl'))).bytes).seconds, 30)
    t.match(readPng((await client.get(textAt(song, 'imageUrl'))).bytes), { width: 512 })
  }
})

t.test('a generation is reported in the states of the vendor', async (t) => {
  t.match(await told(client, 'queue=600000'), { status: 'PENDING', response: null })
  t.match(await told(client, 'queue=0,outcome=stuck'), { status: 'TEXT_SUCCESS', response: null })
  t.match(await told(client, 'delay=0,outcome=fail'), { status: 'GENERATE_AUDIO_FAILED', errorCode: 500 })
  t.match(await told(client, 'delay=0,outcome=fail,code=CREATE_TASK_FAILED'), {
    status: 'CREATE_TASK_FAILED',
  })
  const uncalled = await told(client, 'delay=0,outcome=fail,code=CALLBACK_EXCEPTION')
  t.match(uncalled, { status: 'CALLBACK_EXCEPTION', response: { sunoData: [{ audioUrl: /mp3$/ }] } })
  t.match(await told(client, 'delay=0,outcome=moderation'), { status: 'SENSITIVE_WORD_ERROR' })
  t.match(await told(client, 'delay=0,outcome=unknown_state'), { status: 'ARCHIVED' })
})

t.test('the first song is there before the second', async (t) => {
  const first = await told(client, 'queue=0,outcome=stuck,code=FIRST_SUCCESS')
  t.match(first, { status: 'FIRST_SUCCESS', response: { sunoData: [{ audioUrl: /mp3$/ }] } })
  t.equal(first.response?.sunoData?.[1], undefined)
  const { json } = await client.post(GENERATE, asked('sim-song@delay=60,queue=0'))
  const seen: string[] = []
  await client.until(RECORD + textAt(json, 'data', 'taskId'), (answer) => {
    seen.push(textAt(answer.json, 'data', 'status'))
    return seen.at(-1) === 'SUCCESS'
  })
  const order = ['TEXT_SUCCESS', 'FIRST_SUCCESS', 'SUCCESS']
  t.same(
    seen,
    seen.toSorted((one, other) => order.indexOf(one) - order.indexOf(other)),
    'never backwards',
  )
})

t.test('one song of two succeeds, or none', async (t) => {
  const audio = async (partial: number) => {
    const data = await told(client, `delay=0,partial=${partial}`)
    const songs = data.response?.sunoData as unknown as Json[]
    return songs.map(({ audioUrl, duration }) => [audioUrl !== ('' as unknown), duration !== null])
  }
  const sung = [true, true]
  const unsung = [false, false]
  t.same(
    [await audio(2), await audio(1), await audio(0)],
    [
      [sung, sung],
      [sung, unsung],
      [unsung, unsung],
    ],
  )
})

t.test('custom mode sings the lyrics under the title, and an instrumental has none', async (t) => {
  const lyrics = '[Verse]\nBread, bread'
  const custom = { customMode: true, prompt: lyrics, style: 'folk', title: 'Bread' }
  const sung = await told(client, 'delay=0', custom)
  t.match(sung.response?.sunoData, [{ prompt: lyrics, title: 'Bread', tags: 'folk' }])
  const silent = await told(client, 'delay=0', { ...custom, prompt: undefined, instrumental: true })
  t.match(silent.response?.sunoData, [{ prompt: '', title: 'Bread' }])
})

t.test('what the vendor refuses is refused in its shape', async (t) => {
  const client = await mediaClient(t)
  const custom = { customMode: true, prompt: 'x', style: 'folk', title: 'Bread' }
  const refused: [object, number, RegExp][] = [
    [asked('sim-song', { prompt: undefined }), 400, /prompt/],
    [asked('sim-song', { callBackUrl: undefined }), 400, /callBackUrl/],
    [asked('sim-song', { customMode: undefined }), 400, /customMode/],
    [asked('sim-song', { ...custom, style: undefined }), 400, /style/],
    [asked('sim-song', { ...custom, title: undefined }), 400, /title/],
    [asked('sim-song', { ...custom, prompt: undefined }), 400, /prompt/],
    [asked('sim-song', { prompt: 'x'.repeat(501) }), 413, /500/],
    [asked('sim-song', { ...custom, prompt: 'x'.repeat(3001) }), 413, /3000/],
    [asked('other'), 400, /model/],
    [asked('sim-song@fault=status:429'), 429, /Rate limit/],
  ]
  for (const [body, status, msg] of refused)
    t.match(await client.post(GENERATE, body), { status, json: { code: status, msg, data: null } }, `${msg}`)
  const asRefused = await client.post(GENERATE, asked('sim-song@outcome=refuse'))
  t.match(asRefused, { status: 200, json: { code: 400, data: null } }, 'a refusal under 200')
  t.match(await client.post(GENERATE, asked('sim-song'), {}), { status: 401, json: { code: 401 } })
  t.match(await client.get(`${RECORD}none`), { status: 404, json: { code: 404 } })
  t.same(await client.tasks(), [])
})

t.test('an answer that is cut leaves a task, and a poll that fails changes nothing', async (t) => {
  const client = await mediaClient(t)
  const model = 'sim-song@accept_then_cut,delay=0,poll_fault=status:500,times=1'
  t.ok(await isCut(client.post(GENERATE, asked(model))))
  const [task] = await client.tasks()
  const poll = () => client.get(RECORD + task?.id)
  t.match([await poll(), await poll()], [{ status: 500 }, { json: { data: { status: 'SUCCESS' } } }])
  t.match(await client.tasks(), [{ polls: 2 }])
})
