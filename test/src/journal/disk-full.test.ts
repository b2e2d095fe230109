import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { REJECTED_WAITING_MAX_CHARS, SPARE_BYTES } from '../../../src/journal/file-journal.ts'
import { diskFiles, type JournalFiles } from '../../../src/journal/files.ts'
import { openJournal } from '../../../src/journal/journal.ts'
import { SETTLEMENT_MAX_CHARS } from '../../../src/journal/lines.ts'
import { until } from '../../support/eventually.ts'
import { admit, keepingLog, newDirectory, settlement, takeAll, written } from './support.ts'

/** The real disk until it is called full; then half of a write gets through. */
function fillableFiles(): JournalFiles & { isFull: boolean } {
  const files = {
    ...diskFiles,
    isFull: false,
    write(file: number, bytes: Buffer, offset: number, length: number, position: number): number {
      if (!files.isFull) return diskFiles.write(file, bytes, offset, length, position)
      diskFiles.write(file, bytes, offset, length >> 1, position)
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
    },
  }
  return files
}

t.test('a full disk refuses calls, keeps what was settled, and is written when there is room', async (t) => {
  const files = fillableFiles()
  const { lines, log } = keepingLog()
  const options = { directory: newDirectory(t), log, files }
  const journal = await openJournal(options)
  const ticket = await admit(journal, 'before')
  files.isFull = true
  await t.rejects(admit(journal, 'during'), { code: 'ENOSPC' })
  await t.rejects(admit(journal, 'still'), { code: 'ENOSPC' }, 'at once, without another write')
  t.equal(journal.depth().isWritable, false)
  let isTold = false
  journal.settle(ticket, settlement('before'), () => {
    isTold = true
  })
  journal.settle(null, settlement('during', { status: 'rejected', cost: '0' }))
  await written()
  t.ok(isTold, 'the end of the call does not wait for the disk')
  t.equal(journal.depth().settlementsUnbooked, 2)
  t.equal(journal.take(), null, 'nothing is published before it is written')
  t.equal(lines.filter(({ level }) => level === 'error').length, 1, 'told once')
  let settledAgain = 0
  journal.onSettled(() => settledAgain++)
  files.isFull = false
  await until('the journal is written again', () => journal.depth().isWritable)
  t.equal(settledAgain, 1)
  await admit(journal, 'after')
  t.same(
    takeAll(journal).map(({ request_id }) => request_id),
    ['before', 'during'],
  )
  await journal.close()

  const again = await openJournal(options)
  t.teardown(() => again.close())
  t.same(
    takeAll(again).map(({ request_id, status }) => [request_id, status]),
    [
      ['before', 'success'],
      ['during', 'rejected'],
      ['after', 'interrupted'],
    ],
  )
  t.equal(again.recovered.corruptedBytes, 0)
})

t.test('rows of refused calls are bounded while the disk is full; all ends of calls are kept', async (t) => {
  const files = fillableFiles()
  const journal = await openJournal({ directory: newDirectory(t), log: keepingLog().log, files })
  t.teardown(() => journal.close())
  const ticket = await admit(journal, 'admitted')
  files.isFull = true
  await t.rejects(admit(journal, 'refused'), { code: 'ENOSPC' })
  const long = 'x'.repeat(SETTLEMENT_MAX_CHARS - 2_000)
  const enough = Math.ceil(REJECTED_WAITING_MAX_CHARS / long.length) + 10
  for (let at = 0; at < enough; at++)
    journal.settle(null, settlement(`rejected-${at}`, { status: 'rejected', cost: '0', error_message: long }))
  t.ok(journal.depth().dropped > 0)
  journal.settle(ticket, settlement('admitted'))
  files.isFull = false
  await until('the journal is written again', () => journal.depth().isWritable)
  const ids = takeAll(journal).map(({ request_id }) => request_id)
  t.ok(ids.includes('admitted'))
  t.equal(ids.length, enough + 1 - journal.depth().dropped)
})

const full = () => Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })

/** A disk with room for so many bytes in all files of the directory. */
function smallDisk(directory: string, capacityBytes: number): JournalFiles {
  const used = () =>
    readdirSync(directory).reduce((sum, name) => sum + statSync(join(directory, name)).size, 0)
  return {
    ...diskFiles,
    write(file, bytes, offset, length, position) {
      if (used() + length > capacityBytes) throw full()
      return diskFiles.write(file, bytes, offset, length, position)
    },
    replace(path, text) {
      if (used() + text.length > capacityBytes) throw full()
      diskFiles.replace(path, text)
    },
  }
}

const CAPACITY_BYTES = 4 * SPARE_BYTES

t.test('a disk smaller than one file of the journal frees itself once everything is booked', async (t) => {
  const directory = newDirectory(t)
  const options = { directory, log: keepingLog().log, files: smallDisk(directory, CAPACITY_BYTES) }
  const journal = await openJournal(options)
  const fill = async () => {
    for (let at = 0; ; at++) {
      try {
        journal.settle(await admit(journal, `call-${at}`), settlement(`call-${at}`))
      } catch {
        return at
      }
    }
  }
  await admit(journal, 'open')
  t.ok((await fill()) > 1)
  await written()
  t.equal(journal.depth().isWritable, false)
  // What waits in memory is written as room comes; each batch that is booked makes some.
  await until('all is written and booked', () => {
    for (let batch = journal.take(); batch !== null; batch = journal.take()) journal.confirm(batch)
    return journal.depth().isWritable && journal.depth().settlementsUnbooked === 0
  })
  t.ok(journal.depth().bytes <= CAPACITY_BYTES)
  journal.settle(await admit(journal, 'after'), settlement('after'))
  await written()
  await journal.close()
  const again = await openJournal(options)
  t.teardown(() => again.close())
  t.same(
    takeAll(again).map(({ request_id, status }) => [request_id, status]),
    [
      ['after', 'success'],
      ['open', 'interrupted'],
    ],
    'neither what came since nor the call that was open is lost',
  )
})
