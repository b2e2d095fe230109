/** Each admitted call has one row, which charges what its answer reported. */
import type { CallLine } from '../history.ts'
import type { Run } from './check.ts'
import { type Problems, problem } from './problems.ts'
import type { Row } from './tables.ts'

export function checkCalls({ lines, tables }: Run): Problems {
  const rows = new Map(tables.rows.map((row) => [row.request_id, row]))
  const reached = new Set(lines.provider.flatMap(({ requestIds }) => requestIds))
  const taskRequests = new Set(tables.tasks.map(({ request_id }) => request_id))
  const answered = lines.call.filter(
    ({ kind, status, isReplay }) => kind === 'chat' && status === 200 && !isReplay,
  )
  const twice = tables.rows.filter(({ request_id }, at) => tables.rows[at - 1]?.request_id === request_id)
  const withoutRow = [...new Set([...reached, ...answered.map(({ requestId }) => requestId ?? 'no id')])]
    .filter((id) => !rows.has(id) && !taskRequests.has(id))
    .map((id) => `${id} ${describe(lines.call.find(({ requestId }) => requestId === id))}`)
  const neverReached = tables.rows.filter(
    ({ request_id, task_id, cost, status, output_tokens }) =>
      // A client that left owes the prompt from the moment on in which the call was handed to the network.
      task_id === null &&
      !reached.has(request_id) &&
      cost > 0 &&
      (status !== 'interrupted' || output_tokens > 0),
  )
  const complete = answered.filter(({ end, usage }) => end === 'complete' && usage !== null)
  return [
    ...problem('Calls with two rows', twice),
    ...problem('Admitted calls without a row', withoutRow),
    ...problem('Rows that charge for an answer the provider never gave', neverReached),
    ...problem(
      'Complete answers that are not charged as their usage says',
      complete.flatMap((line) => {
        const row = rows.get(line.requestId ?? '')
        return row === undefined || isChargedAs(row, line, lines.price) ? [] : [{ line, row }]
      }),
    ),
  ]
}

const describe = (line: CallLine | undefined): string =>
  line === undefined ? '(no client has its id)' : `(${line.node}, ${line.end}, ${line.status})`

function isChargedAs(row: Row, { usage, model }: CallLine, prices: Run['lines']['price']): boolean {
  const price = prices.find((candidate) => candidate.model === model)
  if (usage === null || price === undefined) return false
  const cost = usage.input * price.input + usage.output * price.output
  return (
    row.status === 'success' &&
    row.input_tokens === usage.input &&
    row.output_tokens === usage.output &&
    row.cost === cost
  )
}
