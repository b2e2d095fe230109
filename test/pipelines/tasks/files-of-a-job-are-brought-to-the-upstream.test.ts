import t, { type Test } from 'tap'
import type { TaskEngine } from '../../../pipelines/tasks/engine.ts'
import { StoreFailure } from '../../../pipelines/tasks/ports.ts'
import { keyOf } from '../../../pipelines/tasks/store/result-files.ts'
import { filesOf, withFiles } from '../../../pipelines/tasks/submit/job-files.ts'
import { prepareFiles, UnusableFile } from '../../../pipelines/tasks/submit/prepare-files.ts'
import { type FileRef, mediaJob, resultFile } from '../../../schemas/media/job.ts'
import type { MediaAdapter } from '../../../src/channels/media/adapter.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { taskStorage } from '../../../src/server/tasks/storage.ts'
import type { ObjectStore } from '../../../src/storage/store.ts'
import { folderStore } from '../../src/storage/support.ts'
import { serveHttp } from '../../support/http-server.ts'
import { PICTURE, pictureAdapter } from './upstream.ts'

const link = (url: string): FileRef => ({ from: 'url', url })
const stored = (key: string, bytes = 3): FileRef => ({
  from: 'store',
  key,
  media_type: 'image/png',
  bytes,
  name: 'a.png',
})
const PUBLIC = { private_links: false }
const silent = { info() {}, warn() {}, error() {} }

const JOB = mediaJob.parse({
  work: 'image_edit',
  prompt: 'bluer',
  n: 1,
  images: [link('https://files.test/folder/my%20cat.png?x=1'), stored('inputs/one')],
  mask: link('https://files.test/'),
})
const TASK = { id: 'img_1', requestId: 'req_1', job: JOB } as Task

const recorded: string[] = []
const deps = {
  storage: {
    copy: async (url: string) => {
      if (url.includes('bad')) throw new Error('its address is not public')
      return { bytes: 9, mediaType: 'image/webp', width: null, height: null }
    },
    checkLinks: async (urls: readonly string[]) => {
      if (urls.some((url) => url.includes('inner')))
        throw new Error('its server cannot be reached at a public address')
    },
    read: async (key: string) => {
      if (key.includes('gone')) throw new Error('gone')
      return Buffer.from('abc')
    },
  },
  database: {
    tasks: {
      recordObjects: async (objects: { key: string }[]) =>
        void recorded.push(...objects.map(({ key }) => key)),
    },
  },
  now: () => 0,
  log: silent,
} as unknown as TaskEngine

const adapter = (more: Partial<MediaAdapter>): MediaAdapter => ({ ...pictureAdapter, ...more })

t.test('links go as they are, what is in the store as text where the adapter writes it so', async (t) => {
  const { job, urlOf } = await prepareFiles(deps, TASK, adapter({ inlines: true }), PUBLIC)
  t.same(job, JOB)
  t.same(
    filesOf(job).map((file) => urlOf(file)),
    ['https://files.test/folder/my%20cat.png?x=1', 'data:image/png;base64,YWJj', 'https://files.test/'],
  )
})

t.test('links that an upstream does not take are taken in first, and their places recorded', async (t) => {
  const takesIn = (job: Task['job']) => filesOf(job).filter(({ from }) => from === 'url')
  const { job } = await prepareFiles(deps, TASK, adapter({ takesIn }), PUBLIC)
  t.same(filesOf(job), [
    { from: 'store', key: 'inputs/req_1-img_1-1', media_type: 'image/webp', bytes: 9, name: 'my_cat.png' },
    stored('inputs/one'),
    { from: 'store', key: 'inputs/req_1-img_1-2', media_type: 'image/webp', bytes: 9, name: 'file.webp' },
  ])
  t.same(recorded, ['inputs/req_1-img_1-1', 'inputs/req_1-img_1-2'])
})

t.test('files that are taken in share one limit', async (t) => {
  const limits: number[] = []
  const copy: TaskEngine['storage']['copy'] = async (_url, _key, { maxBytes }) => {
    limits.push(maxBytes)
    return { bytes: 1024, mediaType: 'image/webp', width: null, height: null }
  }
  const takesIn = (job: Task['job']) => filesOf(job).filter(({ from }) => from === 'url')
  await prepareFiles({ ...deps, storage: { ...deps.storage, copy } }, TASK, adapter({ takesIn }), PUBLIC)
  t.same(limits, [100 * 1024 * 1024, 100 * 1024 * 1024 - 1024])
})

