import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
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
  Buffer.from(payload())
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

t.test('a released batch over several files says the same as before, once they can be read', async (t) => {
  const directory = newDirectory(t)
  const { log, lines } = keepingLog()
  await openAndAbandon({ directory, log, segmentBytes: SEGMENT_BYTES }, async (journal) => {
    for (let at = 0; at < SETTLEMENTS; at++) {
      journal.settle(null, settlement(`earlier-${at}`))
      await written()
    }
  })
  let isAway = false
  const files: JournalFiles = {
    ...diskFiles,
    readAt(path, target, position) {
      if (isAway) throw Object.assign(new Error('too many open files'), { code: 'EMFILE' })
      return diskFiles.readAt(path, target, position)
    },
  }
  const journal = await openJournal({ directory, log, files, segmentBytes: SEGMENT_BYTES })
  t.teardown(() => journal.close())
  for (let at = 0; at < SETTLEMENTS; at++) {
    journal.settle(null, settlement(`now-${at}`))
    await written()
  }
  // One of an earlier process, one of this one.
  for (const name of ['earlier', 'now']) {
    const batch = journal.take()!
    const ids = idsIn(batch)
    t.same([ids.length, ids[0], ids.at(-1)], [SETTLEMENTS, `${name}-0`, `${name}-${SETTLEMENTS - 1}`])
    journal.release(batch)
    isAway = true
    t.throws(() => batch.payload(), { code: 'EMFILE' })
    isAway = false
    t.same(idsIn(batch), ids)
    journal.release(batch)
    journal.confirm(batch)
    t.equal(journal.depth().settlementsUnbooked, name === 'earlier' ? SETTLEMENTS : 0)
  }
  t.same(lines, [])
})

t.test('damage that came to the file of a released batch leaves the rest of it', async (t) => {
  const directory = newDirectory(t)
  const journal = await openJournal({ directory, log: keepingLog().log })
  t.teardown(() => journal.close())
  for (let at = 0; at < 3; at++) {
    journal.settle(null, settlement(`call-${at}`))
    await written()
  }
  const batch = journal.take()!
  journal.release(batch)
  const [name] = readdirSync(directory).filter((file) => file.endsWith('.journal'))
  const path = join(directory, name!)
  const bytes = readFileSync(path)
  bytes.write('x', bytes.indexOf('call-1'))
  writeFileSync(path, bytes)
  t.same([batch.count, idsIn(batch)], [3, ['call-0', 'call-2']])
})
