/** `POST /webhooks/stripe`: events of the payment provider. See docs/payments.md, "The webhook". */
import { defer, from, map } from 'rxjs'
import { Failure } from '../../schemas/failure.ts'
import type { Handler } from '../../src/http/handler.ts'
import type { Provider } from '../../src/payments/provider.ts'
import type { Database } from '../../src/postgres/database.ts'
import { jsonReply } from '../calls/replies.ts'
import type { PipelineLog } from '../settlement/retrying.ts'
import { takeEvent } from './take-event.ts'

export interface WebhookDeps {
  readonly database: Database
  readonly log: PipelineLog
  /** Null if the service takes no cards. */
  readonly openProvider: (() => Promise<Provider>) | null
}

/** Answers once the event is booked: without a 2xx the provider sends it again, for days. */
export const answerPaymentWebhook =
  (deps: WebhookDeps): Handler =>
  ({ path, body, header }) =>
    defer(() => from(receive(deps, path, body, header('stripe-signature')))).pipe(
      map((outcome) => jsonReply({ received: true, outcome })),
    )

async function receive(
  { openProvider, ...deps }: WebhookDeps,
  path: string,
  body: Buffer,
  signature: string,
) {
  if (openProvider === null) throw new Failure('not_found', `There is no endpoint at ${path}.`)
  const provider = await openProvider()
  const event = provider.readEvent(body, signature)
  return (await takeEvent({ ...deps, provider }, event)).outcome
}
