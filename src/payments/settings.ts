/** Settings of the payment provider: the configured one, or in the demonstration the simulated one. */
import type { PaymentSettings } from '../../schemas/payments/provider.ts'

/** The simulated provider takes any key but one. */
const SIMULATED_KEY = 'sk_test_simulated'

/**
 * Returns the configured provider; else the simulated one of the demonstration, whose webhooks `secret` signs; null
 * without either.
 */
export function makePaymentSettings(
  configured: PaymentSettings | null,
  simulatorUrl: string | null,
  secret: string,
): PaymentSettings | null {
  if (configured !== null || simulatorUrl === null) return configured
  return { secretKey: SIMULATED_KEY, webhookSecrets: [secret], apiUrl: simulatorUrl }
}
