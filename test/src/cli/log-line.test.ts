import { stripVTControlCharacters } from 'node:util'
import t from 'tap'
import { CALL_STATUSES } from '../../../schemas/call-log/row.ts'
import { callLine, MESSAGE_MAX_CHARS } from '../../../src/cli/logs/line.ts'
import type { OperatorCall } from '../../../src/postgres/call-log/calls.ts'

const call = (more: Partial<OperatorCall> = {}): OperatorCall => ({
  object: 'log',
  id: 7,
  created_at: '2026-03-10T15:30:00.250Z',
  submitted_at: '2026-03-10T15:29:59.000Z',
  booked_at: '2026-03-10T15:30:00.300Z',
  account_id: 'acc_a',
  key_id: 'key_a',
  key_name: 'Laptop',
  key_prefix: 'sk-tollgate-0123abcd',
  model: 'sonata-large',
  protocol: 'chat-completions',
  stream: true,
  status: 'success',
  error_code: null,
  error_message: null,
  input_tokens: 1200,
  output_tokens: 340,
  cached_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  server_tool_calls: 0,
  unit_count: null,
  unit_type: null,
  cost: '0.049',
  estimate: '0.96',
  usage_source: 'upstream',
  latency_ms: 1250,
  ttfb_ms: 120,
  channel_id: 'primary',
  request_id: 'req_a',
  task_id: null,
  result_urls: [],
  result_expires_at: null,
  call_count: 1,
  session_id: null,
  upstream_cost: null,
  attempts_count: 1,
  attempts: [],
  ...more,
})

const COLOUR_CHARS = '\u001b[32m'.length
const line = (more: Partial<OperatorCall> = {}): string => callLine(call(more), false)

t.test('one call, one line, without what it does not have', async (t) => {
  t.equal(
    line(),
    '2026-03-10 15:30:00.250  success      acc_a  sk-tollgate-0123abcd  sonata-large          ' +
      'in 1200 out 340  0.049 credits  1250 ms, first byte 120  req_a\n',
  )
})

t.test('cached tokens, units, attempts and errors where there are any', async (t) => {
  t.match(line({ cached_tokens: 100 }), '  in 1200 (100 cached) out 340  ')
  t.match(line({ unit_type: 'image', unit_count: '2' }), '  image × 2  ')
  t.match(line({ attempts_count: 3 }), '  3 attempts  ')
  t.match(line({ call_count: 1400 }), '  1400 calls  ')
  t.match(line({ ttfb_ms: null }), '  1250 ms  req_a')
  const failed = line({ status: 'error', error_code: 'upstream_error', error_message: 'Too busy.' })
  t.match(failed, '  upstream_error: Too busy.  req_a')
  t.match(line({ status: 'interrupted', error_message: 'Gone.' }), '  Gone.  req_a')
  t.match(line({ model: '', status: 'rejected', attempts_count: 0 }), /rejected {5}.* {2}- {21}in /)
})

t.test('what others wrote stays in its line, and short', async (t) => {
  const evil = line({ error_code: 'x', error_message: 'a\nb\u001b[2J\u202ec', model: 'm\r' })
  t.equal(evil.indexOf('\n'), evil.length - 1)
  t.match(evil, 'x: a?b?[2J?c')
  t.match(evil, ' m? ')
  const long = line({ error_message: 'y'.repeat(10_000) })
  t.match(long, `${'y'.repeat(MESSAGE_MAX_CHARS - 1)}…  req_a`)
  t.notMatch(long, 'y'.repeat(MESSAGE_MAX_CHARS))
})

t.test('colours by status, and the same text without them', async (t) => {
  const colours = new Map(
    CALL_STATUSES.map((status) => {
      const row = call({ status, error_message: 'why', attempts_count: 2 })
      const coloured = callLine(row, true)
      t.equal(stripVTControlCharacters(coloured), callLine(row, false))
      return [status, coloured.split(status)[0]?.slice(-COLOUR_CHARS)]
    }),
  )
  t.equal(colours.get('success'), '\u001b[32m')
  t.equal(colours.get('error'), '\u001b[31m')
  t.equal(new Set(colours.values()).size, 4)
  t.notMatch(line(), '\u001b')
})
