/** Everything that proves who a person is, for the acts of signing in. */
import { openOidc } from './oidc.ts'
import * as passkeys from './passkeys.ts'
import { openPasswords } from './passwords.ts'
import * as totp from './totp.ts'

export type Identity = ReturnType<typeof openIdentity>

export const openIdentity = () => ({ passwords: openPasswords(), oidc: openOidc(), passkeys, totp })
