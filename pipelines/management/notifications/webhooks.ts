/** Operations of webhook endpoints and of the secret of callbacks. */
import { Failure } from '../../../schemas/failure.ts'
import * as operations from '../../../schemas/management/notifications/webhooks.ts'
import type { WebhookEndpoint } from '../../../schemas/notifications/delivery.ts'
import { INSTALLATION, listEvents } from '../../../schemas/notifications/event.ts'
import { toApiShape } from '../../../src/core/json/snake-case.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { implementWith } from '../operation.ts'
import { readPage, toPage } from '../page.ts'
import { deliveryShape } from './deliveries.ts'

export interface WebhookServices {
  /** Checks that webhooks may go to an address. @throws Failure `invalid_request` */
  readonly checkReceiver: (url: string) => Promise<void>
}

const webhookShape = ({ url, formerUntil, ...endpoint }: WebhookEndpoint) => ({
  ...toApiShape(endpoint),
  url: url!,
  former_secret_until: formerUntil?.toISOString() ?? null,
})

/** @throws Failure `invalid_request` for an event that is not of the account */
function assertEvents(accountId: string, events: readonly string[] | null | undefined): void {
  const known: readonly string[] = listEvents(accountId)
  const foreign = events?.find((event) => !known.includes(event))
  if (foreign !== undefined)
    throw new Failure(
      'invalid_request',
      `events: ${foreign} is no event of ${accountId}; there are ${known.join(', ')}.`,
    )
}

const findEndpointAccount = async (database: Database, { id }: { readonly id: string }): Promise<string> =>
  (await database.webhooks.show(id)).accountId

const implement = implementWith<WebhookServices>()

export const webhookOperations = [
  implement(
    operations.createWebhook,
    async ({ database, write }, { account_id: accountId, url, description, events }, { checkReceiver }) => {
      if (accountId !== INSTALLATION) await database.accounts.show(accountId)
      assertEvents(accountId, events)
      await checkReceiver(url)
      const { endpoint, secret } = await write((writing) =>
        writing.webhooks.create({ kind: 'webhook', accountId, url, description, events }),
      )
      return { ...webhookShape(endpoint), secret }
    },
  ),
  implement(operations.listWebhooks, async ({ database }, { account_id, ...input }) => {
    const found = await database.webhooks.list(account_id, readPage(input))
    return toPage(found.map(webhookShape), input)
  }),
  implement(operations.showWebhook, findEndpointAccount, async ({ database }, { id }) =>
    webhookShape(await database.webhooks.show(id)),
  ),
  implement(
    operations.updateWebhook,
    findEndpointAccount,
    async ({ database, write }, { id, ...changes }, { checkReceiver }) => {
      assertEvents((await database.webhooks.show(id)).accountId, changes.events)
      if (changes.url !== undefined) await checkReceiver(changes.url)
      return webhookShape(await write((writing) => writing.webhooks.update(id, changes)))
    },
  ),
  implement(operations.deleteWebhook, findEndpointAccount, async ({ write }, { id }) => {
    await write((writing) => writing.webhooks.delete(id))
    return { id, deleted: true as const }
  }),
  implement(operations.rotateWebhook, findEndpointAccount, async ({ write }, { id }) => {
    const { endpoint, secret } = await write((writing) => writing.webhooks.rotateSecret(id))
    return { ...webhookShape(endpoint), secret }
  }),
  implement(operations.testWebhook, findEndpointAccount, async ({ database, write }, { id }) => {
    const { accountId, enabled } = await database.webhooks.show(id)
    if (!enabled) throw new Failure('conflict', `Webhook endpoint ${id} is switched off: switch it on first.`)
    return deliveryShape(await write((writing) => writing.webhooks.test({ id, accountId })))
  }),
  implement(operations.replayFailed, findEndpointAccount, async ({ write }, { id, since }) => ({
    replayed: await write((writing) => writing.deliveries.replayFailed(id, new Date(since))),
  })),
  implement(operations.revealCallbackSecret, async ({ database, write }, { account_id: accountId }) => {
    await database.accounts.show(accountId)
    const secret = await write((writing) => writing.webhooks.revealCallbackSecret(accountId))
    return { account_id: accountId, secret }
  }),
  implement(operations.rotateCallbackSecret, async ({ database, write }, { account_id: accountId }) => {
    await database.accounts.show(accountId)
    const { secret } = await write(async (writing) =>
      writing.webhooks.rotateSecret((await writing.webhooks.findCallbackSecret(accountId)).id),
    )
    return { account_id: accountId, secret }
  }),
]
