/** Operations of accounts and their wallets. */
import { Failure } from '../../../schemas/failure.ts'
import * as operations from '../../../schemas/management/accounts/accounts.ts'
import { printCredits } from '../../../schemas/money.ts'
import type { Credited } from '../../../src/postgres/billing/wallets.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { implementWith } from '../operation.ts'
import { readNumberCursor, readPage, toPage } from '../page.ts'
import { accountShape, entryShape, walletShape } from '../shapes.ts'
import { assertKnownModels, type Configured } from './key-rules.ts'

const implement = implementWith<Configured>()

const readId = async (_: Database, { id }: { readonly id: string }): Promise<string> => id

const creditedShape = ({ wallet, entry, isRepeated }: Credited) => ({
  ...walletShape(wallet),
  entry: entryShape(entry),
  repeated: isRepeated,
})

export const accountOperations = [
  implement(operations.listAccounts, async ({ database }, input) => {
    const found = await database.accounts.list({ search: input.search ?? null, ...readPage(input) })
    return toPage(found.map(accountShape), input)
  }),
  implement(operations.showAccount, readId, async ({ database }, { id }) =>
    accountShape(await database.accounts.show(id)),
  ),
  implement(operations.createAccount, async ({ write }, { name, kind, credit = null }, { config }) => {
    const wanted = { name, kind, credit: credit ?? config().trial_credit }
    return accountShape(await write((database) => database.accounts.create(wanted)))
  }),
  implement(operations.createOrganization, async ({ write, caller }, { name }) => {
    if (caller.signedIn === null)
      throw new Failure('permission_denied', 'A user creates an organization: its owner.')
    const owner = caller.signedIn.user.accountId
    return accountShape(await write((database) => database.organizations.create(owner, name)))
  }),
  implement(operations.renameAccount, readId, async ({ write }, { id, name }) =>
    accountShape(await write((database) => database.accounts.rename(id, name))),
  ),
  implement(operations.viewAccount, ({ write }, { id }) =>
    write(async (database) => {
      const account = accountShape(await database.accounts.show(id))
      await database.accounts.recordView(id)
      return account
    }),
  ),
  implement(
    operations.updateAccount,
    async ({ write, database: reading }, { id, enabled, ...input }, configured) => {
      const { requests_per_minute: requestsPerMinute, concurrency, allowed_models: allowedModels } = input
      const limits = {
        ...(requestsPerMinute !== undefined && { requestsPerMinute }),
        ...(concurrency !== undefined && { concurrency }),
      }
      const readPresent = async () => (await reading.accounts.show(id)).account.allowedModels
      await assertKnownModels(configured, allowedModels, readPresent)
      const updated = await write(async (database) => {
        if (enabled !== undefined) await database.accounts.setEnabled(id, enabled)
        if (allowedModels !== undefined) await database.accounts.setModels(id, allowedModels)
        return database.accounts.setLimits(id, limits)
      })
      return accountShape(updated)
    },
  ),
  implement(operations.topUp, async ({ write }, { id, amount, note, reference }) =>
    creditedShape(await write((database) => database.wallets.topUp(id, amount, { note, reference }))),
  ),
  implement(operations.adjust, async ({ write }, { id, amount, reason, reference }) =>
    creditedShape(await write((database) => database.wallets.adjust(id, amount, { reason, reference }))),
  ),
  implement(operations.refund, async ({ write }, { id, ref, amount, reason }) =>
    creditedShape(await write((database) => database.wallets.refund(id, ref, { amount, reason }))),
  ),
  implement(operations.listLedger, readId, async ({ database }, { id, ...input }) => {
    const before = readNumberCursor(input)
    const entries = await database.wallets.readLedger(id, { ...input, before, limit: input.limit + 1 })
    return toPage(entries.map(entryShape), input)
  }),
  implement(operations.showLedgerMonth, readId, async ({ database }, { id, ...input }) => {
    const days = await database.wallets.sumLedgerMonth(id, input)
    return {
      month: input.month,
      days: days.map(({ day, balance, kinds }) => ({
        day,
        balance: printCredits(balance),
        kinds: kinds.map(({ amount, ...kind }) => ({ ...kind, amount: printCredits(amount) })),
      })),
    }
  }),
]
