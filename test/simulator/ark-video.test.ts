import t from 'tap'
import { readMp4 } from './media/probe.ts'
import { isCut, mediaClient, textAt } from './media-support.ts'

const client = await mediaClient(t)

const TASKS = '/api/v3/contents/generations/tasks'
const WORDS = { type: 'text', text: 'The dough rises.' }
const PICTURE = { type: 'image_url', image_url: { url: 'https://example.com/dough.jpg' } }

const asked = (model = 'sim-film', fields: object = {}) => ({ model, content: [WORDS], ...fields })

t.test('a film is made of the size and length that were asked for', async (t) => {
  const fields = { duration: 3, resolution: '480p', ratio: '9:16', seed: 7, watermark: false }
  const submitted = await client.post(TASKS, asked('sim-film@delay=40,queue=10', fields))
  t.same(Object.keys(submitted.json), ['id'])
  const path = `${TASKS}/${textAt(submitted.json, 'id')}`
  const { json } = await client.until(path, (answer) => textAt(answer.json, 'status') === 'succeeded')
  const echoed = { duration: 3, resolution: '480p', ratio: '9:16', seed: 7 }
  t.match(json, { model: /^sim-film/, ...echoed, created_at: Number, usage: { total_tokens: Number } })
  const film = await client.get(textAt(json, 'content', 'video_url'))
  t.equal(film.type, 'video/mp4')
  t.match(readMp4(film.bytes), { width: 480, height: 854, seconds: 3 })
})

t.test('the older flags behind the words are read too', async (t) => {
  const content = [{ type: 'text', text: 'A loaf --dur 2 --rs 480p --ratio 1:1' }]
  const { json } = await client.post(TASKS, asked('sim-film@delay=0', { content }))
  const done = await client.get(`${TASKS}/${textAt(json, 'id')}`)
  t.match(done.json, { duration: 2, resolution: '480p', ratio: '1:1' })
})

t.test('a task is reported in the states of the vendor', async (t) => {
  const told = async (directives: string, fields: object = {}) => {
    const { json } = await client.post(TASKS, asked(`sim-film@${directives}`, fields))
    return (await client.get(`${TASKS}/${textAt(json, 'id')}`)).json
  }
  t.match(await told('queue=600000'), { status: 'queued' })
  t.match(await told('queue=0,outcome=stuck'), { status: 'running' })
  t.match(await told('delay=0,outcome=fail'), { status: 'failed', error: { code: 'InternalServiceError' } })
  const moderated = { status: 'failed', error: { code: 'OutputVideoSensitiveContentDetected' } }
  t.match(await told('delay=0,outcome=moderation'), moderated)
  t.match(await told('delay=0,outcome=expire'), { status: 'expired' })
  t.match(await told('delay=0,outcome=cancel'), { status: 'cancelled' })
  t.match(await told('delay=0,outcome=unknown_state'), { status: 'paused' })
  t.match(await told('delay=0,seconds=4.2'), { status: 'succeeded', duration: 4.2 })
  t.equal((await told('delay=0,no_seconds')).duration, undefined)
  const video = { type: 'video_url', video_url: { url: 'https://example.com/a.mp4' } }
  const reference = { content: [WORDS, video] }
  t.match(await told('delay=0,input_seconds=9', reference), { input_video_duration: 9 })
})

t.test('only a queued task is cancelled', async (t) => {
  const queued = await client.post(TASKS, asked('sim-film@queue=600000'))
  const path = `${TASKS}/${textAt(queued.json, 'id')}`
  t.equal((await client.remove(path)).status, 200)
  t.match((await client.get(path)).json, { status: 'cancelled' })
  t.match(await client.remove(path), { status: 400, json: { error: { code: 'InvalidAction' } } })
  t.equal((await client.remove(`${TASKS}/none`)).status, 404)
})

t.test('what the vendor refuses is refused in its shape', async (t) => {
  const client = await mediaClient(t)
  const content = (...parts: object[]) => asked('sim-film', { content: parts })
  const refused: [object, number, object][] = [
    [{ model: 'sim-film' }, 400, { code: 'InvalidParameter', param: 'content', type: 'BadRequest' }],
    [content(), 400, { param: 'content' }],
    [content({ ...PICTURE, role: 'middle' }), 400, { param: 'content.0.role' }],
    [content({ ...PICTURE, image_url: { url: 'dough.jpg' } }), 400, { param: 'content.0.image_url.url' }],
    [content(WORDS, { ...PICTURE, role: 'last_frame' }), 400, { message: /last frame/ }],
    [asked('sim-film', { ratio: '2:1' }), 400, { param: 'ratio' }],
    [asked('sim-film', { duration: 0 }), 400, { param: 'duration' }],
    [asked('other'), 404, { code: 'InvalidEndpointOrModel.NotFound', type: 'NotFound' }],
    [asked('sim-film@fault=status:429'), 429, { type: 'TooManyRequests' }],
    [asked('sim-film@fault=status:500'), 500, { code: 'InternalServiceError' }],
    [asked('sim-film@outcome=refuse,code=Overdue'), 400, { code: 'Overdue' }],
  ]
  for (const [body, status, error] of refused)
    t.match(await client.post(TASKS, body), { status, json: { error } }, JSON.stringify(error))
  t.same(await client.tasks(), [])
  const stranger = await client.post(TASKS, asked(), { authorization: 'Bearer sim-bad-key' })
  t.match(stranger, { status: 401, json: { error: { code: 'AuthenticationError', type: 'Unauthorized' } } })
  t.match(await client.get(`${TASKS}/none`), { status: 404, json: { error: { code: 'ResourceNotFound' } } })
})

t.test('an answer that is cut leaves a task behind, and polls fail as directed', async (t) => {
  const client = await mediaClient(t)
  t.ok(await isCut(client.post(TASKS, asked('sim-film@accept_then_cut,delay=0,poll_fault=garbage,times=1'))))
  const [task] = await client.tasks('dialect=ark-video')
  const poll = () => client.get(`${TASKS}/${task?.id}`)
  t.ok(await isCut(poll()))
  t.match((await poll()).json, { status: 'succeeded' })
  t.equal((await client.submits('dialect=ark-video')).length, 1)
})
