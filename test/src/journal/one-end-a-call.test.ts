import t from 'tap'
import { openJournal } from '../../../src/journal/journal.ts'
import { SETTLEMENT_MAX_CHARS } from '../../../src/journal/lines.ts'
import { admission, admit, keepingLog, newDirectory, settlement, takeAll, written } from './support.ts'

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

t.test('a call may end before its admission is written', async (t) => {
  const journal = await openJournal({ directory: newDirectory(t), log: keepingLog().log })
  t.teardown(() => journal.close())
  const order: string[] = []
  const ticket = journal.admit(admission('quick'), (error) => order.push(`written ${error}`))
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

t.test('one faulty follower of an admission does not stop the others', async (t) => {
  const { lines, log } = keepingLog()
  const journal = await openJournal({ directory: newDirectory(t), log })
  t.teardown(() => journal.close())
  journal.admit(admission('faulty'), () => {
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
  const [texts, shortened] = takeAll(journal)
  t.equal(texts?.error_message, text)
  t.equal(shortened?.cost, '4900000')
  t.ok(shortened!.error_message!.length < 1_000 && long.startsWith(shortened!.error_message!))
  t.ok(long.startsWith(shortened!.attempts[0]!.error_message!))
})

t.test('a closed journal refuses calls', async (t) => {
  const journal = await openJournal({ directory: newDirectory(t), log: keepingLog().log })
  await journal.close()
  await journal.close()
  await t.rejects(admit(journal, 'late'), /closed/)
})
