/** `tollgate webhook …`: endpoints of webhooks, and what was delivered to them. */
import { InvalidArgumentError, Option } from 'commander'
import { deliveryActs } from '../../../pipelines/management/notifications/deliveries.ts'
import { type WebhookDeps, webhookActs } from '../../../pipelines/management/notifications/webhooks.ts'
import {
  listDeliveries,
  replayDelivery,
  showDelivery,
} from '../../../schemas/management/notifications/deliveries.ts'
import {
  createWebhook,
  deleteWebhook,
  listWebhooks,
  replayFailed,
  revealCallbackSecret,
  rotateCallbackSecret,
  rotateWebhook,
  showWebhook,
  testWebhook,
  updateWebhook,
} from '../../../schemas/management/notifications/webhooks.ts'
import { DELIVERY_STATES, type DeliveryState } from '../../../schemas/notifications/delivery.ts'
import { EVENT_TYPES, type EventType } from '../../../schemas/notifications/event.ts'
import { receiverChecker } from '../../fetch/receiver.ts'
import { operatorConfig } from '../config/config.ts'
import { type Answer, answerRecord, answerTable, type Command, type Context } from '../context.ts'
import { type Runner, runnerOf } from '../management.ts'
import { instant } from '../option-values.ts'
import type { JsonObject } from '../output.ts'

const ENDPOINT = 'whe_01J8Z3N4V9QKX2T5W7Y0ABCDEF'
const DELIVERY = 'dlv_6a0d9f0b6f7c4c1d9f0e2b3a4c5d6e7f'
const ACCOUNT = 'acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF'
const ENDPOINT_FIELDS = ['id', 'url', 'events', 'enabled', 'failing_since']
const DELIVERY_FIELDS = ['id', 'type', 'state', 'attempts', 'last_status', 'last_error', 'created_at', 'url']
const MOST_DELIVERIES = 50

/** Commander takes no null for the value of an option. */
type EventList = EventType[] | 'all'

function eventList(text: string): EventList {
  if (text === 'all') return text
  const names = text.split(',').map((name) => name.trim())
  const unknown = names.find((name) => !EVENT_TYPES.includes(name as EventType))
  if (unknown === undefined) return names as EventType[]
  throw new InvalidArgumentError(`"${unknown}" is no event; there are ${EVENT_TYPES.join(', ')}.`)
}

/** Returns an endpoint as the text of a command shows it. */
const inWords = (endpoint: JsonObject): JsonObject => ({ ...endpoint, events: endpoint.events ?? 'all' })

const answerEndpoint = (endpoint: JsonObject): Answer => answerRecord(endpoint, inWords(endpoint))

const filterOf = (events: EventList): EventType[] | null => (events === 'all' ? null : events)

const accountOption = (command: Command) =>
  command.requiredOption('--account <id>', 'account id, or "installation" for the events of operators')

export function addWebhookCommands(program: Command, { wiring }: Context): void {
  const deps = (): WebhookDeps => ({
    checkReceiver: receiverChecker(() => operatorConfig(wiring).webhooks.private_addresses),
  })
  const runner = runnerOf(wiring, [...webhookActs, ...deliveryActs], deps)
  const webhook = program.command('webhook').description('endpoints to which events are posted')
  addEndpoints(webhook, runner)
  addDeliveries(webhook, runner)
  addCallbackSecret(webhook, runner)
}

