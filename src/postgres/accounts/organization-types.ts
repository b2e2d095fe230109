/** What the rest of the service may ask of PostgreSQL about organizations, grants and the audit record. */
import type { ApiKey } from '../../../schemas/accounts/key.ts'
import type { KeyRequest, Member, MemberRole } from '../../../schemas/accounts/organization.ts'
import type { Credits } from '../../../schemas/money.ts'
import type { AccountWithWallet } from '../types.ts'

export interface NewKeyRequest {
  readonly organizationId: string
  readonly memberId: string
  readonly name: string
  readonly agentId?: string | null
  readonly note?: string | null
}

export interface KeyApproval {
  readonly requestId: string
  /** An admin of the organization. */
  readonly by: string
  readonly spendCap: Credits
  readonly allowedModels?: readonly string[] | null
  readonly expiresAt?: Date | null
}

/** One administrative act. `before` and `after` hold no secret. */
export interface AuditEntry {
  readonly id: bigint
  readonly at: Date
  /** `operator:<user>` for the command line, else the acting account's id. */
  readonly actor: string
  /** `<subject>.<verb>`, such as `key.revoke`. */
  readonly action: string
  readonly accountId: string | null
  readonly subjectId: string
  readonly before: unknown
  readonly after: unknown
}

export interface AuditFilter {
  readonly accountId?: string
  readonly subjectId?: string
  readonly since?: Date
  readonly limit: number
}

export interface CapReservation {
  readonly keyId: string
  readonly requestId: string
  readonly amount: Credits
}

export interface WalletReservation {
  readonly accountId: string
  readonly requestId: string
  readonly amount: Credits
}

export interface Organizations {
  /** Models that any key of the account may call; null: every model. */
  setAccountModels(accountId: string, allowedModels: readonly string[] | null): Promise<AccountWithWallet>

  /** @throws Refusal `not_an_organization`, `account_not_found`, as all that follow; `not_a_personal_account` */
  putMember(organizationId: string, accountId: string, role: MemberRole): Promise<Member>
  /** Revokes the member's keys and withdraws their requests. @throws Refusal `member_not_found`, `last_admin` */
  removeMember(organizationId: string, accountId: string): Promise<Member>
  listMembers(organizationId: string): Promise<Member[]>

  /** @throws Refusal `member_not_found`, `agent_not_found`, `agent_deleted` */
  requestKey(request: NewKeyRequest): Promise<KeyRequest>
  listKeyRequests(organizationId: string): Promise<KeyRequest[]>
  /** @throws Refusal `request_not_found`, `request_decided`, `not_an_admin` */
  approveKey(approval: KeyApproval): Promise<{ request: KeyRequest; key: ApiKey; raw: string }>
  denyKey(requestId: string, by: string): Promise<KeyRequest>

  /**
   * True and reserved until the call's row is booked, or false: what the cap leaves does not cover the amount. Exact
   * over all processes; a request reserves once. Nothing is reserved for a key without a cap.
   */
  reserveCap(reservation: CapReservation): Promise<boolean>
  /**
   * True and reserved until the call's row is booked, or false: the balance less all reservations does not cover the
   * amount. Exact over all processes that reserve; a request reserves once.
   */
  reserveWallet(reservation: WalletReservation): Promise<boolean>
  /** The call has ended: its cost is known, and no more than that stays reserved until its row is booked. */
  shrinkReservation(requestId: string, cost: Credits): Promise<void>
  /** Nothing was sent, and no row will record it. */
  releaseReservation(requestId: string): Promise<void>

  /** The newest first. */
  listAudit(filter: AuditFilter): Promise<AuditEntry[]>
}
