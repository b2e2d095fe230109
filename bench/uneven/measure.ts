/**
 * Uneven load: what one account with half of all calls costs and what others feel; accounts that begin in the same
 * moment; an account with very many keys. CPU comes from /proc, for every process of the service and its engines.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { cpuNs, residentBytes } from '../harness/proc.ts'
import { computeQuantiles, type Quantiles } from '../harness/statistics.ts'
import type { Options } from './options.ts'
import { addOldKeys, type Caller, MODEL, type Service, startService } from './service.ts'

const CLIENTS = 64
const BUSY_CLIENTS = CLIENTS / 2
const KNOWN_CALLS = 2_000
const BEGIN_AT_ONCE = 1_000
const KEYS_OF_A_PAGE = 100
const BOOKED_BOUND_MS = 120_000
const POLL_MS = 250
const MEBIBYTE = 2 ** 20
const NS_PER_US = 1_000

const BODY = JSON.stringify({ model: MODEL, max_tokens: 8, messages: [{ role: 'user', content: 'hello' }] })

/** What calls cost, and what the clients that are not the cause felt. */
export interface Measured {
  readonly name: string
  readonly calls: number
  readonly failed: number
  /** For each call, microseconds by role. */
  readonly cpuUs: Readonly<Record<string, number>>
  /** How long calls of the others took. */
  readonly others: Quantiles
  readonly gatewayMiB: number
}

interface Results {
  readonly rows: readonly Measured[]
  /** A page of the keys of the account with very many: milliseconds, and keys on it. */
  readonly page: { readonly ms: number; readonly keys: number }
}

interface Work {
  readonly name: string
  /** One after another by each client; `isOther` marks clients that are not the cause. */
  readonly clients: readonly { readonly keys: readonly string[]; readonly isOther: boolean }[]
  /** So many calls in all; without it each client calls once by each key. */
  readonly calls?: number
}

const byRole = (service: Service, of: (pids: readonly number[]) => number) =>
  Object.fromEntries(Object.entries(service.processes()).map(([role, pids]) => [role, of(pids)]))

export async function measure(
  folder: string,
  options: Options,
  say: (line: string) => void,
): Promise<Results> {
  const service = await startService(folder)
  const agent = new Agent({ connections: null, pipelining: 1 })
  let made = 0

  const call = async (key: string): Promise<boolean> => {
    made++
    const { statusCode, body } = await request(`${service.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      dispatcher: agent,
      body: BODY,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    })
    await body.dump()
    return statusCode === 200
  }

  /** Costs include the booking of every call. */
  const untilBooked = async () => {
    const deadline = performance.now() + BOOKED_BOUND_MS
    for (;;) {
      const [row] = await service.sql`SELECT count(*) AS booked FROM usage_rows`
      if (Number(row?.booked) >= made) return
      if (performance.now() > deadline) throw new Error(`${row?.booked} of ${made} calls were booked in time`)
      await delay(POLL_MS)
    }
  }

  const run = async ({ name, clients, calls }: Work): Promise<Measured> => {
    say(name)
    const before = byRole(service, cpuNs)
    const madeBefore = made
    const times: number[] = []
    let failed = 0
    let left = calls ?? Number.POSITIVE_INFINITY
    const client = async ({ keys, isOther }: Work['clients'][number]) => {
      for (let at = 0; left-- > 0 && (calls !== undefined || at < keys.length); at++) {
        const startedAt = performance.now()
        if (!(await call(keys[at % keys.length]!))) failed++
        if (isOther) times.push(performance.now() - startedAt)
      }
    }
    await Promise.all(clients.map(client))
    await untilBooked()
    const count = made - madeBefore
    const after = byRole(service, cpuNs)
    const cpuUs = Object.fromEntries(
      Object.entries(after).map(([role, ns]) => [role, (ns - (before[role] ?? 0)) / NS_PER_US / count]),
    )
    const gatewayMiB = residentBytes(service.processes().gateway ?? []) / MEBIBYTE
    return { name, calls: count, failed, cpuUs, others: computeQuantiles(times), gatewayMiB }
  }

  const each = (callers: readonly Caller[], isOther: boolean) =>
    callers.map(({ key }) => ({ keys: [key], isOther }))

  try {
    const rows: Measured[] = []
    const known = await service.newCallers(CLIENTS)
    await run({ name: 'warm-up', clients: each(known, true), calls: options.calls })
    rows.push(await run({ name: 'each account alike', clients: each(known, true), calls: options.calls }))
    const [busy] = await service.newCallers(1)
    const half = [
      ...Array.from({ length: BUSY_CLIENTS }, () => ({ keys: [busy!.key], isOther: false })),
      ...each(known.slice(BUSY_CLIENTS), true),
    ]
    rows.push(await run({ name: 'one account has half of all calls', clients: half, calls: options.calls }))

    say(`${options.accounts} accounts are made`)
    const beginners = await service.newCallers(options.accounts)
    const share = Math.ceil(beginners.length / BEGIN_AT_ONCE)
    const beginning = Array.from({ length: BEGIN_AT_ONCE }, (_, at) => ({
      keys: beginners.slice(at * share, (at + 1) * share).map(({ key }) => key),
      isOther: false,
    }))
    const withKnown = (clients: Work['clients']): Work['clients'] => [
      ...clients,
      ...known.slice(0, 8).map(({ key }) => ({
        keys: Array.from({ length: KNOWN_CALLS / 8 }, () => key),
        isOther: true,
      })),
    ]
    const first = `${options.accounts} accounts begin in the same moment`
    rows.push(await run({ name: first, clients: withKnown(beginning) }))
    rows.push(await run({ name: 'the same accounts call again', clients: withKnown(beginning) }))

    say(`one account is given ${options.keys} keys`)
    await addOldKeys(service.sql, busy!.accountId, options.keys)
    rows.push(
      await run({ name: `that account has ${options.keys} keys`, clients: half, calls: options.calls }),
    )
    const startedAt = performance.now()
    const page = await service.database.keys.list(busy!.accountId, { limit: KEYS_OF_A_PAGE })
    return { rows, page: { ms: performance.now() - startedAt, keys: page.length } }
  } finally {
    await agent.destroy()
    await service.close()
  }
}
