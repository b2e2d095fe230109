/** Sessions as PostgreSQL keeps them: found by the hash of their token, and ended by their age. */
import type { Session, SignedIn } from '../../../schemas/accounts/people.ts'
import { COLLECTION_LIMITS } from '../../../schemas/collection-limits.ts'
import type { SnakeCase } from '../../core/json/snake-case.ts'
import { newId } from '../../core/keys/ids.ts'
import { Refusal } from '../billing/refusal.ts'
import type { Queryable, Sql } from '../connection.ts'
import { inTransaction } from '../transaction.ts'
import { proveEmail, removeWays } from './unproven-emails.ts'
import { listAccess, toUser, type UserRow, userNotFound } from './users.ts'

const SESSION_MAX_HOURS = 30 * 24
const SESSION_IDLE_HOURS = 12
/** `last_seen_at` is written this rarely. */
const SEEN_EVERY_SECONDS = 60
const MAX_USER_AGENT_CHARS = 300

type SessionRow = SnakeCase<Session>

const toSession = (row: SessionRow): Session => ({
  id: row.id,
  userId: row.user_id,
  createdAt: row.created_at,
  lastSeenAt: row.last_seen_at,
  confirmedAt: row.confirmed_at,
  userAgent: row.user_agent,
  address: row.address,
})

export interface NewSession {
  readonly tokenHash: Buffer
  readonly userId: string
  readonly userAgent: string
  readonly address: string
}

/**
 * Signs a user in. Where that is one session too many, the one that was not seen for longest ends.
 * @throws Refusal `user_not_found` for a user who was disabled meanwhile
 */
export const createSession = (sql: Queryable, session: NewSession): Promise<Session> =>
  inTransaction(sql, async (transaction) => {
    const { tokenHash, userId, userAgent, address } = session
    // Locks the user: of two sign-ins at the same time the second one counts the session of the first.
    const users = await transaction`
      UPDATE users SET signed_in_at = now() WHERE id = ${userId} AND enabled RETURNING id`
    if (users.length === 0) throw userNotFound(userId)
    await transaction`
      DELETE FROM sessions WHERE id IN (
        SELECT id FROM sessions WHERE user_id = ${userId}
        ORDER BY last_seen_at DESC, id DESC OFFSET ${COLLECTION_LIMITS.sessions_per_user - 1})`
    const [row] = await transaction<[SessionRow]>`
      INSERT INTO sessions (id, token_hash, user_id, user_agent, address)
      VALUES (
        ${newId('ses')}, ${tokenHash}, ${userId}, ${userAgent.slice(0, MAX_USER_AGENT_CHARS)}, ${address})
      RETURNING *`
    return toSession(row)
  })

const isInForce = (sql: Queryable) => sql`
  s.created_at > now() - make_interval(hours => ${SESSION_MAX_HOURS})
  AND s.last_seen_at > now() - make_interval(hours => ${SESSION_IDLE_HOURS})`

/** Finds a session that is in force, of a user that is not disabled; marks it as seen. Null without one. */
export async function findSession(sql: Sql, tokenHash: Buffer): Promise<SignedIn | null> {
  const [row] = await sql<(SessionRow & { person: UserRow })[]>`
    SELECT s.*, to_jsonb(u) AS person FROM sessions AS s JOIN users AS u ON u.id = s.user_id AND u.enabled
    WHERE s.token_hash = ${tokenHash} AND ${isInForce(sql)}`
  if (row === undefined) return null
  await sql`
    UPDATE sessions SET last_seen_at = now()
    WHERE id = ${row.id} AND last_seen_at < now() - make_interval(secs => ${SEEN_EVERY_SECONDS})`
  const { created_at, signed_in_at, ...person } = row.person
  const user = toUser({
    ...person,
    created_at: new Date(created_at),
    signed_in_at: signed_in_at && new Date(signed_in_at),
  })
  return { session: toSession(row), user, access: await listAccess(sql, user.accountId) }
}

