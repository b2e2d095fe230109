/** Passkeys in the browser. */
import {
  type PublicKeyCredentialCreationOptionsJSON,
  type PublicKeyCredentialRequestOptionsJSON,
  startAuthentication,
  startRegistration,
} from '@simplewebauthn/browser'
import type { addPasskey, beginPasskey } from '../../../../schemas/management/people/profile.ts'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'

/** Browsers report the same for a cancel, a time-out and a device without a passkey. */
async function inPlainWords<T>(ceremony: Promise<T>): Promise<T> {
  try {
    return await ceremony
  } catch (error) {
    const name = error instanceof Error ? error.name : ''
    if (name === 'NotAllowedError')
      throw new Error(t('No passkey was used: you cancelled, or there is none here.'))
    if (name === 'InvalidStateError') throw new Error(t('This device has a passkey of yours already.'))
    throw error
  }
}

type Ceremony = Awaited<ReturnType<typeof request<typeof beginPasskey>>>

/** Asks the person for a passkey of this host. Rejects when they cancel. */
export async function provePasskey({ ticket, options }: Ceremony) {
  const asked = options as unknown as PublicKeyCredentialRequestOptionsJSON
  const response = await inPlainWords(startAuthentication({ optionsJSON: asked }))
  return { ticket, response: { ...response } }
}

/** Makes a passkey on the person's device and adds it to the user. Rejects when they cancel. */
export async function makePasskey(name: string) {
  const { ticket, options } = await request<typeof beginPasskey>('POST', '/me/passkeys/options', {})
  const asked = options as unknown as PublicKeyCredentialCreationOptionsJSON
  const response = await inPlainWords(startRegistration({ optionsJSON: asked }))
  return request<typeof addPasskey>('POST', '/me/passkeys', { ticket, response: { ...response }, name })
}
