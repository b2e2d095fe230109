/** People who sign in, and the tokens of their programs. A user owns one personal account. */

import type { AccountRole, InstallationRole, Scope } from '../management/operation.ts'
import type { AccountKind } from './account.ts'
import type { MemberRole } from './organization.ts'

export const LOCALES = ['en', 'zh'] as const
export type Locale = (typeof LOCALES)[number]

export interface User {
  /** `usr_` + ULID. */
  readonly id: string
  readonly email: string
  readonly name: string
  readonly locale: Locale
  readonly accountId: string
  readonly installationRole: InstallationRole | null
  readonly enabled: boolean
  readonly createdAt: Date
  /** The last sign-in; null for one who never did. */
  readonly signedInAt: Date | null
}

/** An account in which a user has a role. */
export interface Access {
  readonly accountId: string
  readonly name: string
  readonly kind: AccountKind
  readonly role: AccountRole
}

export interface Session {
  /** `ses_` + ULID. */
  readonly id: string
  readonly userId: string
  readonly createdAt: Date
  readonly lastSeenAt: Date
  readonly confirmedAt: Date
  readonly userAgent: string
  readonly address: string
}

/** A session that is in force, its user, and where they may act. */
export interface SignedIn {
  readonly session: Session
  readonly user: User
  readonly access: readonly Access[]
}

export interface ManagementToken {
  /** `mtk_` + ULID. */
  readonly id: string
  readonly prefix: string
  readonly name: string
  /** Null: the installation. */
  readonly accountId: string | null
  readonly scopes: readonly Scope[]
  readonly createdBy: string
  readonly createdAt: Date
  readonly expiresAt: Date | null
  readonly lastUsedAt: Date | null
  readonly revokedAt: Date | null
}

export interface Passkey {
  /** `pky_` + ULID. */
  readonly id: string
  readonly userId: string
  readonly name: string
  /** In base64url. */
  readonly credentialId: string
  readonly publicKey: Uint8Array
  /** Uses, as the authenticator counts them. */
  readonly counter: number
  readonly transports: readonly string[]
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
}

/** Ways in which a user signs in, links left out. */
export interface SignInMethods {
  readonly passwordSetAt: Date | null
  /** Null: no one-time codes are asked for. */
  readonly totpConfirmedAt: Date | null
  /** Number of recovery codes that were not used. */
  readonly recoveryCodes: number
  readonly passkeys: readonly Passkey[]
  readonly identities: readonly { readonly provider: string; readonly createdAt: Date }[]
}

export interface Invitation {
  /** `inv_` + ULID. */
  readonly id: string
  readonly email: string
  /** The organization that it invites to; null: none. */
  readonly accountId: string | null
  readonly accountName: string | null
  readonly role: MemberRole | null
  readonly installationRole: InstallationRole | null
  readonly createdBy: string
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly usedAt: Date | null
  readonly revokedAt: Date | null
}
