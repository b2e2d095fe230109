/** Receivers of webhooks, and the secrets that sign for them. */
import type { WebhookEndpoint } from '../../../schemas/notifications/delivery.ts'
import type { SnakeCase } from '../../core/json/snake-case.ts'
import { newId } from '../../core/keys/ids.ts'
import { type KeyMaterial, webhookSealId } from '../../core/keys/material.ts'
import { generateWebhookSecret } from '../../core/notifications/signature.ts'
import { recordOperation, setActor } from '../accounts/audit-record.ts'
import { assertCurrent } from '../accounts/master-key.ts'
import { Refusal } from '../billing/refusal.ts'
import { addWithin } from '../collections.ts'
import type { Queryable, Sql } from '../connection.ts'
import type { Listing } from '../listing.ts'
import { inTransaction } from '../transaction.ts'

/** Time in which a receiver may take up its new secret. */
const ROTATION_HOURS = 24

type EndpointRow = SnakeCase<WebhookEndpoint> & {
  sealed_secret: Buffer
  sealed_former_secret: Buffer | null
}

const toEndpoint = (row: EndpointRow): WebhookEndpoint => ({
  id: row.id,
  kind: row.kind,
  accountId: row.account_id,
  url: row.url,
  description: row.description,
  events: row.events,
  enabled: row.enabled,
  failingSince: row.failing_since,
  formerUntil: row.former_until !== null && row.former_until > new Date() ? row.former_until : null,
  createdAt: row.created_at,
})

const endpointNotFound = (id: string): Refusal =>
  new Refusal('webhook_not_found', `There is no webhook endpoint ${id}`)

export interface NewEndpoint {
  readonly kind: WebhookEndpoint['kind']
  readonly accountId: string
  readonly url: string | null
  readonly description: string
  readonly events: readonly string[] | null
}

export interface WithSecret {
  readonly endpoint: WebhookEndpoint
  readonly secret: string
}

/** @throws Refusal `limit_reached` */
export const createEndpoint = (
  sql: Queryable,
  material: KeyMaterial,
  endpoint: NewEndpoint,
): Promise<WithSecret> =>
  addWithin(
    sql,
    {
      limit: 'webhook_endpoints_per_account',
      ownerId: endpoint.accountId,
      entries: (present) =>
        present`SELECT FROM webhook_endpoints WHERE account_id = ${endpoint.accountId} AND kind = 'webhook'`,
    },
    (transaction) => insertEndpoint(transaction, material, endpoint),
  )

async function insertEndpoint(
  sql: Queryable,
  material: KeyMaterial,
  { kind, accountId, url, description, events }: NewEndpoint,
): Promise<WithSecret> {
  await assertCurrent(sql, material)
  const id = newId('whe')
  const secret = generateWebhookSecret()
  const [row] = await sql<[EndpointRow]>`
    INSERT INTO webhook_endpoints (id, kind, account_id, url, description, events, sealed_secret)
    VALUES (${id}, ${kind}, ${accountId}, ${url}, ${description}, ${events as string[] | null}::text[],
      ${material.seal(secret, webhookSealId(id))})
    RETURNING *`
  return { endpoint: toEndpoint(row), secret }
}

/** Lists the endpoints of an account, the newest first. */
export async function listEndpoints(
  sql: Queryable,
  accountId: string,
  { after = null, limit = null }: Listing = {},
): Promise<WebhookEndpoint[]> {
  const rows = await sql<EndpointRow[]>`
    SELECT * FROM webhook_endpoints
    WHERE account_id = ${accountId} AND kind = 'webhook' ${after === null ? sql`` : sql`AND id < ${after}`}
    ORDER BY id DESC LIMIT ${limit}`
  return rows.map(toEndpoint)
}

/** @throws Refusal `webhook_not_found` */
export async function showEndpoint(sql: Queryable, id: string): Promise<WebhookEndpoint> {
  const [row] = await sql<EndpointRow[]>`
    SELECT * FROM webhook_endpoints WHERE id = ${id} AND kind = 'webhook'`
  if (row === undefined) throw endpointNotFound(id)
  return toEndpoint(row)
}

