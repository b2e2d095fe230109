/** Checks an address that webhooks are to go to. */
import { Failure } from '../../schemas/failure.ts'
import { checkUrl, LinkFailure } from './guarded-fetch.ts'
import { checkPublicLink } from './public-link.ts'

/** Returns a check of scheme, credentials and address. It throws `Failure` `invalid_request`. */
export const receiverChecker =
  (mayBePrivate: () => boolean) =>
  async (url: string): Promise<void> => {
    try {
      if (mayBePrivate()) checkUrl(url)
      else await checkPublicLink(url)
    } catch (error) {
      if (!(error instanceof LinkFailure)) throw error
      const { link, reason, internal } = error
      throw new Failure('invalid_request', `No webhook can be sent to ${link}: ${reason}.`, { internal })
    }
  }
