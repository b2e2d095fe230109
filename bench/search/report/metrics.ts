/** Quality of a list of results. Järvelin and Kekäläinen 2002: gain 2^grade - 1, discount log2(rank + 1). */
import type { Grades } from '../corpus/entry.ts'

export const DEPTH = 10

const gain = (grade: number): number => 2 ** grade - 1
const discounted = (grades: readonly number[]): number =>
  grades.reduce((sum, grade, index) => sum + gain(grade) / Math.log2(index + 2), 0)

/** Returns nDCG@10, 0 to 1. `found` has the keys of pages, best first. */
export function ndcg(found: readonly string[], grades: Grades): number {
  const ideal = Object.values(grades).sort((one, other) => other - one)
  return discounted(found.slice(0, DEPTH).map((key) => grades[key] ?? 0)) / discounted(ideal.slice(0, DEPTH))
}

/** Returns recall@10: the share of pages with grade 2 or 3 (ten at most) among the first ten. */
export function recall(found: readonly string[], grades: Grades): number {
  const answers = new Set(Object.keys(grades).filter((key) => grades[key]! >= 2))
  const seen = new Set(found.slice(0, DEPTH).filter((key) => answers.has(key)))
  return seen.size / Math.min(DEPTH, answers.size)
}
