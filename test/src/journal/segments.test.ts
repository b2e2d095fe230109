import { copyFileSync, readdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { diskFiles } from '../../../src/journal/files.ts'
import { openJournal } from '../../../src/journal/journal.ts'
import { until } from '../../support/eventually.ts'
import { admit, confirmAll, keepingLog, newDirectory, settlement, takeAll, written } from './support.ts'

const SEGMENT_BYTES = 4_000
const segmentsIn = (directory: string) => readdirSync(directory).filter((name) => name.endsWith('.journal'))

const settleMany = async (journal: Awaited<ReturnType<typeof openJournal>>, name: string, calls: number) => {
  for (let at = 0; at < calls; at++) {
    journal.settle(await admit(journal, `${name}-${at}`), settlement(`${name}-${at}`))
    await written()
  }
}

t.test('files go once all in them is booked, and a clean end leaves none', async (t) => {
  const directory = newDirectory(t)
  const journal = await openJournal({
    directory,
    log: keepingLog().log,
    segmentBytes: SEGMENT_BYTES,
    syncIntervalMs: 1,
  })
  await settleMany(journal, 'first', 40)
  t.ok(segmentsIn(directory).length > 5)
  t.equal(journal.depth().settlementsUnbooked, 40)
  t.equal(confirmAll(journal), 40)
  // A file goes when what was written after it is on the disk.
  await until('old files have gone', async () => {
    if (segmentsIn(directory).length <= 2) return true
    await settleMany(journal, 'second', 1)
    confirmAll(journal)
    return false
  })
  t.match(journal.depth(), { open: 0, settlementsUnbooked: 0 })
  await journal.close()
  t.same(readdirSync(directory), ['id', 'spare'])
})

t.test('nothing unbooked is removed at a clean end', async (t) => {
  const directory = newDirectory(t)
  const journal = await openJournal({ directory, log: keepingLog().log, segmentBytes: SEGMENT_BYTES })
  await settleMany(journal, 'call', 20)
  const first = journal.take()
  await journal.close()
  const again = await openJournal({ directory, log: keepingLog().log })
  t.teardown(() => again.close())
  t.equal(again.recovered.unbooked, 20, `${first?.count} of them were taken`)
  t.equal(takeAll(again).length, 20)
})

t.test('one long call does not hold back the files behind it, and is not forgotten', async (t) => {
  const directory = newDirectory(t)
  const options = { directory, log: keepingLog().log, segmentBytes: SEGMENT_BYTES, syncIntervalMs: 1 }
  // Files go between turns of the event loop alone: what is copied below is what a kill would leave at one moment.
  const remove: typeof diskFiles.remove = (path, done) => {
    unlinkSync(path)
    setImmediate(done, null)
  }
  const journal = await openJournal({ ...options, files: { ...diskFiles, remove } })
  t.teardown(() => journal.close())
  const long = await admit(journal, 'long')
  await admit(journal, 'forgotten')
  let rounds = 0
  for (; rounds < 30 || journal.depth().bytes > 15 * SEGMENT_BYTES; rounds++) {
    await settleMany(journal, `round-${rounds}`, 4)
    confirmAll(journal)
    // Beyond the thirty it is the disk that is waited for.
    await sleep(rounds < 30 ? 1 : 20)
  }
  t.notOk(segmentsIn(directory).includes('000000000001.journal'))
  t.equal(journal.depth().open, 2)
  journal.settle(long, settlement('long'))
  await written()
  // As a kill would leave it now.
  const left = newDirectory(t)
  for (const name of segmentsIn(directory)) copyFileSync(join(directory, name), join(left, name))
  const successor = await openJournal({ ...options, directory: left })
  t.teardown(() => successor.close())
  const rows = takeAll(successor).filter(({ request_id }) => !request_id.startsWith('round'))
  t.same(
    rows.map(({ request_id, status }) => [request_id, status]),
    [
      ['long', 'success'],
      ['forgotten', 'interrupted'],
    ],
  )
})

t.test('more than memory holds is read back from the files, in order and each once', async (t) => {
  const directory = newDirectory(t)
  const journal = await openJournal({ directory, log: keepingLog().log })
  // Long rows fill the memory with fewer of them.
  const CALLS = 5_000
  const error_message = 'x'.repeat(4_000)
  const early = Array.from({ length: 10 }, (_, at) => `early-${at}`)
  for (const id of early) journal.settle(null, settlement(id))
  await written()
  const taken = journal.take()
  t.equal(taken?.count, 10)
  for (let at = 0; at < CALLS; at++) {
    journal.settle(null, settlement(`call-${at}`, { error_message }))
    if (at % 50 === 0) await written()
  }
  await written()
  t.equal(journal.untaken, CALLS)
  const ids: string[] = []
  let cost = 0n
  let isLateWritten = false
  for (let batch = journal.take(); batch !== null; batch = journal.take()) {
    for (const line of Buffer.from(batch.payload()).toString().trim().split('\n'))
      ids.push(JSON.parse(line).request_id)
    for (const [id, each] of batch.costs) if (id.startsWith('acc_')) cost += each
    journal.confirm(batch)
    // What is written while the files are read comes in its turn.
    if (!isLateWritten) {
      isLateWritten = true
      journal.settle(null, settlement('late'))
      await written()
    }
  }
  t.same(ids, [...Array.from({ length: CALLS }, (_, at) => `call-${at}`), 'late'])
  t.equal(cost, 4_900_000n * BigInt(CALLS + 1))
  t.equal(journal.depth().settlementsUnbooked, 10)
  journal.confirm(taken!)
  await journal.close()
  t.same(readdirSync(directory), ['id', 'spare'])
})

t.test('when no file can be opened, calls are written down in the one that is open', async (t) => {
  const directory = newDirectory(t)
  let mayCreate = true
  const create = (path: string) => {
    if (mayCreate) return diskFiles.create(path)
    throw Object.assign(new Error('EMFILE: too many open files, open'), { code: 'EMFILE' })
  }
  const files = { ...diskFiles, create }
  const options = { directory, files, log: keepingLog().log, segmentBytes: SEGMENT_BYTES }
  const journal = await openJournal(options)
  t.teardown(() => journal.close())
  mayCreate = false
  await settleMany(journal, 'short', 20)
  t.equal(segmentsIn(directory).length, 1)
  t.ok(journal.depth().bytes > 2 * SEGMENT_BYTES)
  mayCreate = true
  await settleMany(journal, 'again', 1)
  t.equal(segmentsIn(directory).length, 2, 'the next is begun as soon as that works')
  t.equal(takeAll(journal).length, 21)
})
