/** Sums the cost of settlements, in 1e-8 credit: by account, and by key under the key's id. */
import type { Settlement } from '../../schemas/call-log/columns.ts'

export function addCost(costs: Map<string, bigint>, id: string, cost: bigint): void {
  costs.set(id, (costs.get(id) ?? 0n) + cost)
}

/** Returns the sum of the settlements: each is there twice, for its account and its key. */
export function sumCosts(costs: ReadonlyMap<string, bigint>): bigint {
  let sum = 0n
  for (const cost of costs.values()) sum += cost
  return sum / 2n
}

/** Adds the cost of a settlement to its account and its key. */
export function addCosts(costs: Map<string, bigint>, settlement: Settlement): void {
  const cost = BigInt(settlement.cost)
  addCost(costs, settlement.account_id, cost)
  addCost(costs, settlement.key_id, cost)
}
