/** Ranks in an organization: an admin decides on members, an owner on everybody. */
import { Failure } from '../../../schemas/failure.ts'
import type { AccountRole } from '../../../schemas/management/operation.ts'
import type { Context } from '../operation.ts'

/** Returns whether the caller is an admin of the organization and has no higher role. */
export const isAdminOnly = ({ caller }: Context, organizationId: string): boolean =>
  caller.roles.get(organizationId) === 'admin' && caller.installation !== 'operator'

/**
 * Refuses an admin who decides on an owner or another admin.
 * @throws Failure `permission_denied`
 */
export function assertMayDecideOn(
  context: Context,
  organizationId: string,
  role: AccountRole | null | undefined,
): void {
  if ((role === 'owner' || role === 'admin') && isAdminOnly(context, organizationId))
    throw new Failure('permission_denied', 'Only an owner decides on owners and admins.')
}
