/** Paths of an upload that collide are named in words, without the folder on this machine. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import t from 'tap'
import { Unpacking } from '../../../src/markdown/unpack.ts'
import { zipOf } from '../../support/zip.ts'

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

t.test('a damaged zip is named as one', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'unpack-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await mkdir(join(folder, 'files'))
  const zip = Buffer.from(await zipOf({ 'a.md': '# Alpha', 'b.md': '# Beta' }, { compress: false }))
  zip.write('X', zip.indexOf('# Alpha'))
  await writeFile(join(folder, 'damaged.zip'), zip)
  await writeFile(join(folder, 'cut.zip'), zip.subarray(0, 20))
  const unpacking = new Unpacking(join(folder, 'files'))
  await unpacking.unzip('damaged.zip', join(folder, 'damaged.zip'))
  await unpacking.unzip('cut.zip', join(folder, 'cut.zip'))
  t.match(unpacking.problems, [
    { file: 'a.md', message: 'It is damaged: its checksum is another. Make the zip again.' },
    { file: 'cut.zip', message: /^It cannot be unpacked: .*[^.]\.$/ },
  ])
  t.equal(unpacking.problems.length, 2)
})
