import t from 'tap'
import { diskFiles, type JournalFiles } from '../../../src/journal/files.ts'
import { type JournalBatch, openJournal } from '../../../src/journal/journal.ts'
import { keepingLog, newDirectory, openAndAbandon, settlement, written } from './support.ts'

const SEGMENT_BYTES = 2_000
const SETTLEMENTS = 60

/** Every second reading fails, as when clients have taken every file the process may open. */
function failingFiles(): JournalFiles & { failures: number } {
  let readings = 0
  const files = {
    ...diskFiles,
    failures: 0,
    readAt(path: string, target: Buffer, position: number): number {
      if (++readings % 2 === 0) {
        files.failures++
        throw Object.assign(new Error('too many open files'), { code: 'EMFILE' })
      }
      return diskFiles.readAt(path, target, position)
    },
  }
  return files
}

const idsIn = ({ payload }: JournalBatch): string[] =>
  Buffer.from(payload)
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).request_id)

t.test('a segment that cannot be opened for a moment costs no settlement before it', async (t) => {
  const directory = newDirectory(t)
  const ids = Array.from({ length: SETTLEMENTS }, (_, at) => `call-${at}`)
  await openAndAbandon({ directory, log: keepingLog().log, segmentBytes: SEGMENT_BYTES }, async (journal) => {
    for (const id of ids) {
      journal.settle(null, settlement(id))
      await written()
    }
  })
  const files = failingFiles()
  const journal = await openJournal({ directory, log: keepingLog().log, files })
  t.teardown(() => journal.close())
  const taken: string[] = []
  while (journal.untaken > 0) {
    try {
      const batch = journal.take()
      if (batch === null) break
      taken.push(...idsIn(batch))
      journal.confirm(batch)
    } catch (error) {
      t.match(error, { code: 'EMFILE' })
    }
  }
  t.same(taken, ids, 'each of them once, in order')
  t.ok(files.failures > 5, `${files.failures} readings failed`)
  t.equal(journal.depth().settlementsUnbooked, 0)
})
