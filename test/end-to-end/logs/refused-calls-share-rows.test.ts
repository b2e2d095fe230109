/**
 * Calls that are refused again and again: every sum counts each of them, the log has few rows more than 600 where rows are
 * shared, and each call is found by its trace id.
 */
import t from 'tap'
import { until } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { type LogJson, testConfig } from '../../support/service.ts'
import { say, traceOf } from '../support.ts'

const CALLS = 1000
const AT_ONCE = 20

interface Totals {
  readonly total_requests: number
}
interface Summary {
  readonly total: { readonly requests: number }
  readonly status_counts: { readonly rejected: number }
  readonly by_day: ReadonlyArray<{ readonly requests: number }>
}

t.test('an account without credit calls on', async (t) => {
  const service = await borrowService(t, testConfig({ fast: {} }, 'logs: { share_refusals: true }\n'))
  const { key } = await service.newKey('0')
  const body = { model: 'fast', messages: say('hi') }
  const traces: string[] = []
  const caller = async (_: unknown, index: number) => {
    for (let call = index; call < CALLS; call += AT_ONCE) {
      const response = await service.chat(key, body)
      traces.push(traceOf(response))
      if (response.status !== 402) t.fail(`status ${response.status}`)
      await response.arrayBuffer()
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, caller))

  const read = async <T>(path: string) => (await (await service.get(key, path)).json()) as T
  await until('the usage has all calls', async () => {
    const { total_requests } = await read<Totals>('/api/v1/usage?period=7d')
    return total_requests === CALLS
  })
  t.match(await read<Summary>('/v1/logs/summary'), {
    total: { requests: CALLS },
    status_counts: { rejected: CALLS },
    by_day: [{ requests: CALLS }],
  })
  const csv = await (await service.get(key, '/v1/logs?format=csv')).text()
  const [heading, ...lines] = csv.trim().split('\r\n')
  const column = heading!.split(',').indexOf('call_count')
  const shared = await read<{ data: LogJson[] }>('/v1/logs?limit=1&status=rejected')
  t.ok(lines.length < CALLS, `${lines.length} rows`)
  t.match(shared.data[0], { status: 'rejected', error_code: 'quota_exceeded', cost: '0' })
  t.equal(
    lines.reduce((sum, line) => sum + Number(line.split(',')[column]), 0),
    CALLS,
  )
  for (const trace of traces.filter((_, index) => index % 50 === 0)) {
    const found = await read<{ data: LogJson[] }>(`/v1/logs?ref=${trace}`)
    t.match(found.data, [{ status: 'rejected', error_code: 'quota_exceeded' }], trace)
    t.match((await service.database.calls.find(trace)).call, { status: 'rejected' })
  }
  t.match(await service.database.audits.verifyWallets(), { ok: true })
})
