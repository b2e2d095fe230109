/** Paths of an upload that collide are named in words, without the folder on this machine. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import t from 'tap'
import { Unpacking } from '../../../src/markdown/unpack.ts'

t.test('files whose paths collide are named', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'unpack-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const unpacking = new Unpacking(folder)
  const add = (path: string) => unpacking.add(path, Readable.from([Buffer.from('# A')]))
  for (const path of [
    'a.md',
    'notes/b.md',
    'a.md',
    'notes',
    'a.md/c.md',
    `${'x'.repeat(300)}.md`,
    'n\0.md',
    'n\0/d.md',
  ])
    await add(path)
  const taken = 'Another file or folder of the upload has the same path. Rename one.'
  t.same(
    unpacking.problems.map(({ file, message }) => [file.slice(0, 9), message]),
    [
      ['a.md', taken],
      ['notes', taken],
      ['a.md/c.md', taken],
      ['xxxxxxxxx', 'A name in its path is too long. Shorten it.'],
      ['n\0.md', 'Its path has a NUL in it. Rename it.'],
      ['n\0/d.md', 'Its path has a NUL in it. Rename it.'],
    ],
  )
})
