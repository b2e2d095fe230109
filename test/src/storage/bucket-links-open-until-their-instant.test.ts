import t from 'tap'
import { BucketStore } from '../../../src/storage/bucket-store.ts'
import { MAX_LINK_MS } from '../../../src/storage/store.ts'
import { bucketStore, LINKS } from './support.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const png = { mediaType: 'image/png', maxBytes: 100 }

t.test('a pre-signed link opens without a key, and says of what type the file is', async (t) => {
  const { store } = await bucketStore(t)
  await store.put('images/a.png', Buffer.from('picture'), png)
  const link = await store.link('images/a.png', Date.now() + DAY_MS)
  const opened = await fetch(link)
  t.equal(opened.status, 200)
  t.equal(opened.headers.get('content-type'), 'image/png')
  t.equal(await opened.text(), 'picture')
})

t.test('it leads where clients reach the bucket', async (t) => {
  const { store, settings } = await bucketStore(t)
  await store.put('images/a.png', Buffer.from('picture'), png)
  // Another name of the same machine, as a bucket behind a proxy has.
  const publicEndpoint = settings.endpoint.replace('127.0.0.1', 'localhost')
  const linking = new BucketStore({ ...settings, publicEndpoint }, LINKS)
  const link = await linking.link('images/a.png', Date.now() + DAY_MS)
  t.match(link, `${publicEndpoint}/media/images/a.png?`)
  t.equal(await (await fetch(link)).text(), 'picture')
})

t.test('it is good for a week at most, and never for less than a second', async (t) => {
  const { store } = await bucketStore(t)
  const secondsOf = async (expiresAt: number) =>
    Number(new URL(await store.link('images/a.png', expiresAt)).searchParams.get('X-Amz-Expires'))
  t.equal(await secondsOf(Date.now() + 3 * MAX_LINK_MS), MAX_LINK_MS / 1000)
  t.equal(await secondsOf(Date.now() - DAY_MS), 1)
  t.ok((await secondsOf(Date.now() + DAY_MS)) > 86_000)
})

t.test('a bucket that is not there, or does not answer, says so', async (t) => {
  const { settings } = await bucketStore(t)
  await t.rejects(new BucketStore({ ...settings, bucket: 'absent' }, LINKS).ping())
  await t.rejects(new BucketStore({ ...settings, endpoint: 'http://127.0.0.1:1' }, LINKS).ping())
})
