/** The local file of settlements: pages, segments, ownership, recovery. */

import { spawn } from 'node:child_process'
import { on, once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import {
  admission,
  type Settlement,
  settlement as settlementSchema,
} from '../../../schemas/call-log/columns.ts'
import { CALL_STATUSES, UNIT_TYPES } from '../../../schemas/call-log/words.ts'
import { REJECTED_WAITING_MAX_CHARS, SPARE_BYTES } from '../../../src/journal/file-journal.ts'
import { diskFiles, type JournalFiles } from '../../../src/journal/files.ts'
import { type JournalBatch, openJournal } from '../../../src/journal/journal.ts'
import {
  INTERRUPTED_MESSAGE,
  printAdmissionLine,
  printIdentity,
  printSettlementLine,
  SETTLEMENT_MAX_CHARS,
} from '../../../src/journal/lines.ts'
import { openOrphans, retireJournal } from '../../../src/journal/orphans.ts'
import { claimDirectory } from '../../../src/journal/owner.ts'
import { type PageSlice, Pages } from '../../../src/journal/pages.ts'
import { Random } from '../../simulation/random.ts'
import { ANY_CHARACTER } from '../../support/any-character.ts'
import { until } from '../../support/eventually.ts'
import { everyRun } from '../../support/every-run.ts'
import {
  admit,
  confirmAll,
  keepingLog,
  admission as makeAdmission,
  newDirectory,
  openAndAbandon,
  settlement,
  takeAll,
  written,
} from './support.ts'

t.test('segments', async (t) => {
  const SEGMENT_BYTES = 4_000
  const segmentsIn = (directory: string) => readdirSync(directory).filter((name) => name.endsWith('.journal'))

  const settleMany = async (
    journal: Awaited<ReturnType<typeof openJournal>>,
    name: string,
    calls: number,
  ) => {
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
})

t.test('pages keep what is not released', async (t) => {
  const SEED = 20_261_122
  const PAGE_BYTES = 16 * 1024

  const textOf = ({ page, from, to }: PageSlice): string => page.memory.toString('latin1', from, to)

  t.test(
    'what is kept stays as it was until it is released, whatever comes and goes beside it',
    async (t) => {
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
    },
  )

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
})

t.test('settlement line says all', async (t) => {
  const text = fc.oneof(fc.string({ maxLength: 60 }), fc.string({ unit: ANY_CHARACTER, maxLength: 30 }))
  const orNull = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: null })
  const count = fc.oneof(fc.constant(0), fc.nat())
  /** Seen again with other names beside it. */
  const name = fc.oneof(text, fc.constantFrom('a', 'b'))
  const units = fc.bigInt().map(String)

  const settlements: fc.Arbitrary<Settlement> = fc.record({
    request_id: text,
    account_id: name,
    key_id: name,
    model: name,
    protocol: name,
    stream: fc.boolean(),
    status: fc.constantFrom(...CALL_STATUSES),
    error_code: orNull(text),
    error_message: orNull(text),
    input_tokens: count,
    output_tokens: count,
    cached_tokens: count,
    cache_write_tokens: count,
    reasoning_tokens: count,
    server_tool_calls: count,
    unit_count: orNull(text),
    unit_type: orNull(fc.constantFrom(...UNIT_TYPES)),
    cost: units,
    estimate: units,
    session_id: orNull(text),
    usage_source: fc.constantFrom('upstream', 'estimate', 'none'),
    submitted_at: fc.nat(),
    created_at: fc.nat(),
    latency_ms: fc.nat(),
    ttfb_ms: orNull(count),
    channel_id: orNull(text),
    attempts_count: orNull(count),
    call_count: fc.integer({ min: 1 }),
    upstream_cost: orNull(units),
    detail: orNull(text),
    task_id: orNull(text),
    result_urls: fc.array(text, { maxLength: 2 }),
    result_expires_at: orNull(fc.nat()),
    attempts: fc.array(
      fc.record({
        seq: fc.integer({ min: 1, max: 9 }),
        created_at: text,
        latency_ms: fc.nat(),
        error_code: orNull(text),
        error_message: orNull(text),
      }),
      { maxLength: 3 },
    ),
  })

  t.test('what a line leaves out is what the schema fills in', async (t) => {
    everyRun(t, { numRuns: 300 }, [settlements], (value) => {
      const line = printSettlementLine(value)
      if (line.indexOf('\n') !== line.length - 1) throw new Error('not one line')
      t.same(settlementSchema.parse(JSON.parse(line)), value)
    })
  })

  t.test('an admission comes back as it was', async (t) => {
    const admissions = fc.record({
      request_id: text,
      account_id: name,
      key_id: name,
      model: name,
      protocol: name,
      stream: fc.boolean(),
      submitted_at: fc.nat(),
      estimate: units,
      session_id: orNull(text),
    })
    fc.assert(
      fc.property(admissions, (value) =>
        t.same(admission.parse(JSON.parse(printAdmissionLine(printIdentity(value)))), value),
      ),
      {
        numRuns: 200,
      },
    )
  })
})

