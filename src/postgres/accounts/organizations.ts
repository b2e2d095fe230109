/** Organizations, spend caps and the audit record on one pool of connections. */
import type { KeyMaterial } from '../../core/keys/material.ts'
import { releaseReservation, reserveCap, reserveWallet, shrinkReservation } from '../billing/caps.ts'
import type { Sql } from '../connection.ts'
import { within } from '../errors.ts'
import { setAccountModels } from './accounts.ts'
import { listAudit } from './audit-record.ts'
import { approveKey, denyKey, listKeyRequests, requestKey } from './key-requests.ts'
import { listMembers, putMember, removeMember } from './members.ts'
import type { Organizations } from './organization-types.ts'

/** For what a client's request waits on. */
const READ_DEADLINE_MS = 5_000

export const openOrganizations = (sql: Sql, material: KeyMaterial): Organizations => ({
  setAccountModels: (accountId, allowedModels) => setAccountModels(sql, accountId, allowedModels),

  putMember: (organizationId, accountId, role) => putMember(sql, organizationId, accountId, role),
  removeMember: (organizationId, accountId) => removeMember(sql, organizationId, accountId),
  listMembers: (organizationId) => listMembers(sql, organizationId),

  requestKey: (request) => requestKey(sql, request),
  listKeyRequests: (organizationId) => listKeyRequests(sql, organizationId),
  approveKey: (approval) => approveKey(sql, material, approval),
  denyKey: (requestId, by) => denyKey(sql, requestId, by),

  reserveCap: (reservation) => within(READ_DEADLINE_MS, reserveCap(sql, reservation)),
  reserveWallet: (reservation) => within(READ_DEADLINE_MS, reserveWallet(sql, reservation)),
  shrinkReservation: (requestId, cost) => within(READ_DEADLINE_MS, shrinkReservation(sql, requestId, cost)),
  releaseReservation: (requestId) => within(READ_DEADLINE_MS, releaseReservation(sql, requestId)),

  listAudit: (filter) => listAudit(sql, filter),
})