export interface EndpointChanges {
  readonly url?: string | undefined
  readonly description?: string | undefined
  readonly events?: readonly string[] | null | undefined
  readonly enabled?: boolean | undefined
}

/** Changes an endpoint; one that is switched on, or has another URL, counts as not failing. */
export async function updateEndpoint(
  sql: Queryable,
  id: string,
  changes: EndpointChanges,
): Promise<WebhookEndpoint> {
  const before = await showEndpoint(sql, id)
  const { url = before.url, description = before.description } = changes
  const { events = before.events, enabled = before.enabled } = changes
  const isFresh = url !== before.url || (enabled && !before.enabled)
  if (isFresh) await sql`UPDATE webhook_endpoints SET failing_since = NULL WHERE id = ${id}`
  const [row] = await sql<[EndpointRow]>`
    UPDATE webhook_endpoints
    SET url = ${url}, description = ${description}, events = ${events as string[] | null}::text[], enabled = ${enabled}
    WHERE id = ${id} RETURNING *`
  return toEndpoint(row)
}

/** Deletes an endpoint with its deliveries. @throws Refusal `webhook_not_found` */
export async function deleteEndpoint(sql: Queryable, id: string): Promise<void> {
  const rows = await sql`DELETE FROM webhook_endpoints WHERE id = ${id} AND kind = 'webhook' RETURNING id`
  if (rows.length === 0) throw endpointNotFound(id)
}

/** Gives an endpoint another secret; for a day the former one signs as well. @throws Refusal `webhook_not_found` */
export async function rotateSecret(sql: Queryable, material: KeyMaterial, id: string): Promise<WithSecret> {
  await assertCurrent(sql, material)
  const secret = generateWebhookSecret()
  const [row] = await sql<EndpointRow[]>`
    UPDATE webhook_endpoints
    SET sealed_former_secret = sealed_secret, former_until = now() + make_interval(hours => ${ROTATION_HOURS}),
      sealed_secret = ${material.seal(secret, webhookSealId(id))}, rotated_at = now()
    WHERE id = ${id} RETURNING *`
  if (row === undefined) throw endpointNotFound(id)
  return { endpoint: toEndpoint(row), secret }
}

/** Returns the id and the secret of an account's callbacks, which are made when they are first asked for. */
export async function readCallbackSecret(
  sql: Queryable,
  material: KeyMaterial,
  accountId: string,
): Promise<{ readonly id: string; readonly secret: string }> {
  const find = () =>
    sql<EndpointRow[]>`SELECT * FROM webhook_endpoints WHERE account_id = ${accountId} AND kind = 'callback'`
  const [known] = await find()
  if (known === undefined) {
    await assertCurrent(sql, material)
    const id = newId('whe')
    await sql`
      INSERT INTO webhook_endpoints (id, kind, account_id, sealed_secret)
      VALUES (${id}, 'callback', ${accountId}, ${material.seal(generateWebhookSecret(), webhookSealId(id))})
      ON CONFLICT DO NOTHING`
  }
  const row = known ?? (await find())[0]!
  return { id: row.id, secret: material.open(row.sealed_secret, webhookSealId(row.id)) }
}

/** Makes an account's callbacks where there are none, in the name of the key whose call asks for one. */
export async function makeCallbacks(
  sql: Sql,
  material: KeyMaterial,
  { accountId, keyId }: { readonly accountId: string; readonly keyId: string },
): Promise<void> {
  const [known] =
    await sql`SELECT FROM webhook_endpoints WHERE account_id = ${accountId} AND kind = 'callback'`
  if (known !== undefined) return
  await inTransaction(sql, async (transaction) => {
    await setActor(transaction, `key:${keyId}`)
    await readCallbackSecret(transaction, material, accountId)
  })
}

/** Shows the secret of an account's callbacks to a person or a program, and records that. */
export async function revealCallbackSecret(
  sql: Queryable,
  material: KeyMaterial,
  accountId: string,
): Promise<string> {
  const { id, secret } = await readCallbackSecret(sql, material, accountId)
  await recordOperation(sql, { action: 'webhook.reveal', accountId, subjectId: id })
  return secret
}
