/** The object store: a folder or a bucket. */
import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { BucketStore } from '../../../src/storage/bucket-store.ts'
import { FolderStore } from '../../../src/storage/folder-store.ts'
import { MAX_LINK_MS, type ObjectStore } from '../../../src/storage/store.ts'
import { bucketStore, bytesOf, folderStore, LINKS, PUBLIC_URL, temporaryFolder } from './support.ts'

t.test('folder and bucket keep the same promises', async (t) => {
  const MIB = 1024 * 1024
  const tooLarge = { name: 'ObjectTooLarge' }
  const png = { mediaType: 'image/png', maxBytes: 32 * MIB }

  const inPieces = (bytes: Buffer, size = 65_536): Readable => {
    let at = 0
    return new Readable({
      read() {
        this.push(at < bytes.length ? bytes.subarray(at, at + size) : null)
        at += size
      },
    })
  }

  /** Comes to an end that nobody wants after so many bytes. */
  const thatBreaksAfter = (length: number): Readable => {
    let sent = 0
    return new Readable({
      read(size) {
        if (sent >= length) this.destroy(new Error('the line was cut'))
        else this.push(Buffer.alloc(size))
        sent += size
      },
    })
  }

  async function keepsItsPromises(t: Test, store: ObjectStore): Promise<void> {
    await t.test('what was put is there whole, with its type', async (t) => {
      const bytes = randomBytes(100_000)
      t.same(await store.put('images/a.png', bytes, png), { bytes: 100_000, mediaType: 'image/png' })
      t.same(await store.head('images/a.png'), { bytes: 100_000, mediaType: 'image/png' })
      const { stream, ...facts } = (await store.get('images/a.png'))!
      t.same(facts, { bytes: 100_000, mediaType: 'image/png' })
      t.ok((await bytesOf(stream)).equals(bytes))
    })

    await t.test('a type that the name does not tell is kept, and one put later counts', async (t) => {
      for (const mediaType of ['image/webp', 'video/mp4', 'text/x-odd', 'image/png']) {
        await store.put('inputs/r-0.png', Buffer.from(mediaType), { ...png, mediaType })
        t.match(await store.head('inputs/r-0.png'), { bytes: mediaType.length, mediaType })
      }
    })

    await t.test('a long stream, a short one and an empty one', async (t) => {
      for (const length of [12 * MIB + 7, 1000, 0]) {
        const bytes = randomBytes(length)
        t.match(await store.put('videos/long.mp4', inPieces(bytes), { ...png, mediaType: 'video/mp4' }), {
          bytes: length,
        })
        t.ok((await bytesOf((await store.get('videos/long.mp4'))!.stream)).equals(bytes), `${length} bytes`)
      }
    })

    await t.test('a range of it', async (t) => {
      await store.put('videos/range.mp4', Buffer.from('0123456789'), png)
      for (const [first, last, text] of [
        [0, 1, '01'],
        [3, 5, '345'],
        [9, 9, '9'],
        [4, 9, '456789'],
      ] as const) {
        const found = (await store.get('videos/range.mp4', { first, last }))!
        t.equal(found.bytes, 10)
        t.equal((await bytesOf(found.stream)).toString(), text)
      }
    })

    await t.test('what is too long, cut or given up leaves nothing', async (t) => {
      const limit = { ...png, maxBytes: 6 * MIB }
      await t.rejects(store.put('videos/x.mp4', Buffer.alloc(6 * MIB + 1), limit), tooLarge)
      const endless = new Readable({ read: (size) => void endless.push(Buffer.alloc(size)) })
      await t.rejects(store.put('videos/x.mp4', endless, limit), tooLarge)
      t.ok(endless.destroyed, 'the source is let go')
      for (const length of [1000, 13 * MIB])
        await t.rejects(store.put('videos/x.mp4', thatBreaksAfter(length), png), /the line was cut/)
      const silent = new Readable({ read: () => undefined })
      const abort = new AbortController()
      const { signal } = abort
      setTimeout(() => abort.abort(), 20)
      await t.rejects(store.put('videos/x.mp4', silent, { ...png, signal }))
      await t.rejects(store.put('videos/x.mp4', inPieces(Buffer.alloc(9)), { ...png, signal }))
      t.equal(await store.head('videos/x.mp4'), null)
      t.equal(await store.get('videos/x.mp4'), null)
      await store.put('videos/x.mp4', inPieces(Buffer.alloc(6 * MIB)), limit)
      t.match(await store.head('videos/x.mp4'), { bytes: 6 * MIB }, 'the limit itself is allowed')
    })

    await t.test('deleted is gone, and what is not there is deleted already', async (t) => {
      await store.put('images/b.png', Buffer.from('b'), { ...png, mediaType: 'image/gif' })
      await store.put('images/c.png', Buffer.from('c'), png)
      await store.delete(['images/b.png', 'images/never.png'])
      t.equal(await store.head('images/b.png'), null)
      t.match(await store.head('images/c.png'), { bytes: 1 })
      await store.delete([])
      await store.put('images/b.png', Buffer.from('b'), png)
      t.match(await store.head('images/b.png'), { mediaType: 'image/png' }, 'no type is left of the first')
    })

    await t.test('only keys are keys', async (t) => {
      const never = [
        'a',
        'a/../b',
        '../a',
        '/a/b',
        'a//b',
        'a/b/',
        'a/.b',
        'a b/c',
        'ä/b',
        `a/${'x'.repeat(199)}`,
      ]
      for (const key of never) {
        await t.rejects(store.put(key, Buffer.from('x'), png), RangeError, key)
        await t.rejects(store.get(key), RangeError, key)
        t.throws(() => store.makePermanentLink(key), RangeError, key)
      }
    })

    await t.test('many at once', async (t) => {
      const keys = Array.from({ length: 60 }, (_, i) => `images/many-${i}.png`)
      await Promise.all(keys.map((key) => store.put(key, inPieces(Buffer.from(key), 5), png)))
      const found = await Promise.all(keys.map(async (key) => bytesOf((await store.get(key))!.stream)))
      t.same(found.map(String), keys)
      await store.delete(keys)
      t.same(new Set(await Promise.all(keys.map((key) => store.head(key)))), new Set([null]))
    })

    await t.test('a permanent link leads to the gateway; the store answers', async (t) => {
      t.match(store.makePermanentLink('speech/a.mp3'), `${PUBLIC_URL}/files/speech/a.mp3?signature=`)
      await t.resolves(store.ping())
    })
  }

  t.test('a folder', async (t) => keepsItsPromises(t, (await folderStore(t)).store))

  t.test('a bucket', async (t) => keepsItsPromises(t, (await bucketStore(t)).store))
})

