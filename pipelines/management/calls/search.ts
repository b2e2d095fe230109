/** The operation that finds what an id names. */
import { Failure } from '../../../schemas/failure.ts'
import { showAccount } from '../../../schemas/management/accounts/accounts.ts'
import { showKey } from '../../../schemas/management/accounts/keys.ts'
import { showCall } from '../../../schemas/management/calls/calls.ts'
import { search } from '../../../schemas/management/calls/search.ts'
import { showTask } from '../../../schemas/management/calls/tasks.ts'
import type { Operation } from '../../../schemas/management/operation.ts'
import { assertMayActIn } from '../caller.ts'
import { type Context, implement, toFailure } from '../operation.ts'
import { toPage } from '../page.ts'
import { listVisibleKeys } from './calls.ts'
import { isShown } from './tasks.ts'

/** More than one id ever names. */
const MAX_RESULTS = 10

interface Found {
  readonly type: 'call' | 'task' | 'key' | 'account' | 'user'
  readonly id: string
  readonly account_id: string
  readonly name: string
}

/** Returns what `find` does; nothing where there is no such thing, or the caller may not see it. */
async function findIfSeen(find: () => Promise<Found[]>): Promise<Found[]> {
  try {
    return await find()
  } catch (error) {
    const failure = toFailure(error)
    if (failure instanceof Failure && ['not_found', 'permission_denied'].includes(failure.code)) return []
    throw error
  }
}

const assertSees = ({ caller }: Context, operation: Operation, accountId: string): void =>
  assertMayActIn(caller, operation, accountId)

async function findKey(context: Context, id: string): Promise<Found[]> {
  const { accountId, name } = await context.database.keys.show(id)
  assertSees(context, showKey, accountId)
  await listVisibleKeys(context, accountId, id)
  return [{ type: 'key', id, account_id: accountId, name }]
}

async function findAccount(context: Context, id: string): Promise<Found[]> {
  const { account } = await context.database.accounts.show(id)
  assertSees(context, showAccount, id)
  return [{ type: 'account', id, account_id: id, name: account.name }]
}

async function findUser({ caller, database }: Context, id: string): Promise<Found[]> {
  if (caller.installation === null && caller.signedIn?.user.id !== id) return []
  const user = await database.users.show(id)
  return [{ type: 'user', id, account_id: user.accountId, name: user.email }]
}

/** Finds a call and its task, by the id of either. */
async function findCall(context: Context, ref: string): Promise<Found[]> {
  const { call, task } = await context.database.calls.find(ref)
  const findCallHits = async (): Promise<Found[]> => {
    if (call === null) return []
    assertSees(context, showCall, call.account_id)
    await listVisibleKeys(context, call.account_id, call.key_id)
    return [{ type: 'call', id: String(call.id), account_id: call.account_id, name: call.model }]
  }
  const findTaskHits = async (): Promise<Found[]> => {
    if (task === null || (context.caller.installation === null && !isShown(task))) return []
    assertSees(context, showTask, task.accountId)
    return [{ type: 'task', id: task.id, account_id: task.accountId, name: task.model }]
  }
  return [...(await findIfSeen(findCallHits)), ...(await findIfSeen(findTaskHits))]
}

const FIND_BY_PREFIX = [
  ['key_', findKey],
  ['acc_', findAccount],
  ['usr_', findUser],
] as const

export const searchOperations = [
  implement(search, async (context, { q }) => {
    const [, find = findCall] = FIND_BY_PREFIX.find(([prefix]) => q.startsWith(prefix)) ?? []
    return toPage(await findIfSeen(() => find(context, q)), { limit: MAX_RESULTS })
  }),
]
