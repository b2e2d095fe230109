/** What operations of payments use, and the checks that all of them make. */
import type { ConfigFile } from '../../../schemas/config/file.ts'
import { Failure } from '../../../schemas/failure.ts'
import type { Provider } from '../../../src/payments/provider.ts'
import type { PipelineLog } from '../../settlement/retrying.ts'
import type { Context } from '../operation.ts'

export interface PaymentServices {
  readonly config: () => ConfigFile
  /** Null: the service has no payment provider. */
  readonly openProvider: (() => Promise<Provider>) | null
  /** The simulated provider takes the cards. */
  readonly hasSimulatedCards: boolean
  readonly publicUrl: string
  readonly log: PipelineLog
}

/** @throws Failure `conflict` where the service takes no cards */
export async function openCards({ openProvider, config }: PaymentServices) {
  const rates = config().payments
  if (openProvider === null || rates === null)
    throw new Failure(
      'conflict',
      'This service takes no cards: its operator sets STRIPE_SECRET_KEY, STRIPE_WEBHOOK_SECRET and `payments` in the configuration.',
    )
  return { provider: await openProvider(), rates }
}

/** Returns the address of the console that the caller uses; else the public one. */
export const consoleBase = ({ caller, visit }: Context, { publicUrl }: PaymentServices): string =>
  (caller.signedIn !== null && visit.origin) || publicUrl

/**
 * Returns the provider's id of an account, which is created there when it is first needed, and again where the provider
 * does not know it: it was made with other keys, or deleted there.
 */
export async function findOrCreateCustomer(
  { database }: Context,
  provider: Provider,
  accountId: string,
): Promise<string> {
  const known = await database.payments.findCustomer(accountId)
  if (known !== null && (await provider.hasCustomer(known))) return known
  const { account } = await database.accounts.show(accountId)
  const created = await provider.createCustomer(accountId, account.name, known)
  await database.payments.keepCustomer(accountId, created)
  return created
}
