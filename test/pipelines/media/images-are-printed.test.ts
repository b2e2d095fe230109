/** What images and their tasks look like to their account. */
import { Readable } from 'node:stream'
import t from 'tap'
import { printImages, printImageTask, printSubmittedImages } from '../../../pipelines/media/images/answers.ts'
import { imageAnswer, imageSubmitted, imageTask } from '../../../schemas/media/images.ts'
import { mediaJob } from '../../../schemas/media/job.ts'
import { TASK_STATES } from '../../../schemas/tasks/task.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { fileOf, resultOf, STATUSES, SUBMITTED_AT, taskOf } from './support.ts'

const CREATED_AT = Math.floor(SUBMITTED_AT / 1000)
const ENDED_AT = SUBMITTED_AT + 5_000
const EXPIRES_AT = ENDED_AT + 24 * 60 * 60 * 1000
const THEIRS = 'https://upstream.test/2.png'
const LARGE_BYTES = 97 * 1024 * 1024

/** A store with one picture, one that is too large for an answer, and nothing else. */
const files = {
  link: async (key: string, expiresAt: number) => `https://files.test/${key}?until=${expiresAt}`,
  async get(key: string) {
    if (key === 'images/gone.png') return null
    const bytes = Buffer.from(key)
    const length = key === 'images/large.png' ? LARGE_BYTES : bytes.length
    return { bytes: length, mediaType: 'image/png', stream: Readable.from([bytes]) }
  },
}
const linkTo = (key: string) => ({ url: `https://files.test/${key}?until=${EXPIRES_AT}` })
const inline = (key: string) => ({ b64_json: Buffer.from(key).toString('base64') })

const imagesOf = (more: Partial<Task>): Task =>
  taskOf({
    kind: 'image',
    model: 'sketch',
    job: mediaJob.parse({ work: 'image', prompt: 'a kite', n: 2 }),
    ...more,
  })

const made = (...places: readonly string[]): Task =>
  imagesOf({
    state: 'succeeded',
    endedAt: ENDED_AT,
    result: resultOf({
      files: places.map((place) =>
        fileOf({ role: 'image', ...(place === THEIRS ? { upstream_url: place } : { key: place }) }),
      ),
    }),
  })

t.test('a task in each state', async (t) => {
  for (const state of TASK_STATES) {
    const printed = await printImageTask(files, imagesOf({ state, errorCode: 'x', errorMessage: 'y' }))
    t.equal(printed.status, STATUSES[state] ?? state, state)
    t.strictSame(imageTask.parse(printed), printed, 'as the reference says, to the last field')
    const isBad = ['failed', 'expired', 'cancelled', 'refused'].includes(state)
    t.strictSame(printed.error, isBad ? { code: 'x', message: 'y' } : undefined)
  }
  const expired = await printImageTask(files, imagesOf({ state: 'expired' }))
  t.match(expired.error, { code: 'task_expired', message: /in time/ })
  const submitted = printSubmittedImages(imagesOf({ state: 'running' }))
  t.match(submitted, { object: 'image.task', status: 'queued', created_at: CREATED_AT })
  t.strictSame(imageSubmitted.parse(submitted), submitted)
})

t.test('a task that is done: links open for a day from then on, however late they are read', async (t) => {
  const task = made('images/1.png', THEIRS)
  t.strictSame(await printImageTask(files, task), {
    id: task.id,
    object: 'image.task',
    model: 'sketch',
    status: 'succeeded',
    created_at: CREATED_AT,
    data: [linkTo('images/1.png'), { url: THEIRS }],
    expires_at: Math.floor(EXPIRES_AT / 1000),
  })
  t.match(await printImageTask(files, made(THEIRS)), { data: [{ url: THEIRS }], expires_at: null })
})

t.test('images in the answer itself', async (t) => {
  const answer = await printImages(files, made('images/1.png', 'images/2.png'), true)
  t.strictSame(answer, {
    created: CREATED_AT,
    model: 'sketch',
    data: [inline('images/1.png'), inline('images/2.png')],
  })
  t.strictSame(imageAnswer.parse(answer), answer)
  const mixed = await printImages(files, made('images/large.png', THEIRS, 'images/3.png'), true)
  const expected = [linkTo('images/large.png'), { url: THEIRS }, inline('images/3.png')]
  t.strictSame(mixed.data, expected, 'what cannot be in it is a link')
  await t.rejects(printImages(files, made('images/gone.png'), true), {
    code: 'idempotency_response_not_cached',
    status: 409,
  })
  const linked = await printImages(files, made('images/gone.png'), false)
  t.strictSame(linked.data, [linkTo('images/gone.png')])
})

t.test('images that cannot be read at the moment', async (t) => {
  const away = async () => {
    throw new Error('connect ECONNREFUSED 10.0.0.5:9000')
  }
  async function* failing() {
    yield Buffer.from('half')
    throw new Error('socket hang up')
  }
  const cut = async () => ({ bytes: 9, mediaType: 'image/png', stream: Readable.from(failing()) })
  for (const get of [away, cut])
    await t.rejects(printImages({ ...files, get }, made('images/a.png'), true), {
      code: 'service_unavailable',
      status: 503,
    })
})

t.test('images whose time is over: none in the task, and no answer to a repeated request', async (t) => {
  const removed = fileOf({ role: 'image', key: 'images/1.png', kept_until: EXPIRES_AT })
  const task = imagesOf({ state: 'succeeded', endedAt: ENDED_AT, result: resultOf({ files: [removed] }) })
  const expired = { data: { length: 0 }, expires_at: Math.floor(EXPIRES_AT / 1000) }
  t.match(await printImageTask(files, task), expired)
  for (const isInline of [true, false])
    await t.rejects(printImages(files, task, isInline), { code: 'idempotency_response_not_cached' })
})
