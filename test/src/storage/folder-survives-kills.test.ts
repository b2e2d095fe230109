import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { FolderStore } from '../../../src/storage/folder-store.ts'
import { bytesOf, folderStore, LINKS, temporaryFolder } from './support.ts'

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
