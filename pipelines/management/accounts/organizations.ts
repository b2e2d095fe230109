/** Operations of organizations: members, and keys that they request. */
import type { Member } from '../../../schemas/accounts/organization.ts'
import { Failure } from '../../../schemas/failure.ts'
import * as operations from '../../../schemas/management/accounts/organizations.ts'
import type { AccountRole } from '../../../schemas/management/operation.ts'
import { printCredits } from '../../../schemas/money.ts'
import type { Decider } from '../../../src/postgres/accounts/key-requests.ts'
import type { MemberSpend } from '../../../src/postgres/accounts/members.ts'
import type { Repositories } from '../../../src/postgres/database.ts'
import { assertMayActIn } from '../caller.ts'
import { type Context, implementWith } from '../operation.ts'
import { readPage, toPage } from '../page.ts'
import { keyRequestShape, keyShape, memberShape } from '../shapes.ts'
import { assertKnownModels, type Configured, parseExpiry } from './key-rules.ts'
import { parseNetworks } from './keys.ts'
import { assertMayDecideOn, isAdminOnly } from './ranks.ts'

const withSpend = (member: Member, { email, spent }: MemberSpend) => ({
  ...memberShape(member),
  email,
  spent: printCredits(spent),
})

/** Returns the personal account in whose name the caller acts. @throws Failure `permission_denied` */
function findOwnAccount({ caller }: Context): string {
  if (caller.accountId !== null) return caller.accountId
  throw new Failure('permission_denied', 'A member of the organization does this, signed in as a user.')
}

/** Returns who decides on a request for a key. A command names an admin, in whose name it decides. */
function toDecider({ caller: { actor, accountId, signedIn, installation } }: Context): Decider {
  const isOperator = signedIn !== null && installation === 'operator'
  return { by: accountId ?? actor, isAboveRoles: accountId === null || isOperator }
}

/**
 * Refuses an admin who decides on an owner or another admin.
 * @throws Failure `permission_denied`
 */
async function assertOutranks(
  context: Context,
  database: Repositories,
  organizationId: string,
  { member, role }: { readonly member: string; readonly role?: AccountRole },
): Promise<void> {
  if (!isAdminOnly(context, organizationId)) return
  if (member !== context.caller.signedIn?.user.accountId) {
    const present = await database.organizations.findRole(organizationId, member)
    for (const one of [present, role]) assertMayDecideOn(context, organizationId, one)
  }
  if (role === 'owner') throw new Failure('permission_denied', 'Only an owner makes an owner.')
}

/** Checks that a request is of this organization. @throws Failure `not_found` */
async function assertRequest(database: Repositories, organizationId: string, id: string): Promise<void> {
  const request = await database.keyRequests.show(id)
  if (request.organizationId !== organizationId)
    throw new Failure('not_found', `There is no key request ${id} in ${organizationId}.`)
}

const implement = implementWith<Configured>()

export const organizationOperations = [
  implement(operations.listMembers, async ({ database }, { account_id: organizationId, ...input }) => {
    const found = await database.organizations.listMembers(organizationId, readPage(input))
    // The schema of the answer leaves out the id, by which pages go.
    const members = found.map((member) => ({ ...withSpend(member, member), id: member.accountId }))
    return toPage(members, input)
  }),
  implement(
    operations.putMember,
    async (context, { account_id: organizationId, member_id: accountId, role }) => {
      const member = await context.write(async (database) => {
        await assertOutranks(context, database, organizationId, { member: accountId, role })
        return database.organizations.putMember(organizationId, accountId, role)
      })
      return withSpend(member, await context.database.organizations.readSpend(organizationId, accountId))
    },
  ),
  implement(
    operations.removeMember,
    async (context, { account_id: organizationId, member_id: accountId }) => {
      // Everyone may leave.
      if (accountId !== context.caller.signedIn?.user.accountId)
        assertMayActIn(
          context.caller,
          { ...operations.removeMember, allows: ['owner', 'admin'] },
          organizationId,
        )
      const member = await context.write(async (database) => {
        await assertOutranks(context, database, organizationId, { member: accountId })
        return database.organizations.removeMember(organizationId, accountId)
      })
      return withSpend(member, await context.database.organizations.readSpend(organizationId, accountId))
    },
  ),
  implement(
    operations.requestKey,
    async (context, { account_id: organizationId, name, agent_id: agentId, note }) => {
      const memberId = findOwnAccount(context)
      const asked = { organizationId, memberId, name, agentId, note }
      return keyRequestShape(await context.write((database) => database.keyRequests.create(asked)))
    },
  ),
  implement(
    operations.listKeyRequests,
    async ({ database, caller }, { account_id: organizationId, state, ...input }) => {
      const role = caller.roles.get(organizationId)
      const isDecider = caller.installation !== null || role === 'owner' || role === 'admin'
      const found = await database.keyRequests.list(organizationId, {
        // An id that no account has lists nothing.
        memberId: isDecider ? null : (caller.signedIn?.user.accountId ?? ''),
        state: state ?? null,
        ...readPage(input),
      })
      return toPage(found.map(keyRequestShape), input)
    },
  ),
  implement(operations.approveKey, async (context, input, configured) => {
    const { account_id: organizationId, id } = input
    await assertKnownModels(configured, input.allowed_models)
    const approval = {
      ...toDecider(context),
      requestId: id,
      spendCap: input.spend_cap,
      allowedModels: input.allowed_models,
      expiresAt: parseExpiry(input.expires_at, context.now),
      requestsPerMinute: input.requests_per_minute,
      concurrency: input.concurrency,
      allowedAddresses: parseNetworks(input.allowed_addresses),
      maxPrice: input.max_price,
    }
    const issued = await context.write(async (database) => {
      await assertRequest(database, organizationId, id)
      return database.keyRequests.approve(approval)
    })
    return { ...keyShape(issued.key), request: keyRequestShape(issued.request) }
  }),
  implement(operations.denyKey, async (context, { account_id: organizationId, id }) => {
    const denied = await context.write(async (database) => {
      await assertRequest(database, organizationId, id)
      return database.keyRequests.deny(id, toDecider(context))
    })
    return keyRequestShape(denied)
  }),
]
