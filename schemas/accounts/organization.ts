/** Members of an organization, and the grants of its keys. See docs/api-rules.md, "Agents". */
import { z } from 'zod'
import type { Credits } from '../money.ts'

/** An owner may do everything in the organization. Owners and admins decide on members and keys. */
export const MEMBER_ROLES = ['owner', 'admin', 'billing', 'member'] as const
export const memberRole = z.enum(MEMBER_ROLES)
export type MemberRole = z.infer<typeof memberRole>

/** A personal account that belongs to an organization. */
export interface Member {
  readonly organizationId: string
  readonly accountId: string
  readonly name: string
  readonly role: MemberRole
  readonly createdAt: Date
}

export const KEY_REQUEST_STATES = ['pending', 'approved', 'denied', 'withdrawn'] as const
export type KeyRequestState = (typeof KEY_REQUEST_STATES)[number]

/** A member requests a key; an admin approves it with a spend cap, or denies it. */
export interface KeyRequest {
  /** `kreq_` + ULID. */
  readonly id: string
  readonly organizationId: string
  readonly memberId: string
  /** Of the user who owns the member's account; null without one. */
  readonly memberEmail: string | null
  readonly name: string
  /** The agent of a requested agent key; null: an employee key. */
  readonly agentId: string | null
  readonly note: string | null
  readonly state: KeyRequestState
  /** A personal account, or the name of a management token. */
  readonly decidedBy: string | null
  readonly decidedAt: Date | null
  /** The key that was issued. */
  readonly keyId: string | null
  readonly createdAt: Date
}

/** The spending limit of an employee or agent key, and the amount spent. A spend cap is the grant's, not the key's. */
export interface Grant {
  readonly keyId: string
  readonly accountId: string
  /** The member who uses it; null where an operator issued it without a name. */
  readonly memberId: string | null
  readonly approvedBy: string | null
  /** Null: limited only by the wallet. */
  readonly spendCap: Credits | null
  /** The sum of all charges of the key that are booked. */
  readonly spent: Credits
  /** Rises with every change of either. */
  readonly version: bigint
}