t.test('one end a call', async (t) => {
  t.test('a second end of one call is left out and told', async (t) => {
    const { lines, log } = keepingLog()
    const journal = await openJournal({ directory: newDirectory(t), log })
    t.teardown(() => journal.close())
    const ticket = await admit(journal, 'one')
    journal.settle(ticket, settlement('one', { cost: '1' }))
    journal.settle(ticket, settlement('one', { cost: '2' }))
    await written()
    t.same(
      takeAll(journal).map(({ cost }) => cost),
      ['1'],
    )
    t.match(lines, [{ level: 'error', details: { request_id: 'one' } }])
  })

  t.test('a call may end before its makeAdmission is written', async (t) => {
    const journal = await openJournal({ directory: newDirectory(t), log: keepingLog().log })
    t.teardown(() => journal.close())
    const order: string[] = []
    const ticket = journal.admit(makeAdmission('quick'), (error) => order.push(`written ${error}`))
    journal.settle(ticket, settlement('quick', { status: 'interrupted', cost: '0' }))
    order.push('settled')
    t.equal(journal.depth().settlementsUnbooked, 1)
    await written()
    t.same(order, ['settled', 'written null'])
    t.equal(journal.depth().open, 0)
    t.equal(takeAll(journal).length, 1)
  })

  t.test('all of one turn of the event loop is one write', async (t) => {
    const journal = await openJournal({ directory: newDirectory(t), log: keepingLog().log })
    t.teardown(() => journal.close())
    let writes = 0
    journal.onSettled(() => writes++)
    const tickets = await Promise.all(Array.from({ length: 100 }, (_, at) => admit(journal, `call-${at}`)))
    for (const [at, ticket] of tickets.entries()) journal.settle(ticket, settlement(`call-${at}`))
    await written()
    t.equal(writes, 1)
    t.equal(journal.take()?.count, 100)
  })

  t.test('one faulty follower of an makeAdmission does not stop the others', async (t) => {
    const { lines, log } = keepingLog()
    const journal = await openJournal({ directory: newDirectory(t), log })
    t.teardown(() => journal.close())
    journal.admit(makeAdmission('faulty'), () => {
      throw new Error('a fault elsewhere')
    })
    t.ok(await admit(journal, 'fine'))
    t.match(lines, [{ level: 'error', details: { request_id: 'faulty' } }])
  })

  t.test('who waits for the end of a call is called once, after its write, faulty ones aside', async (t) => {
    const { lines, log } = keepingLog()
    const journal = await openJournal({ directory: newDirectory(t), log })
    const ticket = await admit(journal, 'one')
    const told: string[] = []
    const tell = (name: string) => () => void told.push(`${name}, ${journal.untaken} written`)
    const faulty = () => {
      throw new Error('a fault elsewhere')
    }
    journal.settle(null, settlement('two'), faulty)
    journal.settle(ticket, settlement('one'), tell('first'))
    journal.settle(ticket, settlement('one'), tell('second end'))
    t.same(told, [])
    await written()
    t.same(told, ['first, 2 written', 'second end, 2 written'])
    await written()
    t.equal(told.length, 2)
    t.match(lines, [{ level: 'error', details: { request_id: 'one' } }, { level: 'error' }])
    await journal.close()
    journal.settle(null, settlement('late'), tell('late'))
    await written()
    t.match(told[2], /^late/, 'a client is not left waiting for a journal that is closed')
  })

  t.test('texts of any kind come back as they were, and very long ones shortened', async (t) => {
    const journal = await openJournal({ directory: newDirectory(t), log: keepingLog().log })
    t.teardown(() => journal.close())
    const text = 'line\nbreak, "quotes", \u2028, \u{1f4b8}, \u0000 and half a pair: \ud800'
    const attempt = {
      seq: 1,
      created_at: '2026-01-01T00:00:00.000Z',
      latency_ms: 1,
      error_code: 'upstream_error',
    }
    const long = 'ü'.repeat(SETTLEMENT_MAX_CHARS)
    journal.settle(null, settlement('texts', { error_message: text }))
    journal.settle(
      null,
      settlement('long', { error_message: long, attempts: [{ ...attempt, error_message: long }] }),
    )
    await written()
    const [texts, shorten] = takeAll(journal)
    t.equal(texts?.error_message, text)
    t.equal(shorten?.cost, '4900000')
    t.ok(shorten!.error_message!.length < 1_000 && long.startsWith(shorten!.error_message!))
    t.ok(long.startsWith(shorten!.attempts[0]!.error_message!))
  })

  t.test('a closed journal refuses calls', async (t) => {
    const journal = await openJournal({ directory: newDirectory(t), log: keepingLog().log })
    await journal.close()
    await journal.close()
    await t.rejects(admit(journal, 'late'), /closed/)
  })
})

