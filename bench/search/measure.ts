/** Measures the quality of results and the time of searches. */
import { computeQuantiles } from '../harness/statistics.ts'
import type { JudgedQuery } from './corpus/entry.ts'
import type { Subject } from './engines/engine.ts'
import { ndcg, recall } from './report/metrics.ts'
import type { Quality, Times } from './report/results.ts'

/** Half of the queries of each kind and language serve to choose weights; the report uses the other half. */
export const heldOut = (queries: readonly JudgedQuery[]): JudgedQuery[] =>
  queries.filter((_, index) => index % 2 === 1)

/** By `all`, language, and language and kind. */
export async function judge(
  search: Subject['search'],
  queries: readonly JudgedQuery[],
): Promise<Record<string, Quality>> {
  const sums = new Map<string, { queries: number; ndcg: number; recall: number }>()
  for (const { language, kind, text, grades } of queries) {
    const found = await search(text)
    for (const key of ['all', language, `${language} ${kind}`]) {
      const sum = sums.get(key) ?? { queries: 0, ndcg: 0, recall: 0 }
      sum.queries++
      sum.ndcg += ndcg(found, grades)
      sum.recall += recall(found, grades)
      sums.set(key, sum)
    }
  }
  return Object.fromEntries(
    Array.from(sums, ([key, sum]) => [
      key,
      { queries: sum.queries, ndcg: sum.ndcg / sum.queries, recall: sum.recall / sum.queries },
    ]),
  )
}

/** Searches run one after the other. A first round fills caches and does not count. */
export async function time(
  search: (query: string) => Promise<unknown>,
  queries: readonly string[],
  rounds: number,
): Promise<Times> {
  for (const query of queries) await search(query)
  const timesMs: number[] = []
  for (let round = 0; round < rounds; round++)
    for (const query of queries) {
      const from = performance.now()
      await search(query)
      timesMs.push(performance.now() - from)
    }
  return { searches: timesMs.length, ...computeQuantiles(timesMs) }
}
