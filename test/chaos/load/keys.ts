/** The keys that call in a run, each with what it may. */
import { parseCredits } from '../../../schemas/money.ts'
import type { NewKey } from '../../../src/postgres/accounts/keys.ts'
import type { TestService } from '../../support/service.ts'
import type { Record } from '../history.ts'

/** Sums in 1e-8 credit stay below 2^53: the checker counts in numbers. */
const PLENTY = '10000000'
/** A capped key and a poor account run out within a run of any length. */
const CAP_PER_MINUTE = 3_000
const CREDIT_PER_MINUTE = 4_000

export interface CallingKey {
  readonly name: string
  readonly accountId: string
  readonly keyId: string
  readonly key: string
}

type Limits = Pick<NewKey, 'kind' | 'spendCap' | 'requestsPerMinute' | 'concurrency'>

/** Makes a key in a new account, and writes it to the history. */
export async function makeKey(
  service: TestService,
  record: Record,
  name: string,
  credit = PLENTY,
  limits: Limits = {},
): Promise<CallingKey> {
  const { accountId, keyId, key } = await service.newKey(credit, limits)
  record({
    ...{ type: 'key', name, keyId, accountId },
    credit: Number(parseCredits(credit)),
    cap: limits.spendCap === undefined || limits.spendCap === null ? null : Number(limits.spendCap),
    requestsPerMinute: limits.requestsPerMinute ?? null,
    concurrency: limits.concurrency ?? null,
  })
  return { name, accountId, keyId, key }
}

/** Keys of mixed calls: without limits, capped, limited in rate and in number, and of accounts that run out. */
export async function makeKeys(service: TestService, record: Record, minutes: number): Promise<CallingKey[]> {
  const make = (name: string, credit?: string, limits?: Limits) =>
    makeKey(service, record, name, credit, limits)
  const cap = parseCredits(String(Math.ceil(CAP_PER_MINUTE * minutes)))
  const credit = String(Math.ceil(CREDIT_PER_MINUTE * minutes))
  const capped: Limits = { kind: 'employee', spendCap: cap }
  return [
    await make('plain 1'),
    await make('plain 2'),
    await make('plain 3'),
    await make('capped 1', PLENTY, capped),
    await make('capped 2', PLENTY, capped),
    await make('rate 1', PLENTY, { requestsPerMinute: 30 }),
    await make('concurrency 1', PLENTY, { concurrency: 2 }),
    await make('poor 1', credit),
    await make('poor 2', credit),
  ]
}
