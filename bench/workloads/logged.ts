import { computeQuantiles } from '../harness/statistics.ts'
import { type Endpoint, requestBody } from '../load/request.ts'
import { checkAnswer, type Workload } from './workload.ts'

/** The time from the end of a call's answer until a reader has its row: `GET /v1/logs` is repeated until it shows it. */

/** A key may read the log 60 times in a minute. */
const CALLS_PER_KEY = 25
const ROW_LIMIT_MS = 10_000

/** Makes a call, and returns the milliseconds from its end to the end of the answer that has its row. */
const timeRow = async (endpoint: Endpoint): Promise<number> => {
  const origin = `http://127.0.0.1:${endpoint.port}`
  const headers = { ...endpoint.headers, 'content-type': 'application/json' }
  const body = requestBody('small', endpoint.model)
  const call = await fetch(origin + endpoint.path, { method: 'POST', headers, body })
  await call.arrayBuffer()
  const endedAt = performance.now()
  for (;;) {
    const page = await fetch(`${origin}/v1/logs?limit=1`, { headers: endpoint.headers })
    if (page.status !== 200) throw new Error(`the call log answered ${page.status}`)
    const { data } = (await page.json()) as { data: { request_id: string }[] }
    const waitedMs = performance.now() - endedAt
    if (data[0]?.request_id === call.headers.get('x-gateway-trace')) return waitedMs
    if (waitedMs > ROW_LIMIT_MS) throw new Error('the row of a call did not come')
  }
}

export const loggedWorkload: Workload = {
  name: 'logged',
  title: 'the row of a call, from the end of its answer',
  alone: false,
  enginesElsewhere: true,
  once: true,
  takes: (_subject, running) => running.settling !== null,
  prepare: async (_subject, running, bench) => {
    for (const reader of running.settling!.readers) await checkAnswer(reader, 'small', bench)
  },
  measure: async (_subject, running) => {
    const times: number[] = []
    for (const reader of running.settling!.readers)
      for (let made = 0; made < CALLS_PER_KEY; made++) times.push(await timeRow(reader))
    return [{ ...computeQuantiles(times) }]
  },
}