function addEndpoints(webhook: Command, { run, list }: Runner): void {
  interface CreateOptions {
    account: string
    url: string
    events: EventList
    description: string
  }
  accountOption(webhook.command('create').description('a new endpoint; prints its secret, this once'))
    .requiredOption('--url <url>', 'address of the receiver')
    .option('--events <a,b>', 'events to post', eventList, 'all')
    .option('--description <text>', 'what receives there', '')
    .example(`webhook create --account ${ACCOUNT} --url https://example.com/hooks`)
    .answers(async ({ account, url, events, description }: CreateOptions) =>
      answerEndpoint(
        await run(createWebhook, { account_id: account, url, events: filterOf(events), description }),
      ),
    )
  accountOption(webhook.command('list').description('the endpoints of an account'))
    .example(`webhook list --account ${ACCOUNT}`)
    .answers(async ({ account }: { account: string }) => {
      const json = await list(listWebhooks, { account_id: account })
      return answerTable(json, ENDPOINT_FIELDS, json.map(inWords))
    })
  interface UpdateOptions {
    url?: string
    events?: EventList
    enable?: true
    disable?: true
  }
  const update = webhook.command('update')
  update
    .description('change an endpoint, or switch it on or off')
    .argument('<id>', 'endpoint id')
    .option('--url <url>', 'address of the receiver')
    .option('--events <a,b|all>', 'events to post', eventList)
    .addOption(new Option('--enable', 'switch it on').conflicts('disable'))
    .option('--disable', 'switch it off')
    .example(`webhook update ${ENDPOINT} --events balance.low,balance.empty`)
    .answers(async (id: string, changes: UpdateOptions) => {
      if (Object.keys(changes).length === 0)
        update.error('error: name at least one of --url, --events, --enable and --disable')
      const { url, events, enable, disable } = changes
      const enabled = enable ?? (disable === true ? false : undefined)
      return answerEndpoint(
        await run(updateWebhook, { id, url, ...(events && { events: filterOf(events) }), enabled }),
      )
    })
  for (const [name, operation, description, shown] of [
    ['show', showWebhook, 'one endpoint', answerEndpoint],
    ['rotate', rotateWebhook, 'a new secret; the former one signs as well for 24 hours', answerEndpoint],
    ['test', testWebhook, 'post an event "webhook.test"', answerRecord],
    ['delete', deleteWebhook, 'delete an endpoint and its deliveries', answerRecord],
  ] as const)
    webhook
      .command(name)
      .description(description)
      .argument('<id>', 'endpoint id')
      .example(`webhook ${name} ${ENDPOINT}`)
      .answers(async (id: string) => shown((await run(operation, { id })) as JsonObject))
}

function addDeliveries(webhook: Command, { run, list }: Runner): void {
  interface DeliveriesOptions {
    account: string
    endpoint?: string
    state?: DeliveryState
  }
  accountOption(webhook.command('deliveries').description('the last deliveries, the newest first'))
    .option('--endpoint <id>', 'those of one endpoint')
    .addOption(new Option('--state <state>', 'those in one state').choices(DELIVERY_STATES))
    .example(`webhook deliveries --account ${ACCOUNT} --state failed`)
    .answers(async ({ account, endpoint, state }: DeliveriesOptions) => {
      const filter = { account_id: account, endpoint_id: endpoint, state }
      return answerTable(await list(listDeliveries, filter, MOST_DELIVERIES), DELIVERY_FIELDS)
    })
  for (const [name, operation, description] of [
    ['delivery', showDelivery, 'one delivery, with its body and each attempt'],
    ['replay', replayDelivery, 'send a delivery again'],
  ] as const)
    webhook
      .command(name)
      .description(description)
      .argument('<id>', 'delivery id')
      .example(`webhook ${name} ${DELIVERY}`)
      .answers(async (id: string) => answerRecord((await run(operation, { id })) as JsonObject))
  webhook
    .command('replay-failed')
    .description('send again what failed at an endpoint')
    .argument('<id>', 'endpoint id')
    .requiredOption('--since <time>', 'from this instant on', instant)
    .example(`webhook replay-failed ${ENDPOINT} --since 2026-11-24`)
    .answers(async (id: string, { since }: { since: Date }) =>
      answerRecord(await run(replayFailed, { id, since: since.toISOString() })),
    )
}

function addCallbackSecret(webhook: Command, { run }: Runner): void {
  for (const [name, operation, description] of [
    ['callback-secret', revealCallbackSecret, 'the secret that signs the callbacks of an account’s tasks'],
    [
      'rotate-callback-secret',
      rotateCallbackSecret,
      'another one; the former one signs as well for 24 hours',
    ],
  ] as const)
    webhook
      .command(name)
      .description(description)
      .argument('<account>', 'account id')
      .example(`webhook ${name} ${ACCOUNT}`)
      .answers(async (account: string) => answerRecord(await run(operation, { account_id: account })))
}
