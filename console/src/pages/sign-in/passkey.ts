import {
  type PublicKeyCredentialCreationOptionsJSON,
  type PublicKeyCredentialRequestOptionsJSON,
  startAuthentication,
  startRegistration,
} from '@simplewebauthn/browser'
import { type AnswerOf, request } from '../../api/client.ts'
import { t } from '../../i18n.ts'

/** Browsers report the same error for a cancel, a timeout and a device without a passkey. */
async function explainFailure<T>(ceremony: Promise<T>): Promise<T> {
  try {
    return await ceremony
  } catch (error) {
    const name = error instanceof Error ? error.name : ''
    if (name === 'NotAllowedError')
      throw new Error(t('No passkey was used: you cancelled, or this device has none.'))
    if (name === 'InvalidStateError') throw new Error(t('This device already has a passkey of yours.'))
    throw error
  }
}

type Ceremony = AnswerOf<'beginPasskey'>

/** Asks for a passkey of this host. Rejects if the user cancels. */
export async function provePasskey({ ticket, options }: Ceremony) {
  const asked = options as unknown as PublicKeyCredentialRequestOptionsJSON
  const response = await explainFailure(startAuthentication({ optionsJSON: asked }))
  return { ticket, response: { ...response } }
}

/** Makes a passkey on the user's device and adds it to their profile. Rejects if they cancel. */
export async function makePasskey(name: string) {
  const { ticket, options } = await request('beginPasskey', {})
  const asked = options as unknown as PublicKeyCredentialCreationOptionsJSON
  const response = await explainFailure(startRegistration({ optionsJSON: asked }))
  return request('addPasskey', { ticket, response: { ...response }, name })
}
