/** A service whose cards the simulated provider takes, and what a customer does at its pages. */
import type { Test } from 'tap'
import { startEngines } from '../../support/engines.ts'
import { type ManageClient, signIn } from '../../support/manage.ts'
import { eventually, startService, type TestService, testConfig } from '../../support/service.ts'

export const WEBHOOK_SECRET = 'whsec_current'
export const FORMER_SECRET = 'whsec_former'
const CONFIG = testConfig(
  { fast: { input: '100000000' } },
  'payments: { currency: usd, credits_per_unit: "100", presets: ["500"], seller: ["Test Inc."] }',
)

export interface Shop {
  readonly service: TestService
  /** Asks the simulated provider's control interface. */
  control(method: string, path: string, body?: object): Promise<Books & Record<string, never>>
  /** Names the webhook to the provider; a service that was started again has another address. */
  nameWebhook(): Promise<void>
  newCustomer(credit?: bigint): Promise<Customer>
}

interface Books {
  readonly intents: Record<string, { id: string; status: string; metadata: Record<string, string> }>
  readonly disputes: Record<string, { id: string }>
  readonly refunds: Record<string, { id: string }>
  readonly deliveries: { event: string; type: string; status: number | null }[]
  readonly held: { id: string }[]
}

export interface Customer {
  readonly accountId: string
  readonly client: ManageClient
}

export async function openShop(t: Test, env: Readonly<Record<string, string>> = {}): Promise<Shop> {
  const engines = await startEngines(t)
  const service = await startService(t, {
    config: CONFIG,
    engines,
    env: {
      STRIPE_SECRET_KEY: 'sk_test_shop',
      STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET,
      STRIPE_API_URL: engines.simulatorUrl,
      TOLLGATE_ROLES: 'gateway,settler,tasks',
      ...env,
    },
  })
  const control = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${service.engines.simulatorUrl}/simulator/payments${path}`, {
      method,
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as never
  }
  const nameWebhook = async () => {
    await control('PUT', '/webhook', { url: `${service.baseUrl}/webhooks/stripe`, secret: WEBHOOK_SECRET })
  }
  await nameWebhook()
  return {
    service,
    control,
    nameWebhook,
    async newCustomer(credit = 0n) {
      const { account } = await service.database.accounts.create({ name: 'Shopper', credit })
      return { accountId: account.id, client: await signIn(service, { accountId: account.id }) }
    },
  }
}

/** Starts a top-up; answers with the payment. */
export async function startTopUp({ client, accountId }: Customer, credits = '500', saveCard = false) {
  const { status, body } = await client.send('POST', '/payments', {
    account_id: accountId,
    credits,
    save_card: saveCard,
  })
  if (status !== 201) throw new Error(`POST /payments: ${status} ${JSON.stringify(body)}`)
  return body as { id: string; url: string; state: string }
}

/** Sends a form of the provider's page, as a browser does; answers with where it leads. */
export async function fillPage(url: string, fields: Record<string, string>) {
  const body = new URLSearchParams(fields)
  const answer = await fetch(url, { method: 'POST', body, redirect: 'manual' })
  return { status: answer.status, location: answer.headers.get('location'), text: await answer.text() }
}

export const payAt = (url: string, number = '4242 4242 4242 4242') => fillPage(url, { number })

export const paymentOf = async ({ client }: Customer, id: string) =>
  (await client.send('GET', `/payments/${id}`)).body

/** Waits until a payment is in this state. */
export const untilState = (customer: Customer, id: string, state: string) =>
  eventually(`${id} is ${state}`, async () => {
    const payment = await paymentOf(customer, id)
    return payment.state === state ? payment : undefined
  })

export const balanceOf = async ({ service }: Shop, { accountId }: Pick<Customer, 'accountId'>) =>
  (await service.database.accounts.show(accountId)).wallet.balance / 100_000_000n
