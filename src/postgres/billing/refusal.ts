/** An administrative operation that cannot be done, with a message for the operator. */
export type RefusalCode =
  | 'account_not_found'
  | 'not_an_organization'
  | 'agent_not_found'
  | 'agent_deleted'
  | 'kb_not_found'
  | 'reader_not_found'
  | 'import_conflict'
  | 'not_a_personal_account'
  | 'member_not_found'
  | 'last_owner'
  | 'last_admin'
  | 'not_an_admin'
  | 'request_not_found'
  | 'request_decided'
  | 'not_grantable'
  | 'spend_cap_required'
  | 'account_logs_not_allowed'
  | 'key_not_found'
  | 'key_not_revealable'
  | 'key_revoked'
  | 'top_up_too_small'
  | 'invalid_amount'
  | 'charge_not_found'
  | 'refunded_already'
  | 'reference_conflict'
  | 'hold_not_found'
  | 'hold_conflict'
  | 'user_not_found'
  | 'email_taken'
  | 'link_invalid'
  | 'last_operator'
  | 'last_way'
  | 'passkey_known'
  | 'passkey_not_found'
  | 'identity_taken'
  | 'identity_not_found'
  | 'totp_confirmed'
  | 'session_not_found'
  | 'invitation_invalid'
  | 'invitation_not_found'
  | 'token_not_found'
  | 'job_not_found'
  | 'job_open'
  | 'job_ended'
  | 'idempotency_key_reuse'
  | 'wrong_master_key'
  | 'schema_mismatch'

export class Refusal extends Error {
  readonly code: RefusalCode

  constructor(code: RefusalCode, message: string) {
    super(message)
    this.name = 'Refusal'
    this.code = code
  }
}
