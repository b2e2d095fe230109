/** Operations of management tokens. */
import { Failure } from '../../../schemas/failure.ts'
import * as operations from '../../../schemas/management/accounts/tokens.ts'
import type { Scope } from '../../../schemas/management/operation.ts'
import { generateManagementToken, hashToken, shownTokenPrefix } from '../../../src/core/keys/bearer-token.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { type Context, implement } from '../operation.ts'
import { type PageInput, readPage, toPage } from '../page.ts'
import { tokenShape } from '../shapes.ts'
import { parseExpiry } from './key-rules.ts'

interface Wanted {
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly expires_at: string | null
}

/** @throws Failure `permission_denied` for a token that makes a token with more scopes */
async function create({ database, write, caller, now }: Context, accountId: string | null, wanted: Wanted) {
  const { name, scopes, expires_at } = wanted
  const beyond = scopes.filter((scope) => caller.scopes !== null && !caller.scopes.has(scope))
  if (beyond.length > 0)
    throw new Failure('permission_denied', `The management token lacks the scope ${beyond.join(', ')}.`)
  const expiresAt = parseExpiry(expires_at, now)
  if (accountId !== null) await database.accounts.show(accountId)
  const token = generateManagementToken()
  const made = await write((writing) =>
    writing.managementTokens.create({
      tokenHash: hashToken(token),
      prefix: shownTokenPrefix(token),
      name,
      accountId,
      scopes,
      expiresAt,
    }),
  )
  return { ...tokenShape(made), token }
}

async function list({ database }: Context, accountId: string | null, input: PageInput) {
  return toPage((await database.managementTokens.list(accountId, readPage(input))).map(tokenShape), input)
}

/** An id of the other kind counts as missing. @throws Failure `not_found` */
const findTokenAccount = async (database: Database, { id }: { readonly id: string }): Promise<string> => {
  const { accountId } = await database.managementTokens.show(id)
  if (accountId === null) throw new Failure('not_found', `There is no management token ${id} of an account.`)
  return accountId
}

export const tokenOperations = [
  implement(operations.createToken, (context, { account_id, ...wanted }) =>
    create(context, account_id, wanted),
  ),
  implement(operations.listTokens, (context, { account_id, ...input }) => list(context, account_id, input)),
  implement(operations.revokeToken, findTokenAccount, async ({ write }, { id }) =>
    tokenShape(await write((database) => database.managementTokens.revoke(id))),
  ),
  implement(operations.createInstallationToken, (context, wanted) => create(context, null, wanted)),
  implement(operations.listInstallationTokens, (context, input) => list(context, null, input)),
  implement(operations.revokeInstallationToken, async ({ write }, { id }) =>
    tokenShape(await write((database) => database.managementTokens.revoke(id))),
  ),
]
