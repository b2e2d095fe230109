/**
 * Attempts to sign in, and invitations that are mailed, counted over all processes. An attempt counts before it is
 * checked, so that many at the same time stay within the limit; one that succeeds is taken back.
 */
import { createHash } from 'node:crypto'
import type { Sql } from '../connection.ts'
import { inTransaction } from '../transaction.ts'

const WINDOW_SECONDS = 600
const MAX_PER_ACCOUNT = 10
const MAX_PER_ADDRESS = 30
const MAX_MAILS_PER_INVITER = 30
const MAX_MAILS_PER_ACCOUNT = 60
/** The most to one mailbox. */
const MAX_MAILS_PER_INVITED = 5

export interface AttemptSubjects {
  /** A normalized email, whether a user has it or not, or the id of a user; absent: only the address counts. */
  readonly account?: string
  readonly address: string
}

/** The counted attempt, or the seconds after which the next one is taken. */
export type Attempt = { readonly ids: readonly bigint[] } | { readonly retryAfterSeconds: number }

interface Limited {
  readonly name: string
  /** The most within the window. */
  readonly max: number
}

const hashSubject = (subject: string): Buffer => createHash('sha256').update(subject).digest()

export const takeAttempt = (sql: Sql, { account, address }: AttemptSubjects): Promise<Attempt> =>
  take(sql, [
    { name: `address ${address}`, max: MAX_PER_ADDRESS },
    ...(account === undefined ? [] : [{ name: `account ${account}`, max: MAX_PER_ACCOUNT }]),
  ])

export interface InvitationMail {
  /** The actor who invites. */
  readonly inviter: string
  /** Null: into the installation. */
  readonly accountId: string | null
  /** A normalized email. */
  readonly email: string
}

/** Counts an invitation that is mailed. */
export const takeInvitationMail = (
  sql: Sql,
  { inviter, accountId, email }: InvitationMail,
): Promise<Attempt> =>
  take(sql, [
    { name: `inviter ${inviter}`, max: MAX_MAILS_PER_INVITER },
    { name: `inviting ${accountId ?? 'installation'}`, max: MAX_MAILS_PER_ACCOUNT },
    { name: `invited ${email}`, max: MAX_MAILS_PER_INVITED },
  ])

const take = (sql: Sql, limited: readonly Limited[]): Promise<Attempt> =>
  inTransaction(sql, async (transaction) => {
    const subjects = limited
      .map(({ name, max }) => ({ hash: hashSubject(name), max }))
      .sort((one, other) => one.hash.compare(other.hash))
    let retryAfterSeconds = 0
    // In one order, so that no two attempts wait for each other.
    for (const { hash, max } of subjects) {
      await transaction`SELECT pg_advisory_xact_lock(hashtextextended(${hash.toString('hex')}, 0))`
      // The attempt after whose end fewer than `max` are left.
      const [full] = await transaction<{ wait: number }[]>`
        SELECT ceil(extract(epoch FROM at + make_interval(secs => ${WINDOW_SECONDS}) - clock_timestamp()))::int AS wait
        FROM sign_in_attempts
        WHERE subject = ${hash} AND at > clock_timestamp() - make_interval(secs => ${WINDOW_SECONDS})
        ORDER BY at DESC, id DESC OFFSET ${max - 1} LIMIT 1`
      if (full !== undefined) retryAfterSeconds = Math.max(retryAfterSeconds, full.wait, 1)
    }
    if (retryAfterSeconds > 0) return { retryAfterSeconds }
    const ids: bigint[] = []
    for (const { hash } of subjects) {
      const [row] = await transaction<[{ id: bigint }]>`
        INSERT INTO sign_in_attempts (subject, at) VALUES (${hash}, clock_timestamp()) RETURNING id`
      ids.push(row.id)
    }
    return { ids }
  })

/** Takes back an attempt that succeeded. */
export async function takeBackAttempt(sql: Sql, ids: readonly bigint[]): Promise<void> {
  await sql`DELETE FROM sign_in_attempts WHERE id = ANY(${ids.map(String)}::text[]::bigint[])`
}

/** Deletes attempts that count no longer. */
export async function purgeAttempts(sql: Sql): Promise<void> {
  await sql`DELETE FROM sign_in_attempts WHERE at < now() - make_interval(secs => ${WINDOW_SECONDS})`
}
