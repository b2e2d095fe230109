/** Results and uploads are stored in a folder or in a bucket, and their links open. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { fileLinks, linkKey } from '../../../src/core/media/file-link.ts'
import { sniffMediaType } from '../../../src/core/media/type.ts'
import { bucketStore } from '../../src/storage/support.ts'
import { until } from '../../support/eventually.ts'
import { startService, TEST_MASTER_KEY, type TestService } from '../../support/service.ts'
import { demonstration, type MediaClient, newClient } from './support.ts'

const service = await startService(t, { config: demonstration() })
const client = await newClient(service, '5000')

const opened = async (url: string, init: RequestInit = {}) => {
  const response = await fetch(url, init)
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: response.headers, bytes, url: response.url }
}

async function madeImage({ post }: MediaClient): Promise<string> {
  const { status, body } = await post('/v1/images/generations', { model: 'demo-image', prompt: 'a cat' })
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
  return (body as { data: [{ url: string }] }).data[0].url
}

/** A lasting link to the file of another one, as the service signs it. */
function lasting(url: string): string {
  const key = /images\/[\w-]+\.png/.exec(url)?.[0] ?? ''
  return fileLinks(service.baseUrl, linkKey(TEST_MASTER_KEY)).print(key, null)
}

/** The image edited again, sent as a form. */
async function edited(service: TestService, picture: Buffer): Promise<string> {
  const form = new FormData()
  form.append('model', 'demo-image')
  form.append('prompt', 'with a hat')
  form.append('image', new Blob([Uint8Array.from(picture)], { type: 'image/png' }), 'cat.png')
  const response = await fetch(`${service.baseUrl}/v1/images/edits`, {
    method: 'POST',
    headers: { authorization: `Bearer ${client.key}` },
    body: form,
  })
  const body = (await response.json()) as { data: [{ url: string }] }
  if (response.status !== 200) throw new Error(`${response.status} ${JSON.stringify(body)}`)
  return body.data[0].url
}

const isImage = (t: Test, { status, headers, bytes }: Awaited<ReturnType<typeof opened>>) => {
  t.equal(status, 200)
  t.equal(headers.get('content-type'), 'image/png')
  t.equal(sniffMediaType(bytes), 'image/png')
}

t.test('from a folder: the gateway sends them, whole and in parts', async (t) => {
  const url = await madeImage(client)
  t.match(url, new RegExp(`^${service.baseUrl}/files/images/img_\\w+-1\\.png\\?expires=\\d+&signature=`))
  const whole = await opened(url)
  isImage(t, whole)
  const part = await opened(url, { headers: { range: 'bytes=1-3' } })
  t.equal(part.status, 206)
  t.equal(String(part.bytes), 'PNG')
  const head = await opened(url, { method: 'HEAD' })
  t.equal(head.headers.get('content-length'), String(whole.bytes.length))
  isImage(t, await opened(await edited(service, whole.bytes)))
  isImage(t, await opened(lasting(url)))
  t.equal((await opened(url.replace(/signature=.{4}/, 'signature=AAAA'))).status, 403)
})

/** Everything that makes files: where it is ordered, the order, and where its files' links stand in the poll. */
const MADE = [
  ['/v1/images/generations', { model: 'demo-image', prompt: 'a cat', async: true }, 'data'],
  ['/v1/videos/generations', { model: 'demo-video', prompt: 'It runs', duration: 1 }, 'video_url'],
  ['/v1/music/generations', { model: 'demo-music', prompt: 'A waltz' }, 'tracks'],
  ['/v1/audio/speech', { model: 'voice-tts-pro', input: 'Hello', async: true }, 'audio_url'],
] as const

const linkIn = (value: unknown): string => /http[^"]*\/files\/[^"]*/.exec(JSON.stringify(value))?.[0] ?? ''

t.test('their owner deletes them, nobody else; the task and its charge stay', async (t) => {
  const other = await newClient(service, '1')
  await Promise.all(
    MADE.map(async ([path, order, field]) => {
      const { body: submitted } = await client.post(path, order)
      const task = `${path}/${submitted.id}`
      const early = await client.ask('DELETE', `${task}/files`)
      if (early.status !== 200)
        t.match(early.body, { error: { code: 'invalid_request', message: /has not ended/ } })
      const made = await client.ended(task)
      const link = linkIn(made[field])
      t.equal((await opened(link)).status, 200, path)
      t.equal((await other.ask('DELETE', `${task}/files`)).status, 404)
      for (const _ of ['once', 'and again'])
        t.match(await client.ask('DELETE', `${task}/files`), {
          status: 200,
          body: { id: submitted.id, deleted: true },
        })
      t.equal((await opened(link)).status, 404)
      const { body } = await client.get(task)
      t.match(body, { id: submitted.id, status: 'succeeded' })
      t.equal(linkIn(body), '', 'no link is handed out any more')
    }),
  )
})

t.test('films and songs are removed when their time is over', async (t) => {
  const day = 24 * 60 * 60 * 1000
  const { body } = await client.post('/v1/videos/generations', {
    model: 'demo-video',
    prompt: 'It runs',
    duration: 1,
  })
  await client.ended(`/v1/videos/generations/${body.id}`)
  const key = `videos/${body.id}.mp4`
  const removedBy = async (days: number) =>
    (await service.database.tasks.findExpiredObjects(Date.now() + days * day, 1000)).includes(key)
  t.equal(await removedBy(36), false)
  t.equal(await removedBy(38), true)
})

t.test('from a bucket: its own links, and lasting ones that lead to it', async (t) => {
  const { settings, store } = await bucketStore(t)
  await service.stop()
  await service.start({
    S3_ENDPOINT: settings.endpoint,
    S3_BUCKET: settings.bucket,
    S3_ACCESS_KEY_ID: settings.accessKeyId,
    S3_SECRET_ACCESS_KEY: settings.secretAccessKey,
  })
  const inFolder = () => readdirSync(join(service.dataDir, 'files'), { recursive: true }).length
  const before = inFolder()
  const url = await madeImage(client)
  t.match(url, `${settings.endpoint}/media/images/img_`)
  t.match(url, 'X-Amz-Signature=')
  const picture = await opened(url)
  isImage(t, picture)
  isImage(t, await opened(await edited(service, picture.bytes)))
  const led = await opened(lasting(url))
  isImage(t, led)
  t.match(led.url, `${settings.endpoint}/media/images/`, 'led there')
  t.equal(inFolder(), before, 'nothing of it is in the folder')
  await t.resolves(store.ping())
  await until('it is ready', async () => (await fetch(`${service.baseUrl}/readyz`)).status === 200)
})
