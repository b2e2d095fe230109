import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openJournal } from '../../../src/journal/journal.ts'
import {
  admit,
  confirmAll,
  keepingLog,
  newDirectory,
  openAndAbandon,
  settlement,
  takeAll,
  written,
} from './support.ts'

const segmentIn = (directory: string) => {
  const names = readdirSync(directory)
    .filter((name) => name.endsWith('.journal'))
    .sort()
  return join(directory, names[0]!)
}

async function reopen(t: Test, directory: string) {
  const { lines, log } = keepingLog()
  const journal = await openJournal({ directory, log })
  t.teardown(() => journal.close())
  return { journal, lines }
}

/** Three groups: one admission each, the first two settled in the turn after. */
async function threeCalls(directory: string) {
  await openAndAbandon({ directory, log: keepingLog().log }, async (journal) => {
    for (const id of ['one', 'two']) {
      journal.settle(await admit(journal, id), settlement(id))
      await written()
    }
    await admit(journal, 'three')
  })
}

t.test('an open call becomes an interrupted row at no charge; what is settled is sent again', async (t) => {
  const directory = newDirectory(t)
  await threeCalls(directory)
  const { journal } = await reopen(t, directory)
  t.match(journal.recovered, { interrupted: 1, unbooked: 3, tornBytes: 0, corruptedBytes: 0 })
  t.equal(journal.recoveredCost('acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF'), 9_800_000n)
  const rows = takeAll(journal)
  t.same(
    rows.map(({ request_id, status, cost }) => [request_id, status, cost]),
    [
      ['one', 'success', '4900000'],
      ['two', 'success', '4900000'],
      ['three', 'interrupted', '0'],
    ],
  )
  t.match(rows[2], { usage_source: 'none', attempts_count: null, error_code: null, estimate: '96000000' })
})

t.test('opening again and again adds nothing', async (t) => {
  const directory = newDirectory(t)
  await threeCalls(directory)
  for (let time = 0; time < 3; time++)
    await openAndAbandon({ directory, log: keepingLog().log }, () => undefined)
  const { journal } = await reopen(t, directory)
  t.same(
    takeAll(journal).map(({ request_id }) => request_id),
    ['one', 'two', 'three'],
  )
})

t.test('what is booked is not published again, and its cost is not owed', async (t) => {
  const directory = newDirectory(t)
  await openAndAbandon({ directory, log: keepingLog().log }, async (journal) => {
    journal.settle(null, settlement('one'))
    await written()
    confirmAll(journal)
    // The next write carries the mark.
    journal.settle(null, settlement('two'))
    await written()
  })
  const { journal } = await reopen(t, directory)
  t.same(
    takeAll(journal).map(({ request_id }) => request_id),
    ['two'],
  )
  t.equal(journal.recoveredCost('acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF'), 4_900_000n)
})

t.test('the recovered cost is given up as batches are confirmed', async (t) => {
  const directory = newDirectory(t)
  await threeCalls(directory)
  const { journal } = await reopen(t, directory)
  journal.settle(null, settlement('four'))
  await written()
  const [recovered, own] = [journal.take()!, journal.take()!]
  t.equal(recovered.costs.get('acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF'), 9_800_000n)
  t.equal(own.costs.get('acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF'), 4_900_000n, 'apart from what this process adds')
  journal.confirm(own)
  t.equal(journal.recoveredCost('acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF'), 9_800_000n)
  journal.confirm(recovered)
  journal.confirm(recovered)
  t.equal(journal.recoveredCost('acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF'), 0n)
  t.equal(journal.depth().settlementsUnbooked, 0)
})

t.test('half a write at the end is left out and told', async (t) => {
  const directory = newDirectory(t)
  await threeCalls(directory)
  const segment = segmentIn(directory)
  const whole = readFileSync(segment)
  for (let cut = 1; cut < whole.length; cut += 97) {
    const copy = newDirectory(t)
    writeFileSync(join(copy, '000000000001.journal'), whole.subarray(0, whole.length - cut))
    const { journal, lines } = await reopen(t, copy)
    const ids = takeAll(journal).map(({ request_id }) => request_id)
    t.same(ids, ['one', 'two', 'three'].slice(0, ids.length), `${cut} bytes missing`)
    t.same(
      lines.filter(({ level }) => level === 'error'),
      [],
    )
    t.equal(
      lines.some(({ level }) => level === 'warn'),
      journal.recovered.tornBytes > 0,
    )
  }
})

t.test('damage in the middle costs what it hit and is logged', async (t) => {
  const directory = newDirectory(t)
  await threeCalls(directory)
  const segment = segmentIn(directory)
  const bytes = readFileSync(segment)
  const hit = bytes.indexOf('"two","account_id"')
  bytes[hit] = bytes[hit]! ^ 0xff
  writeFileSync(segment, bytes)
  const { journal, lines } = await reopen(t, directory)
  t.ok(journal.recovered.corruptedBytes > 0)
  t.equal(lines.filter(({ level }) => level === 'error').length > 0, true)
  // The admission of the second call is lost, its end is not.
  t.same(
    takeAll(journal).map(({ request_id }) => request_id),
    ['one', 'two', 'three'],
  )
})

t.test('a damaged end of a call is an interrupted row', async (t) => {
  const directory = newDirectory(t)
  await threeCalls(directory)
  const segment = segmentIn(directory)
  const bytes = readFileSync(segment)
  const hit = bytes.lastIndexOf('"two","account_id"')
  bytes[hit] = bytes[hit]! ^ 0xff
  writeFileSync(segment, bytes)
  const { journal } = await reopen(t, directory)
  t.same(
    takeAll(journal).map(({ request_id, status }) => [request_id, status]),
    [
      ['one', 'success'],
      ['two', 'interrupted'],
      ['three', 'interrupted'],
    ],
  )
})

t.test('an emptied file is no obstacle', async (t) => {
  const directory = newDirectory(t)
  await threeCalls(directory)
  truncateSync(segmentIn(directory), 0)
  const { journal } = await reopen(t, directory)
  t.same(takeAll(journal), [])
})

t.test('ids of messages are never used for other content', async (t) => {
  const directory = newDirectory(t)
  const ids: string[] = []
  for (let time = 0; time < 3; time++) {
    const { journal } = await reopen(t, directory)
    journal.settle(null, settlement(`call-${time}`))
    await written()
    for (let batch = journal.take(); batch !== null; batch = journal.take()) {
      t.ok(batch.id.startsWith(`${journal.id}.`))
      ids.push(batch.id)
    }
    await journal.close()
  }
  t.equal(new Set(ids).size, ids.length)
})
