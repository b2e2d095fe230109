import fc from 'fast-check'
import t from 'tap'
import { admission, type Settlement, settlement } from '../../../schemas/call-log/columns.ts'
import { CALL_STATUSES, UNIT_TYPES } from '../../../schemas/call-log/row.ts'
import { admissionLine, identityText, settlementLine } from '../../../src/journal/lines.ts'
import { ANY_CHARACTER } from '../../support/any-character.ts'
import { everyRun } from '../../support/every-run.ts'

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
    const line = settlementLine(value)
    if (line.indexOf('\n') !== line.length - 1) throw new Error('not one line')
    t.same(settlement.parse(JSON.parse(line)), value)
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
  })
  fc.assert(
    fc.property(admissions, (value) =>
      t.same(admission.parse(JSON.parse(admissionLine(identityText(value)))), value),
    ),
    {
      numRuns: 200,
    },
  )
})
