/** Channels that operators have paused or drain. */
import type { ChannelHold, HeldState } from '../../../schemas/config/channel-report.ts'
import type { SnakeCase } from '../../core/json/snake-case.ts'
import type { Queryable } from '../connection.ts'

type HoldRow = SnakeCase<ChannelHold>

export async function listChannelHolds(sql: Queryable): Promise<ChannelHold[]> {
  const rows = await sql<HoldRow[]>`SELECT id, state, created_by, created_at FROM channel_holds ORDER BY id`
  return rows.map(({ id, state, created_by, created_at }) => ({
    id,
    state,
    createdBy: created_by,
    createdAt: created_at,
  }))
}

/** Keeps new calls from a channel. What is in force already stays as it is. */
export async function holdChannel(sql: Queryable, id: string, state: HeldState): Promise<void> {
  await sql`
    INSERT INTO channel_holds AS held (id, state, created_by) VALUES (${id}, ${state}, audit_actor())
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, created_by = excluded.created_by, created_at = now()
    WHERE held.state <> excluded.state`
}

/** Lets calls through to a channel again. */
export async function resumeChannel(sql: Queryable, id: string): Promise<void> {
  await sql`DELETE FROM channel_holds WHERE id = ${id}`
}

/** Records that a channel is tested: the call costs money. */
export async function recordChannelTest(
  sql: Queryable,
  id: string,
  { model }: { readonly model: string },
): Promise<void> {
  await sql`SELECT record_act('channel.test', NULL, ${id}, NULL, jsonb_build_object('model', ${model}::text))`
}

/** Counts the tasks that have not ended, by channel. */
export async function countTasksByChannel(sql: Queryable): Promise<ReadonlyMap<string, number>> {
  const rows = await sql<{ channel_id: string; count: bigint }[]>`
    SELECT channel_id, count(*) FROM tasks WHERE ended_at IS NULL AND channel_id IS NOT NULL GROUP BY channel_id`
  return new Map(rows.map(({ channel_id, count }) => [channel_id, Number(count)]))
}