t.test('recovery', async (t) => {
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
})

t.test('owner', async (t) => {
  const PROGRAM = fileURLToPath(new URL('./admit-until-killed.ts', import.meta.url))

  async function startHolder(t: Test, directory: string) {
    const child = spawn(process.execPath, [PROGRAM, directory, 'holder'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    t.teardown(() => child.kill('SIGKILL'))
    for await (const [chunk] of on(child.stdout, 'data')) if (String(chunk).includes('admitted')) break
    child.stdout.resume()
    return child
  }

  t.test('a directory belongs to one living process', async (t) => {
    const directory = newDirectory(t)
    const child = await startHolder(t, directory)
    await t.rejects(claimDirectory(directory, 100), new RegExp(`in use by process ${child.pid}`))
  })

  t.test('a successor waits for its predecessor to end', async (t) => {
    const directory = newDirectory(t)
    const child = await startHolder(t, directory)
    const opening = openJournal({ directory, log: keepingLog().log })
    child.kill('SIGKILL')
    const journal = await opening
    t.ok(journal.recovered.unbooked > 0)
    await journal.close()
  })

  t.test('a pid that was given out again is nobody', async (t) => {
    const directory = newDirectory(t)
    writeFileSync(join(directory, 'owner'), '1 an-earlier-boot 1')
    await claimDirectory(directory, 100)
  })

  t.test('journals of workers that are no more are published too, and then removed', async (t) => {
    const root = newDirectory(t)
    const { log } = keepingLog()
    for (const name of ['gateway-0', 'gateway-1', 'gateway-2'])
      await openAndAbandon({ directory: join(root, name), log }, async (journal) => {
        journal.settle(await admit(journal, name), settlement(name))
      })
    const orphans = await openOrphans(root, ['gateway-0'], log)
    const [one, two] = orphans
    t.equal(orphans.length, 2)
    t.equal(confirmAll(one!.journal), 1)
    t.same(
      takeAll(two!.journal).map(({ request_id }) => request_id),
      ['gateway-2'],
    )
    t.equal(await retireJournal(one!), true)
    t.equal(await retireJournal(two!), false, 'taken, and not booked')
    t.notOk(existsSync(one!.directory))
    t.same(readdirSync(root).sort(), ['gateway-0', 'gateway-2'])
  })
})

t.test('admitted calls outlive a kill', async (t) => {
  const ROUNDS = 6
  const LIFE_MAX_LINES = 2_000
  /** Another one each day; `SEED=N` repeats a run. */
  const SEED = Number(process.env.SEED ?? Math.floor(Date.now() / 86_400_000))
  const lives = new Random(SEED)
  const PROGRAM = fileURLToPath(new URL('./admit-until-killed.ts', import.meta.url))

  t.test(`what a process called written is found after SIGKILL at any moment (SEED=${SEED})`, async (t) => {
    const directory = newDirectory(t)
    const admitted = new Set<string>()
    const settled = new Set<string>()
    for (let round = 0; round < ROUNDS; round++) {
      const child = spawn(process.execPath, [PROGRAM, directory, String(round)], {
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      t.teardown(() => child.kill('SIGKILL'))
      const lines = createInterface({ input: child.stdout })
      lines.on('line', (line) => {
        const [word, id = ''] = line.split(' ')
        if (word === 'admitted') admitted.add(id)
        if (word === 'settled') settled.add(id)
      })
      await new Promise<void>((resolve) => {
        let left = lives.int(1, LIFE_MAX_LINES)
        lines.on('line', () => {
          if (--left === 0) resolve()
        })
      })
      child.kill('SIGKILL')
      await once(lines, 'close')
    }
    const { lines, log } = keepingLog()
    const journal = await openJournal({ directory, log })
    t.teardown(() => journal.close())
    const found = takeAll(journal)
    const byId = new Map(found.map((row) => [row.request_id, row]))
    t.equal(byId.size, found.length, 'no call is there twice')
    t.ok(admitted.size > 0 && settled.size > 0)
    t.same(
      [...admitted].filter((id) => !byId.has(id)),
      [],
      'every admitted call is there',
    )
    t.same(
      [...settled].filter((id) => byId.get(id)?.status !== 'success'),
      [],
      'with the end that was written',
    )
    const open = found.filter(({ status }) => status === 'interrupted')
    t.ok(open.length > 0)
    t.ok(open.every(({ cost, error_message }) => cost === '0' && error_message === INTERRUPTED_MESSAGE))
    t.equal(journal.depth().open, 0)
    t.same(
      lines.filter(({ level }) => level === 'error'),
      [],
    )
  })
})

t.test('disk full', async (t) => {
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

  t.test(
    'a full disk refuses calls, keeps what was settled, and is written when there is room',
    async (t) => {
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
    },
  )

  t.test(
    'rows of refused calls are bounded while the disk is full; all ends of calls are kept',
    async (t) => {
      const files = fillableFiles()
      const journal = await openJournal({ directory: newDirectory(t), log: keepingLog().log, files })
      t.teardown(() => journal.close())
      const ticket = await admit(journal, 'admitted')
      files.isFull = true
      await t.rejects(admit(journal, 'refused'), { code: 'ENOSPC' })
      const long = 'x'.repeat(SETTLEMENT_MAX_CHARS - 2_000)
      const enough = Math.ceil(REJECTED_WAITING_MAX_CHARS / long.length) + 10
      for (let at = 0; at < enough; at++)
        journal.settle(
          null,
          settlement(`rejected-${at}`, { status: 'rejected', cost: '0', error_message: long }),
        )
      t.ok(journal.depth().dropped > 0)
      journal.settle(ticket, settlement('admitted'))
      files.isFull = false
      await until('the journal is written again', () => journal.depth().isWritable)
      const ids = takeAll(journal).map(({ request_id }) => request_id)
      t.ok(ids.includes('admitted'))
      t.equal(ids.length, enough + 1 - journal.depth().dropped)
    },
  )

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
})

t.test('files out of reach lose no settlement', async (t) => {
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
    await openAndAbandon(
      { directory, log: keepingLog().log, segmentBytes: SEGMENT_BYTES },
      async (journal) => {
        for (const id of ids) {
          journal.settle(null, settlement(id))
          await written()
        }
      },
    )
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
})