t.test('a file that cannot be had is a plain error for the client', async (t) => {
  const bad = { ...TASK, job: withFiles(JOB, new Map([[filesOf(JOB)[0]!, link('https://bad.test/a')]])) }
  const takesIn = (job: Task['job']) => filesOf(job).slice(0, 1)
  await t.rejects(
    prepareFiles(deps, bad, adapter({ takesIn }), PUBLIC),
    new UnusableFile('its address is not public'),
  )
  const gone = { ...TASK, job: withFiles(JOB, new Map([[filesOf(JOB)[1]!, stored('inputs/gone')]])) }
  await t.rejects(prepareFiles(deps, gone, adapter({ inlines: true }), PUBLIC), /not there any more/)
  const large = {
    ...TASK,
    job: withFiles(JOB, new Map([[filesOf(JOB)[1]!, stored('inputs/large', 100_000_000)]])),
  }
  await t.rejects(prepareFiles(deps, large, adapter({ inlines: true }), PUBLIC), /too large together/)
})

const served = (t: Test) =>
  serveHttp(t, (_, response) => void response.writeHead(200, { 'content-type': 'image/png' }).end(PICTURE))

t.test('a store that is away is no fault of a file', async (t) => {
  const away = async () => {
    throw new Error('connect ECONNREFUSED 10.0.0.5:9000')
  }
  const storage = taskStorage({
    store: { put: away, get: away } as unknown as ObjectStore,
    isAllowed: () => true,
  })
  const images = [link(`${await served(t)}/a.png`)]
  const job = mediaJob.parse({ work: 'image', prompt: 'bluer', n: 1, images })
  const takesIn = () => filesOf(job)
  const prepared = (of: Task['job'], more: Partial<MediaAdapter>) =>
    prepareFiles({ ...deps, storage }, { ...TASK, job: of }, adapter(more), { private_links: true })
  await t.rejects(prepared(job, { takesIn }), StoreFailure)
  const kept = mediaJob.parse({ work: 'image', prompt: 'bluer', n: 1, images: [stored('inputs/one')] })
  await t.rejects(prepared(kept, { inlines: true }), StoreFailure)
})

t.test('a result is copied from a link as long as signatures make them', async (t) => {
  const { store } = await folderStore(t)
  const storage = taskStorage({ store, isAllowed: () => true })
  const url = `${await served(t)}/a.png?signature=${'x'.repeat(4000)}`
  const limits = { maxBytes: 1024, timeoutMs: 5000 }
  t.match(await storage.copy(url, 'images/a.png', limits, null), { bytes: PICTURE.length })
})

t.test('results have names of their own', async (t) => {
  const file = (role: string) => resultFile.parse({ role })
  const images = [file('image'), file('image')]
  t.equal(keyOf({ kind: 'image', id: 'img_1' }, images, 1, 'image/webp'), 'images/img_1-2.webp')
  t.equal(keyOf({ kind: 'image', id: 'img_1' }, [file('image')], 0, null), 'images/img_1-1.png')
  t.equal(keyOf({ kind: 'video', id: 'vid_1' }, [file('video')], 0, 'video/mp4'), 'videos/vid_1.mp4')
  const songs = [file('audio'), file('cover'), file('audio'), file('cover')]
  t.same(
    songs.map((_, at) => keyOf({ kind: 'music', id: 'mus_1' }, songs, at, null)),
    ['music/mus_1-1.mp3', 'music/mus_1-1-cover.jpg', 'music/mus_1-2.mp3', 'music/mus_1-2-cover.jpg'],
  )
})

t.test('a link into an inner network is handed on to nobody but an upstream of our own', async (t) => {
  const inner = { ...TASK, job: withFiles(JOB, new Map([[filesOf(JOB)[0]!, link('http://inner.test/a')]])) }
  const refused = new UnusableFile('its server cannot be reached at a public address')
  await t.rejects(prepareFiles(deps, inner, adapter({}), PUBLIC), refused)
  const { job, urlOf } = await prepareFiles(deps, inner, adapter({}), { private_links: true })
  t.equal(urlOf(filesOf(job)[0]!), 'http://inner.test/a')
})
