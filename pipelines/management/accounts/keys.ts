/** Operations of API keys. */
import type { ApiKey } from '../../../schemas/accounts/key.ts'
import { Failure } from '../../../schemas/failure.ts'
import { endFormerSecret, rotateKey } from '../../../schemas/management/accounts/key-rotation.ts'
import * as operations from '../../../schemas/management/accounts/keys.ts'
import { normalizeNetwork } from '../../../src/core/keys/address-list.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { findMember } from '../caller.ts'
import { listVisibleKeys } from '../calls/calls.ts'
import { type Context, implementWith } from '../operation.ts'
import { readPage, toPage } from '../page.ts'
import { keyShape } from '../shapes.ts'
import { assertKnownModels, type Configured, parseExpiry } from './key-rules.ts'

/** @throws Failure naming the text that is no network */
export function parseNetworks(texts: readonly string[] | null): string[] | null {
  try {
    return texts && [...new Set(texts.map(normalizeNetwork))]
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new Failure('invalid_request', `allowed_addresses: ${error.message}.`)
  }
}

const findKeyAccount = async (database: Database, { id }: { id: string }) =>
  (await database.keys.show(id)).accountId

/**
 * Refuses the secret of a key that a member holds to everyone but that member, owners and operators.
 * @throws Failure `permission_denied`
 */
async function assertHolds({ caller, database }: Context, id: string): Promise<void> {
  if (caller.installation === 'operator') return
  const { accountId, grant } = await database.keys.show(id)
  const role = caller.roles.get(accountId)
  const holder = grant?.memberId ?? null
  if (role === 'owner' || (holder === null ? role === 'admin' : holder === caller.signedIn?.user.accountId))
    return
  throw new Failure('permission_denied', 'Only the member who holds this key, or an owner, sees its secret.')
}

const withSecret = ({ key, raw }: { key: ApiKey; raw: string }) => ({ ...keyShape(key), key: raw })

const implement = implementWith<Configured>()

export const keyOperations = [
  implement(operations.listKeys, async ({ database, caller }, input) => {
    // A member of an organization lists their keys.
    const keys = await database.keys.list(input.account_id, {
      ...readPage(input),
      memberId: findMember(caller, input.account_id),
    })
    return toPage(keys.map(keyShape), input)
  }),
  implement(operations.createKey, async (context, input, configured) => {
    await assertKnownModels(configured, input.allowed_models)
    const wanted = {
      accountId: input.account_id,
      name: input.name,
      kind: input.kind,
      agentId: input.agent_id,
      allowedModels: input.allowed_models,
      expiresAt: parseExpiry(input.expires_at, context.now),
      spendCap: input.spend_cap,
      accountLogs: input.account_logs,
      opensDraft: input.opens_draft,
      requestsPerMinute: input.requests_per_minute,
      concurrency: input.concurrency,
      allowedAddresses: parseNetworks(input.allowed_addresses),
      maxPrice: input.max_price,
    }
    return withSecret(await context.write((database) => database.keys.create(wanted)))
  }),
  implement(operations.showKey, findKeyAccount, async (context, { id }) => {
    const key = await context.database.keys.show(id)
    await listVisibleKeys(context, key.accountId, id)
    return keyShape(key)
  }),
  implement(
    operations.updateKey,
    findKeyAccount,
    async ({ write, database, now }, { id, name, enabled, ...input }, configured) => {
      const { allowed_models: allowedModels, expires_at, account_logs: accountLogs, spend_cap } = input
      const { requests_per_minute: requestsPerMinute, concurrency, allowed_addresses, max_price } = input
      await assertKnownModels(
        configured,
        allowedModels,
        async () => (await database.keys.show(id)).allowedModels,
      )
      const changes = {
        ...(name !== undefined && { name }),
        ...(allowedModels !== undefined && { allowedModels }),
        ...(expires_at !== undefined && { expiresAt: parseExpiry(expires_at, now) }),
        ...(enabled !== undefined && { enabled }),
        ...(accountLogs !== undefined && { accountLogs }),
        ...(spend_cap !== undefined && { spendCap: spend_cap }),
        ...(requestsPerMinute !== undefined && { requestsPerMinute }),
        ...(concurrency !== undefined && { concurrency }),
        ...(max_price !== undefined && { maxPrice: max_price }),
        ...(allowed_addresses !== undefined && { allowedAddresses: parseNetworks(allowed_addresses) }),
      }
      return keyShape(await write((writing) => writing.keys.update(id, changes)))
    },
  ),
  implement(operations.revealKey, findKeyAccount, async (context, { id }) => {
    await assertHolds(context, id)
    return withSecret(await context.write((database) => database.keys.reveal(id)))
  }),
  implement(operations.forgetKeys, async ({ write }) => ({
    forgotten: await write((database) => database.keys.eraseSealed()),
  })),
  implement(operations.revokeKey, findKeyAccount, async ({ write }, { id }) =>
    keyShape(await write((database) => database.keys.revoke(id))),
  ),
  implement(rotateKey, findKeyAccount, async (context, { id, grace_seconds }) => {
    await assertHolds(context, id)
    return withSecret(await context.write((database) => database.keys.rotate(id, grace_seconds)))
  }),
  implement(endFormerSecret, findKeyAccount, async ({ write }, { id }) =>
    keyShape(await write((database) => database.keys.endFormerSecret(id))),
  ),
]
