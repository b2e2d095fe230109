import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import type { ObjectStore } from '../../../src/storage/store.ts'
import { bucketStore, bytesOf, folderStore, PUBLIC_URL } from './support.ts'

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
      t.throws(() => store.permanentLink(key), RangeError, key)
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
    t.match(store.permanentLink('speech/a.mp3'), `${PUBLIC_URL}/files/speech/a.mp3?signature=`)
    await t.resolves(store.ping())
  })
}

t.test('a folder', async (t) => keepsItsPromises(t, (await folderStore(t)).store))

t.test('a bucket', async (t) => keepsItsPromises(t, (await bucketStore(t)).store))
