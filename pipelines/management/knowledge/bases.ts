/** Operations of knowledge bases and of those who may read them. */
import { Failure } from '../../../schemas/failure.ts'
import type { KnowledgeBase } from '../../../schemas/knowledge/wiki.ts'
import * as operations from '../../../schemas/management/knowledge/bases.ts'
import { toApiShape } from '../../../src/core/json/snake-case.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { type Context, implement } from '../operation.ts'
import { readPage, toPage, toWholeList } from '../page.ts'

const baseShape = toApiShape<KnowledgeBase>

export const findBaseAccount = async (database: Database, { id }: { readonly id: string }): Promise<string> =>
  (await database.knowledge.showBase(id)).accountId

/** Whether the reader is an agent or a member of the account, or another account that the caller administers. */
async function isNear({ caller, database }: Context, accountId: string, reader: string): Promise<boolean> {
  const role = caller.roles.get(reader)
  if (role === 'owner' || role === 'admin') return true
  if ((await database.accounts.show(accountId)).account.kind !== 'organization') return false
  if ((await database.organizations.findRole(accountId, reader)) !== null) return true
  return (await database.agents.list(accountId)).some(({ id }) => id === reader)
}

export const baseOperations = [
  implement(operations.listBases, async ({ database }, { account_id: accountId }) => {
    const [own, readable] = await Promise.all([
      database.knowledge.listBases(accountId),
      database.knowledge.listReadableBases({ accountId }),
    ])
    const ids = new Set(own.map(({ id }) => id))
    return {
      ...toWholeList(own.map(baseShape)),
      granted: readable
        .filter(({ id }) => id !== '' && !ids.has(id))
        .map(({ id, name, pages }) => ({ id, name, pages })),
    }
  }),
  implement(operations.listAllBases, async ({ database }, { account_id: accountId = null, ...input }) => {
    if (accountId !== null) await database.accounts.show(accountId)
    const found = await database.knowledge.listBases(accountId, readPage(input))
    return toPage(found.map(baseShape), input)
  }),
  implement(operations.showBase, findBaseAccount, async ({ database }, { id }) =>
    baseShape(await database.knowledge.showBase(id)),
  ),
  implement(operations.createBase, ({ caller, write }, { account_id: accountId, name }) => {
    const isOperator = caller.installation === 'operator'
    return write(async (writing) =>
      baseShape(await writing.knowledge.createBase(accountId, name, { isOperator })),
    )
  }),
  implement(operations.grantBase, findBaseAccount, async (context, { id, reader_id: readerId }) => {
    const { caller, database, write } = context
    // A base that is granted to strangers would bring its pages into what their models read.
    if (
      caller.installation !== 'operator' &&
      !(await isNear(context, await findBaseAccount(database, { id }), readerId))
    )
      throw new Failure(
        'not_found',
        `${readerId} is neither an agent nor a member of this account, nor an account of yours. An operator may grant it to others.`,
      )
    return write(async (writing) => baseShape(await writing.knowledge.grantBase(id, readerId)))
  }),
  implement(operations.revokeBase, findBaseAccount, ({ write }, { id, reader_id: readerId }) =>
    write(async (writing) => baseShape(await writing.knowledge.revokeBase(id, readerId))),
  ),
  implement(operations.deleteBase, findBaseAccount, ({ write }, { id }) =>
    write(async (writing) => baseShape(await writing.knowledge.deleteBase(id))),
  ),
]
