/** Passkeys (WebAuthn): the options that a browser gets, and the check of what it answers. */
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'

/** Loaded when first used: with it, a gateway takes 0.4 s of CPU and 17 MB more to start. */
const importWebAuthn = () => import('@simplewebauthn/server')

const RP_NAME = 'Tollgate'

/** The public half of a passkey. */
export interface PasskeyCredential {
  /** In base64url. */
  readonly credentialId: string
  readonly publicKey: Uint8Array
  /** Uses, as the authenticator counts them; 0 where it does not. */
  readonly counter: number
  readonly transports: readonly string[]
}

/** Returns the host to which passkeys of a page are bound. */
const toRpId = (origin: string): string => new URL(origin).hostname

/** Returns the options of `navigator.credentials.create`; `challenge` is the one that the answer must have. */
export const makeRegistrationOptions = async (
  origin: string,
  user: { readonly id: string; readonly email: string; readonly name: string },
  known: readonly Pick<PasskeyCredential, 'credentialId' | 'transports'>[],
) =>
  (await importWebAuthn()).generateRegistrationOptions({
    rpName: RP_NAME,
    rpID: toRpId(origin),
    userID: new TextEncoder().encode(user.id),
    userName: user.email,
    userDisplayName: user.name,
    attestationType: 'none',
    excludeCredentials: known.map(({ credentialId: id, transports }) => ({
      id,
      transports: [...transports],
    })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  })

/** Returns the options of `navigator.credentials.get`: any passkey of this host. */
export const makeAuthenticationOptions = async (origin: string) =>
  (await importWebAuthn()).generateAuthenticationOptions({
    rpID: toRpId(origin),
    userVerification: 'required',
  })

/** Returns the new credential; null where the answer does not prove one. */
export async function verifyRegistration(
  origin: string,
  challenge: string,
  response: unknown,
): Promise<PasskeyCredential | null> {
  const { verifyRegistrationResponse } = await importWebAuthn()
  try {
    const { registrationInfo } = await verifyRegistrationResponse({
      response: response as RegistrationResponseJSON,
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: toRpId(origin),
      requireUserVerification: true,
    })
    if (registrationInfo === undefined) return null
    const { id, publicKey, counter, transports = [] } = registrationInfo.credential
    return { credentialId: id, publicKey, counter, transports }
  } catch {
    return null
  }
}

/** Returns the new counter; null where the answer is not signed by the credential, or its counter went back. */
export async function verifyAuthentication(
  origin: string,
  challenge: string,
  response: unknown,
  credential: PasskeyCredential,
): Promise<number | null> {
  const { credentialId: id, publicKey, counter } = credential
  const { verifyAuthenticationResponse } = await importWebAuthn()
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: response as AuthenticationResponseJSON,
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: toRpId(origin),
      credential: { id, publicKey: new Uint8Array(publicKey), counter },
      requireUserVerification: true,
    })
    return verified ? authenticationInfo.newCounter : null
  } catch {
    return null
  }
}