t.test('folder survives kills', async (t) => {
  const OPTIONS = { mediaType: 'video/mp4', maxBytes: 1024 * 1024 }
  const CHILD = new URL('./put-until-killed.ts', import.meta.url)

  t.test('objects of a process that was killed while it wrote are whole or not there', async (t) => {
    const folder = await temporaryFolder(t)
    const child = fork(CHILD, [folder], { stdio: 'ignore' })
    t.teardown(() => void child.kill('SIGKILL'))
    for (let written = 0; written < 5; written++) await once(child, 'message')
    child.kill('SIGKILL')
    await once(child, 'exit')
    const store = await FolderStore.open(folder, LINKS)
    let found = 0
    for (let index = 0; ; index++) {
      const object = await store.get(`videos/film-${index}.mp4`)
      if (object === null) break
      const bytes = await bytesOf(object.stream)
      t.equal(bytes.length, 300_000)
      t.ok(bytes.every((byte) => byte === index % 256))
      found++
    }
    t.ok(found >= 5, 'what was said to be put is there')
  })

  t.test('what killed uploads left is cleared away at the next start, and no running one is', async (t) => {
    const { folder } = await folderStore(t)
    const parts = join(folder, '.parts')
    await writeFile(join(parts, 'old'), 'x')
    await writeFile(join(parts, 'young'), 'x')
    const yesterday = new Date(Date.now() - 24 * 60 * 60 * 1000)
    await utimes(join(parts, 'old'), yesterday, yesterday)
    await FolderStore.open(folder, LINKS)
    t.same(await readdir(parts), ['young'])
  })

  t.test('no two keys meet in one file, and nobody else may read them', async (t) => {
    const { store, folder } = await folderStore(t)
    const keys = ['a/b', 'a/b/c', 'a/b-c', 'a/b.type', 'A/B']
    for (const key of keys) await store.put(key, Buffer.from(key), OPTIONS)
    for (const key of keys) t.equal(String(await bytesOf((await store.get(key))!.stream)), key)
    t.same(await readdir(join(folder, '.parts')), [], 'no part is left')
  })

  t.test('a missing folder is reported', async (t) => {
    const { store, folder } = await folderStore(t)
    await rm(folder, { recursive: true })
    await t.rejects(store.ping(), { code: 'ENOENT' })
  })
})

t.test('bucket uploads in parts', async (t) => {
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
})

t.test('bucket links open until their instant', async (t) => {
  const DAY_MS = 24 * 60 * 60 * 1000
  const png = { mediaType: 'image/png', maxBytes: 100 }

  t.test('a pre-signed link opens without a key, and says of what type the file is', async (t) => {
    const { store } = await bucketStore(t)
    await store.put('images/a.png', Buffer.from('picture'), png)
    const link = await store.makeLink('images/a.png', Date.now() + DAY_MS)
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
    const link = await linking.makeLink('images/a.png', Date.now() + DAY_MS)
    t.match(link, `${publicEndpoint}/media/images/a.png?`)
    t.equal(await (await fetch(link)).text(), 'picture')
  })

  t.test('it is good for a week at most, and never for less than a second', async (t) => {
    const { store } = await bucketStore(t)
    const secondsOf = async (expiresAt: number) =>
      Number(new URL(await store.makeLink('images/a.png', expiresAt)).searchParams.get('X-Amz-Expires'))
    t.equal(await secondsOf(Date.now() + 3 * MAX_LINK_MS), MAX_LINK_MS / 1000)
    t.equal(await secondsOf(Date.now() - DAY_MS), 1)
    t.ok((await secondsOf(Date.now() + DAY_MS)) > 86_000)
  })

  t.test('a bucket that is not there, or does not answer, says so', async (t) => {
    const { settings } = await bucketStore(t)
    await t.rejects(new BucketStore({ ...settings, bucket: 'absent' }, LINKS).ping())
    await t.rejects(new BucketStore({ ...settings, endpoint: 'http://127.0.0.1:1' }, LINKS).ping())
  })
})
