import { Readable } from 'node:stream'
import t from 'tap'
import { bucketStore } from './support.ts'

const MIB = 1024 * 1024
const OPTIONS = { mediaType: 'video/mp4', maxBytes: 200 * MIB }

/** How far ahead of the bucket the source is read: parts under way, those being filled, and what the client buffers. */
const MOST_AHEAD_BYTES = 32 * MIB

t.test('a stream is read no further ahead than the parts that are under way', async (t) => {
  const { store, requests } = await bucketStore(t)
  let read = 0
  let ahead = 0
  const film = new Readable({
    read() {
      read += MIB
      const parts = requests.filter((request) => request.includes('partNumber=')).length
      ahead = Math.max(ahead, read - Math.max(0, parts - 2) * 5 * MIB)
      this.push(read > 64 * MIB ? null : Buffer.alloc(MIB))
    },
  })
  await store.put('videos/film.mp4', film, OPTIONS)
  t.match(await store.head('videos/film.mp4'), { bytes: 64 * MIB })
  t.ok(ahead <= MOST_AHEAD_BYTES, `${ahead / MIB} MiB ahead`)
})

t.test('an upload that is cut half-way is aborted at the bucket, and the error is the cut', async (t) => {
  const { store, requests } = await bucketStore(t)
  let sent = 0
  const film = new Readable({
    read() {
      sent += MIB
      if (sent > 13 * MIB) this.destroy(new Error('the line was cut'))
      else this.push(Buffer.alloc(MIB))
    },
  })
  await t.rejects(store.put('videos/film.mp4', film, OPTIONS), { message: 'the line was cut' })
  t.equal(requests.filter((request) => /^DELETE .*uploadId=/.test(request)).length, 1)
  t.notOk(
    requests.some((request) => /^POST .*uploadId=/.test(request)),
    'it is never completed',
  )
  t.equal(await store.head('videos/film.mp4'), null)
})

t.test('a short stream goes up in one request', async (t) => {
  const { store, requests } = await bucketStore(t)
  await store.put('images/a.png', Readable.from([Buffer.from('picture')]), OPTIONS)
  t.same(
    requests.map((request) => request.replace(/\?.*/, '')),
    ['PUT /media/images/a.png'],
  )
})
