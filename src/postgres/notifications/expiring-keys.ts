/** Notices of keys, and of former secrets of rotated keys, that are about to end. */
import type { EventType } from '../../../schemas/notifications/event.ts'
import type { Queryable } from '../connection.ts'

/**
 * Records `key.expiring` 7 days and 1 day before a key expires, and once before a former secret ends that is still in
 * use or has no used successor: a day before, or in the second half of a shorter grace. Of both days that have passed
 * meanwhile only the later is recorded. Returns the number of events; a second call records none of them again.
 */
export async function recordExpiringKeys(sql: Queryable): Promise<number> {
  const type: EventType = 'key.expiring'
  const rows = await sql`
    WITH expiring AS (
      SELECT *, CASE WHEN expires_at <= now() + interval '1 day' THEN 1 ELSE 7 END AS days
      FROM api_keys
      WHERE revoked_at IS NULL AND expires_at IS NOT NULL AND NOT opens_draft
        AND expires_at > now() AND expires_at <= now() + interval '7 days'
    ), ending AS (
      SELECT s.*, k.account_id, k.name
      FROM former_secrets AS s JOIN api_keys AS k ON k.id = s.key_id
      WHERE k.revoked_at IS NULL AND s.ends_at > now()
        AND s.ends_at <= now() + CASE WHEN s.successor_used_at IS NULL THEN interval '1 day'
          ELSE least(interval '1 day', make_interval(secs => s.grace_seconds / 2.0)) END
        AND (s.successor_used_at IS NULL OR s.last_used_at > greatest(s.successor_used_at, now() - interval '1 hour'))
    ), notices AS (
      SELECT account_id, id AS key_id, concat_ws(' ', 'key.expiring', id, days, print_instant(expires_at)) AS crossing,
        jsonb_build_object('key_id', id, 'name', name, 'key_prefix', prefix, 'secret', 'current',
          'ends_at', print_instant(expires_at)) AS data
      FROM expiring WHERE created_at <= expires_at - make_interval(days => days)
      UNION ALL
      SELECT account_id, key_id, concat_ws(' ', 'key.expiring', key_id, 'former', prefix, print_instant(ends_at)),
        jsonb_build_object('key_id', key_id, 'name', name, 'key_prefix', prefix, 'secret', 'former',
          'ends_at', print_instant(ends_at))
      FROM ending
    )
    SELECT record_event(${type}, account_id, key_id, n.crossing, n.data)
    FROM notices AS n WHERE NOT EXISTS (SELECT FROM events AS e WHERE e.crossing = n.crossing)`
  return rows.length
}
