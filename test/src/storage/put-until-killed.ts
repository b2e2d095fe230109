/** Puts one film after the other into the folder that it is given, and tells of each; killed by the test. */
import { Readable } from 'node:stream'
import { FolderStore } from '../../../src/storage/folder-store.ts'
import { LINKS } from './support.ts'

const PIECE_BYTES = 3000
const PIECES = 100

process.on('disconnect', () => process.exit())
const store = await FolderStore.open(process.argv[2] ?? '', LINKS)
for (let index = 0; ; index++) {
  const pieces = Array.from({ length: PIECES }, () => Buffer.alloc(PIECE_BYTES, index % 256))
  await store.put(`videos/film-${index}.mp4`, Readable.from(pieces), {
    mediaType: 'video/mp4',
    maxBytes: 1024 * 1024,
  })
  process.send?.(index)
}
