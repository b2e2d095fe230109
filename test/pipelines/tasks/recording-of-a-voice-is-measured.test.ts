/** A voice is made from 5 seconds to 3 minutes. Known where the gateway has the file. */
import t from 'tap'
import { referenceProblem } from '../../../pipelines/tasks/submit/check-reference.ts'
import { soundMp3 } from '../../../simulator/media/samples.ts'
import { fileLinks } from '../../../src/core/media/file-link.ts'
import { taskStorage } from '../../../src/server/tasks/storage.ts'
import { FolderStore } from '../../../src/storage/folder-store.ts'

const links = fileLinks('http://files.test', Buffer.alloc(32, 5))
const storage = taskStorage({ store: await FolderStore.open(t.testdir(), links) })

const problemOf = async (name: string, bytes: Buffer) => {
  const key = `inputs/${name}`
  await storage.put(key, bytes, 'audio/mpeg')
  return referenceProblem(storage, { key, bytes: bytes.length })
}

t.test('recordings of 5 seconds to 3 minutes are taken; the error of others has their length', async (t) => {
  const sound = (seconds: number) => problemOf(`${seconds}.mp3`, soundMp3({ seconds, seed: 1 }))
  for (const seconds of [5, 60, 180]) t.equal(await sound(seconds), null, `${seconds} s`)
  t.equal(await sound(4.5), 'The recording must be 5 to 180 seconds long; it is 4.5.')
  t.equal(await sound(181), 'The recording must be 5 to 180 seconds long; it is 181.0.')
})

t.test('what tells nobody its length is left to the upstream', async (t) => {
  t.equal(await problemOf('odd.mp3', Buffer.alloc(100, 3)), null)
})
