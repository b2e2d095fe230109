/**
 * The most entries of the collections that customers fill, with and without a profile. A name says what is counted, and of
 * whom. See docs/security.md, "Collections".
 */
export const COLLECTION_LIMITS = {
  /** Those that are not revoked. */
  keys_per_account: 100_000,
  /** Those that wait for an answer. */
  key_requests_per_member: 20,
  budgets_per_account: 10_000,
  members_per_organization: 1_000,
  /** Those of which the user is an owner. */
  organizations_per_user: 20,
  /** Those that can still be accepted. */
  invitations_per_organization: 200,
  /** Those that are neither revoked nor over; the installation counts as an account. */
  tokens_per_account: 100,
  /** Those that are not deleted. */
  agents_per_account: 200,
  webhook_endpoints_per_account: 50,
  /** Operators may create more. */
  knowledge_bases_per_account: 100,
  readers_per_knowledge_base: 1_000,
  /** Operators may import more. */
  pages_per_account: 20_000,
  pages_per_knowledge_base: 1_000_000,
  /** Those that have not ended. */
  imports_per_account: 5,
  saved_views_per_page: 50,
  passkeys_per_user: 20,
  /** A further sign-in ends the one that was not seen for longest. */
  sessions_per_user: 50,
  /** Those that are neither paid nor given up. */
  open_payments_per_account: 20,
  conversations_per_account: 10_000,
  live_streams_per_session: 8,
  live_streams_per_account: 64,
} as const

export type CollectionLimit = keyof typeof COLLECTION_LIMITS

/** Says that a collection is full. */
export const collectionFull = (limit: CollectionLimit): string =>
  `The limit ${limit} is ${COLLECTION_LIMITS[limit]}, and there are as many: remove one that is no longer needed first.`
