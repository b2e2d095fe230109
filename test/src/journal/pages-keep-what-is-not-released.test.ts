import fc from 'fast-check'
import t from 'tap'
import { type JournalBatch, openJournal } from '../../../src/journal/journal.ts'
import { type PageSlice, Pages } from '../../../src/journal/pages.ts'
import { everyRun } from '../../support/every-run.ts'
import { keepingLog, newDirectory, settlement, written } from './support.ts'

const SEED = 20_261_122
const PAGE_BYTES = 16 * 1024

const textOf = ({ page, from, to }: PageSlice): string => page.memory.toString('latin1', from, to)

t.test('what is kept stays as it was until it is released, whatever comes and goes beside it', async (t) => {
  const step = fc.oneof(
    fc.record({ bytes: fc.integer({ min: 1, max: PAGE_BYTES / 4 }) }),
    fc.record({ bytes: fc.integer({ min: PAGE_BYTES - 2, max: PAGE_BYTES + 2 }) }),
    fc.record({ release: fc.nat() }),
  )
  everyRun(t, { seed: SEED, numRuns: 150 }, [fc.array(step, { maxLength: 60 })], (steps) => {
    const pages = new Pages(PAGE_BYTES)
    const held: { kept: PageSlice; text: string }[] = []
    steps.forEach((step, at) => {
      if ('bytes' in step) {
        const text = String.fromCharCode(33 + (at % 90)).repeat(step.bytes)
        held.push({ kept: pages.copy(Buffer.from(text, 'latin1')), text })
      } else if (held.length > 0) {
        const [{ kept }] = held.splice(step.release % held.length, 1) as [(typeof held)[0]]
        pages.release(kept)
      }
      for (const { kept, text } of held)
        if (textOf(kept) !== text) throw new Error(`written over at step ${at}`)
    })
  })
})

t.test('one page serves for ever where all is released in time, neighbours side by side', async (t) => {
  const pages = new Pages(PAGE_BYTES)
  const first = pages.copy(Buffer.from('first'))
  const second = pages.copy(Buffer.from('second'))
  t.equal(second.page, first.page)
  t.equal(second.from, first.to)
  pages.release(first)
  pages.release(second)
  const memories = new Set<Buffer>()
  const MANY = 100
  for (let at = 0; at < MANY; at++) {
    const [one, other] = [pages.copy(Buffer.alloc(PAGE_BYTES - 1)), pages.copy(Buffer.alloc(2))]
    memories.add(one.page.memory).add(other.page.memory)
    pages.release(one)
    pages.release(other)
  }
  t.ok(memories.size <= 2, `${memories.size} pages for ${2 * MANY} pieces`)
})

t.test('a batch says the same until it is confirmed, released or not, whatever else comes', async (t) => {
  const journal = await openJournal({ directory: newDirectory(t), log: keepingLog().log })
  t.teardown(() => journal.close())
  const open: { batch: JournalBatch; said: string }[] = []
  const ids: string[] = []
  for (let round = 0; round < 120; round++) {
    for (let at = 0; at < 30; at++) {
      const id = `call-${round}-${at}`
      journal.settle(null, settlement(id, { error_message: id.repeat(40) }))
    }
    await written()
    for (let batch = journal.take(); batch !== null; batch = journal.take())
      open.push({ batch, said: Buffer.from(batch.payload()).toString() })
    // Its page is used again from now on, and its bytes are read back from the file.
    journal.release(open[round % open.length]!.batch)
    // The oldest stays open throughout; of the others some are confirmed out of turn.
    while (open.length > 6) {
      const [{ batch, said }] = open.splice(1 + (round % 5), 1) as [(typeof open)[0]]
      if (Buffer.from(batch.payload()).toString() !== said) throw new Error(`${batch.id} was written over`)
      for (const line of said.trim().split('\n')) ids.push(JSON.parse(line).request_id)
      journal.confirm(batch)
    }
  }
  for (const { batch, said } of open) {
    t.equal(Buffer.from(batch.payload()).toString(), said)
    for (const line of said.trim().split('\n')) ids.push(JSON.parse(line).request_id)
    journal.confirm(batch)
  }
  t.equal(new Set(ids).size, 120 * 30, 'each settlement is in a batch')
  t.equal(ids.length, 120 * 30, 'and in one')
  t.equal(journal.depth().settlementsUnbooked, 0)
})
