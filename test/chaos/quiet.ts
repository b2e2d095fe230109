/** Waits until nothing is on its way any more, and asks the installation for what the checker needs. */
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { tollgate } from '../src/cli/support.ts'
import { eventually } from '../support/eventually.ts'
import { commandEnv } from '../support/service.ts'
import type { Record } from './history.ts'
import type { Installation } from './installation/installation.ts'
import type { CallingKey } from './load/keys.ts'

/** Longer than any task is planned to last, and any process to start. */
const SETTLED_MS = 15_000
const AGED_MS = 600_000

interface UpstreamCall {
  readonly request_id: string | null
}
interface UpstreamTask {
  readonly reference: string | null
}

/** Throws when something stays open; what that is, the checker names. */
export async function untilQuiet({ databaseUrl }: Installation): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  try {
    await sleep(SETTLED_MS)
    // What takes minutes in life takes none here: the processes that worked on these tasks are dead for long.
    await sql`UPDATE tasks SET touched_at = touched_at - ${AGED_MS} WHERE ended_at IS NULL`
    await eventually('all is booked and copied, and every task has ended', async () => {
      const [row] = await sql`
          SELECT (SELECT count(*) FROM journals WHERE outcome IS NULL AND (open_calls > 0 OR unbooked_calls > 0))
            + (SELECT count(*) FROM tasks WHERE ended_at IS NULL)
            + (SELECT count(*) FROM holds WHERE state = 'open')
            + (SELECT count(*) FROM usage_copy WHERE copied_upto < (SELECT coalesce(max(id), 0) FROM usage_rows))
            AS open`
      return Number(row?.open) === 0 ? true : undefined
    })
    // Heartbeats say what journals held some seconds ago.
    await sleep(SETTLED_MS)
  } finally {
    await sql.end()
  }
}

/** Writes what the provider has seen, what gateways show as balances, and what the audit says. */
export async function recordEnd(
  installation: Installation,
  keys: readonly CallingKey[],
  record: Record,
): Promise<void> {
  const { engines, nodes } = installation
  const read = async <T>(path: string) => (await (await fetch(engines.simulatorUrl + path)).json()) as T
  const calls = await read<UpstreamCall[]>('/simulator/calls')
  const made = await read<UpstreamTask[]>('/simulator/tasks')
  const references = made.flatMap(({ reference }) => reference ?? [])
  record({
    type: 'provider',
    requestIds: [...new Set(calls.flatMap(({ request_id }) => request_id ?? []))],
    madeTwice: references.filter((reference, at) => references.indexOf(reference) !== at),
  })
  for (const { name: node, service, url } of nodes) {
    if (url === null) continue
    for (const { key, accountId } of keys) {
      const response = await service.get(key, '/v1/key/balance')
      const { remaining } = (await response.json()) as { remaining: string }
      record({ type: 'balance', accountId, node, remaining })
    }
  }
  record({ type: 'verify', ...(await verify(installation)) })
}

async function verify({ env, nodes }: Installation): Promise<{ exitCode: number; output: string }> {
  const all = { ...commandEnv(nodes[0]!.service), ...env }
  const { code, stdout, stderr } = await tollgate(['wallet', 'verify', '--json'], all)
  return { exitCode: code ?? 1, output: stdout + stderr }
}
