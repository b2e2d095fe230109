/** Acts of API keys. */
import type { ApiKey } from '../../../schemas/accounts/key.ts'
import {
  createKey,
  forgetKeys,
  listKeys,
  revealKey,
  revokeKey,
  showKey,
  updateKey,
} from '../../../schemas/management/accounts/keys.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { implement } from '../act.ts'
import { visibleKey } from '../calls/calls.ts'
import { afterOf, page } from '../page.ts'
import { keyShape } from '../shapes.ts'

const accountOfKey = async (database: Database, { id }: { id: string }) =>
  (await database.showKey(id)).accountId

const withSecret = ({ key, raw }: { key: ApiKey; raw: string }) => ({ ...keyShape(key), key: raw })
const dateOf = (text: string | null) => (text === null ? null : new Date(text))

export const keyActs = [
  implement(listKeys, async ({ database, caller }, input) => {
    const keys = await database.listKeys(input.account_id)
    // A member of an organization lists their keys.
    const own = caller.signedIn?.user.accountId
    const isMember = caller.roles.get(input.account_id) === 'member'
    const seen = isMember ? keys.filter(({ grant }) => grant?.memberId === own) : keys
    const after = afterOf(input)
    return page(seen.filter(({ id }) => after === null || id > after).map(keyShape), input)
  }),
  implement(createKey, async ({ write }, input) =>
    withSecret(
      await write((database) =>
        database.createKey({
          accountId: input.account_id,
          name: input.name,
          kind: input.kind,
          agentId: input.agent_id,
          allowedModels: input.allowed_models,
          expiresAt: dateOf(input.expires_at),
          spendCap: input.spend_cap,
          accountLogs: input.account_logs,
          opensDraft: input.opens_draft,
        }),
      ),
    ),
  ),
  implement(
    showKey,
    async (context, { id }) => {
      const key = await context.database.showKey(id)
      await visibleKey(context, key.accountId, id)
      return keyShape(key)
    },
    accountOfKey,
  ),
  implement(
    updateKey,
    async ({ write }, { id, name, enabled, ...input }) => {
      const { allowed_models: allowedModels, expires_at, account_logs: accountLogs, spend_cap } = input
      const changes = {
        ...(name !== undefined && { name }),
        ...(allowedModels !== undefined && { allowedModels }),
        ...(expires_at !== undefined && { expiresAt: dateOf(expires_at) }),
        ...(enabled !== undefined && { enabled }),
        ...(accountLogs !== undefined && { accountLogs }),
        ...(spend_cap !== undefined && { spendCap: spend_cap }),
      }
      return keyShape(await write((database) => database.updateKey(id, changes)))
    },
    accountOfKey,
  ),
  implement(
    revealKey,
    async ({ write }, { id }) => withSecret(await write((database) => database.revealKey(id))),
    accountOfKey,
  ),
  implement(forgetKeys, async ({ write }) => ({
    forgotten: await write((database) => database.forgetKeys()),
  })),
  implement(
    revokeKey,
    async ({ write }, { id }) => keyShape(await write((database) => database.revokeKey(id))),
    accountOfKey,
  ),
]
