import t from 'tap'
import { type LimitReport, limitMessage, MAX_LIMIT_ROWS } from '../../../schemas/accounts/limits.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { decodeMessage, ReportAssembler, splitReport } from '../../../src/limits/codec.ts'

/** What NATS takes by default. */
const MAX_PAYLOAD_BYTES = 1024 * 1024

const countsOf = (rows: number): [string, number][] =>
  Array.from({ length: rows }, (_, at) => [newId('acc'), at + 1])

const reportOf = (held: number, ...admitted: number[]): Omit<LimitReport, 'more'> => ({
  type: 'report',
  from: 'one',
  leader: 'one',
  calls: true,
  leaves: false,
  gone: null,
  heard: 7,
  held: countsOf(held),
  admitted: admitted.map((rows, at) => ({ by: 'one', age_ms: at, counts: countsOf(rows) })),
})

const CASES: readonly (readonly number[])[] = [
  [0],
  [3, 2],
  [MAX_LIMIT_ROWS],
  [MAX_LIMIT_ROWS + 1],
  [10, MAX_LIMIT_ROWS, 1],
  [3 * MAX_LIMIT_ROWS + 5, 2 * MAX_LIMIT_ROWS + 1, 12],
]

for (const [held = 0, ...admitted] of CASES)
  t.test(`${held} held, ${admitted.join(' and ') || 'none'} admitted`, async (t) => {
    const report = reportOf(held, ...admitted)
    const letters = splitReport(report).map((part) => Buffer.from(JSON.stringify(part)))
    t.ok(letters.every(({ length }) => length < MAX_PAYLOAD_BYTES))
    const read = letters.map((letter) => decodeMessage(letter) as LimitReport)
    t.same(
      read.map(({ more }) => more),
      letters.map((_, at) => at < letters.length - 1),
    )
    const parts = new ReportAssembler()
    const heldIn = read.map((part) => parts.add(part))
    t.ok(heldIn.slice(0, -1).every((slots) => slots === null))
    t.same([...heldIn.at(-1)!], report.held)
    t.same(
      read.flatMap((part) => part.admitted.flatMap(({ counts }) => counts)),
      report.admitted.flatMap(({ counts }) => counts),
    )
    t.same(parts.add({ ...reportOf(0), more: false }), new Map(), 'the next report stands for itself')
  })

t.test('what no process would say is no message', async (t) => {
  for (const text of ['', '{', '[]', '{"type":"report"}', '{"type":"flush","from":1,"token":2}'])
    t.equal(decodeMessage(Buffer.from(text)), null, text)
  const flush = { type: 'flush', from: 'one', token: 3 } as const
  t.same(limitMessage.parse(flush), decodeMessage(Buffer.from(JSON.stringify(flush))))
})