/**
 * Gives a session another token: the former one opens nothing from then on.
 * @param isConfirmed the user has just proved who they are
 * @throws Refusal `session_not_found`
 */
export async function rotateSession(
  sql: Queryable,
  id: string,
  tokenHash: Buffer,
  { isConfirmed }: { readonly isConfirmed: boolean },
): Promise<Session> {
  const [row] = await sql<SessionRow[]>`
    UPDATE sessions SET token_hash = ${tokenHash}, last_seen_at = now(),
      confirmed_at = CASE WHEN ${isConfirmed} THEN now() ELSE confirmed_at END
    WHERE id = ${id} RETURNING *`
  if (row === undefined) throw new Refusal('session_not_found', `There is no session ${id}`)
  return toSession(row)
}

/** Lists the sessions of a user that are in force, the newest first. */
export async function listSessions(sql: Queryable, userId: string): Promise<Session[]> {
  const rows = await sql<SessionRow[]>`
    SELECT s.* FROM sessions AS s WHERE s.user_id = ${userId} AND ${isInForce(sql)} ORDER BY s.id DESC`
  return rows.map(toSession)
}

/** Ends sessions of a user: the one with this id, or all but that one. Returns how many. */
export async function endSessions(
  sql: Queryable,
  userId: string,
  which: { readonly only: string } | { readonly allBut: string | null },
): Promise<number> {
  const rows = await sql`
    DELETE FROM sessions WHERE user_id = ${userId}
      AND ${'only' in which ? sql`id = ${which.only}` : sql`id IS DISTINCT FROM ${which.allBut}`}
    RETURNING id`
  return rows.length
}

/** Deletes sessions, links and tickets that are over. */
export async function purgeSessions(sql: Sql): Promise<void> {
  await sql`DELETE FROM sessions AS s WHERE NOT (${isInForce(sql)})`
  await sql`DELETE FROM sign_in_links WHERE expires_at < now() - interval '1 day'`
  await sql`DELETE FROM sign_in_tickets WHERE expires_at < now()`
}

export interface NewLink {
  readonly tokenHash: Buffer
  readonly userId: string
  readonly minutes: number
  /** It goes only to the user's email. */
  readonly isMailed?: boolean
}

export async function createLink(sql: Queryable, link: NewLink): Promise<void> {
  const { tokenHash, userId, minutes, isMailed = false } = link
  await sql`
    INSERT INTO sign_in_links (token_hash, user_id, created_by, expires_at, is_mailed)
    VALUES (${tokenHash}, ${userId}, audit_actor(), now() + make_interval(mins => ${minutes}), ${isMailed})`
}

/** Returns whether the user has ever opened a session. */
export async function hasSignedIn(sql: Queryable, userId: string): Promise<boolean> {
  const [row] = await sql<[{ has: boolean }]>`
    SELECT signed_in_at IS NOT NULL AS has FROM users WHERE id = ${userId}`
  return row.has
}

/**
 * Uses up a link and opens a session of its user. The first link by mail after an open sign-up shows whose email it is:
 * the former ways to sign in may be a stranger's, and are removed.
 * @throws Refusal `link_invalid`
 */
export const signInByLink = (sql: Sql, linkHash: Buffer, session: Omit<NewSession, 'userId'>) =>
  inTransaction(sql, async (transaction): Promise<Session> => {
    const [link] = await transaction<{ user_id: string; is_mailed: boolean }[]>`
      UPDATE sign_in_links AS l SET used_at = now() FROM users AS u
      WHERE l.token_hash = ${linkHash} AND l.used_at IS NULL AND l.expires_at > now()
        AND u.id = l.user_id AND u.enabled
      RETURNING l.user_id, l.is_mailed`
    if (link === undefined)
      throw new Refusal('link_invalid', 'The link was used before, or is over: ask for another one')
    const { user_id: userId, is_mailed: isMailed } = link
    if (isMailed && (await proveEmail(transaction, userId))) await removeWays(transaction, userId)
    return createSession(transaction, { ...session, userId })
  })
