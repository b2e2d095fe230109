/** Tickets: what the service remembers between two steps of a sign-in. */
import type { Queryable } from '../connection.ts'
import { printJson } from '../json.ts'

const TICKET_MINUTES = 10

export interface Ticket {
  readonly tokenHash: Buffer
  /** The step that it is for; no other takes it. */
  readonly purpose: 'totp' | 'passkey' | 'new_passkey' | 'confirm' | 'oidc' | 'new_identity' | 'new_email'
  /** Null: a visitor. */
  readonly userId: string | null
}

/** @param minutes time for which it is in force */
export async function createTicket(
  sql: Queryable,
  ticket: Ticket,
  data: object = {},
  minutes = TICKET_MINUTES,
): Promise<void> {
  await sql`
    INSERT INTO sign_in_tickets (token_hash, purpose, user_id, data, expires_at)
    VALUES (${ticket.tokenHash}, ${ticket.purpose}, ${ticket.userId}, ${printJson(data)}::text::jsonb,
      now() + make_interval(mins => ${minutes}))`
}

/** Uses up a ticket and returns its data; null where there is none in force for this step and user. */
export async function takeTicket<Data>(sql: Queryable, ticket: Ticket): Promise<Data | null> {
  const [row] = await sql<{ data: Data }[]>`
    DELETE FROM sign_in_tickets
    WHERE token_hash = ${ticket.tokenHash} AND purpose = ${ticket.purpose} AND expires_at > now()
      AND user_id IS NOT DISTINCT FROM ${ticket.userId}
    RETURNING data`
  return row?.data ?? null
}

/** Voids the tickets of a user: those of one step, or all. */
export async function voidTickets(
  sql: Queryable,
  userId: string,
  purpose?: Ticket['purpose'],
): Promise<void> {
  await sql`
    DELETE FROM sign_in_tickets
    WHERE user_id = ${userId} ${purpose === undefined ? sql`` : sql`AND purpose = ${purpose}`}`
}

/** Voids what a user, or someone in their name, has begun and not finished: tickets, and links not used. */
export async function voidBegun(sql: Queryable, userId: string): Promise<void> {
  await voidTickets(sql, userId)
  await sql`DELETE FROM sign_in_links WHERE user_id = ${userId} AND used_at IS NULL`
}

/** Returns the user whose second step a ticket waits for, and leaves the ticket; null without one in force. */
export async function findTicketUser(sql: Queryable, ticket: Omit<Ticket, 'userId'>): Promise<string | null> {
  const [row] = await sql<{ user_id: string }[]>`
    SELECT user_id FROM sign_in_tickets
    WHERE token_hash = ${ticket.tokenHash} AND purpose = ${ticket.purpose} AND expires_at > now()`
  return row?.user_id ?? null
}
