import t from 'tap'
import { everySplit, parsePieces } from './parse.ts'
import { RECORDED_RESPONSES } from './recorded-responses.ts'

for (const recorded of RECORDED_RESPONSES) {
  t.test(`${recorded.name}: split at every byte, same answer`, async (t) => {
    const whole = parsePieces([Buffer.from(recorded.text, 'latin1')], recorded)
    t.match(whole, { status: recorded.status, body: recorded.body, outcome: 'done', foreignBytes: 0 })
    t.equal(whole.reusable, recorded.reusable)
    const differing: string[] = []
    for (const { where, pieces } of everySplit(recorded.text)) {
      const parsed = parsePieces(pieces, recorded)
      if (JSON.stringify(parsed) !== JSON.stringify(whole)) differing.push(where)
    }
    t.same(differing, [])
  })

  t.test(`${recorded.name}: cut short at every byte, never taken for whole`, async (t) => {
    const bytes = Buffer.from(recorded.text, 'latin1')
    const bodyByClose = recorded.closed === true
    const headBytes = recorded.text.lastIndexOf('\r\n\r\n', recorded.text.length - recorded.body.length) + 4
    const limit = bodyByClose ? headBytes : bytes.length
    for (let length = 0; length < limit; length++) {
      const { outcome } = parsePieces([bytes.subarray(0, length)], { ...recorded, closed: true })
      t.equal(outcome, length === 0 ? 'closed' : 'truncated', `cut after ${length} bytes`)
    }
  })

  t.test(`${recorded.name}: bytes after the end are seen as foreign`, async (t) => {
    if (recorded.closed === true) {
      t.ok(
        parsePieces([Buffer.from(`${recorded.text}HTTP/1.1`, 'latin1')], recorded).body.endsWith('HTTP/1.1'),
      )
      return
    }
    const { foreignBytes, body } = parsePieces([Buffer.from(`${recorded.text}HTTP/1.1`, 'latin1')], recorded)
    t.equal(foreignBytes, 8)
    t.equal(body, recorded.body)
  })
}
