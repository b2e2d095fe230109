/** Accounts, organizations, agents, keys, and the record of who changed them. */

import type { Credential } from '../../../schemas/accounts/key.ts'
import { deriveKeyMaterial } from '../../core/keys/material.ts'
import type { Sql } from '../connection.ts'
import { isSessionLost } from '../errors.ts'
import { recordExpiringKeys } from '../notifications/expiring-keys.ts'
import { onStandby } from '../reading.ts'
import { onPool, type Pools, READ_DEADLINE_MS } from '../repository.ts'
import { retryOnStaleEnd } from '../tasks/stale-end.ts'
import {
  accountNames,
  createAccount,
  listAccounts,
  recordView,
  renameAccount,
  setAccountEnabled,
  setAccountLimits,
  setAccountModels,
  showAccount,
} from './accounts.ts'
import { discardAgentDraft, publishAgent, readAgentDrafts, saveAgentDraft } from './agent-drafts.ts'
import { createAgent, listAgents, setAgentState, showAgent, updateAgent } from './agents.ts'
import { listAudit } from './audit-record.ts'
import { noteSecretUse } from './former-secrets.ts'
import {
  approveKey,
  denyKey,
  type KeyApproval,
  listKeyRequests,
  requestKey,
  showKeyRequest,
} from './key-requests.ts'
import { endFormerSecret, rotateKey } from './key-rotation.ts'
import {
  createKey,
  findCredential,
  keysNearCap,
  listKeys,
  type NewKey,
  namedKeys,
  revealKey,
  revokeKey,
  showKey,
  updateKey,
} from './keys.ts'
import { eraseSealedKeys, type KnownMasterKey, rotateMasterKey } from './master-key.ts'
import {
  createOrganization,
  listMembers,
  memberRole,
  memberSpend,
  putMember,
  removeMember,
} from './members.ts'

export type Accounts = ReturnType<typeof openAccounts>
export type Keys = ReturnType<typeof openKeys>

export const openAccounts = ({ main }: Pools) =>
  onPool(main, {
    createAccount,
    listAccounts,
    renameAccount,
    recordView,
    accountNames,
    showAccount,
    setAccountEnabled,
    setAccountLimits,
    setAccountModels,
  })

export const openOrganizations = ({ main }: Pools) =>
  onPool(main, { createOrganization, putMember, removeMember, memberRole, listMembers, memberSpend })

export const openAgents = ({ main }: Pools) =>
  onPool(main, {
    createAgent,
    updateAgent,
    setAgentState,
    listAgents,
    showAgent,
    readAgentDrafts,
    saveAgentDraft,
    discardAgentDraft,
    publishAgent,
  })

export const openAuditRecord = (pools: Pools) => onStandby(pools, { listAudit })

export const openKeys = ({ main, auditing }: Pools, { material, replacedAt }: KnownMasterKey) => ({
  ...onPool(main, { listKeys, keysNearCap, namedKeys, showKey, revokeKey, updateKey, endFormerSecret }),
  ...onPool(main, { requestKey, showKeyRequest, listKeyRequests, denyKey }),
  ...onPool(auditing, { forgetKeys: eraseSealedKeys, recordExpiringKeys }),
  createKey: (key: NewKey) => createKey(main, material, key),
  revealKey: (keyId: string) => revealKey(main, material, keyId),
  rotateKey: (keyId: string, graceSeconds: number) => rotateKey(main, material, keyId, graceSeconds),
  approveKey: (approval: KeyApproval) => approveKey(main, material, approval),
  /** When the master key of this process was replaced; null while it is the current one. */
  masterKeyReplacedAt: replacedAt,
  rotateMasterKey: (next: Buffer, options?: { readonly endLinks?: boolean }) =>
    rotateMasterKey(auditing, material, deriveKeyMaterial(next), options),
  /** Signs links to files. */
  fileLinkKey: material.secrets.fileLinks,
  /** Signs cursors of the call log. */
  logCursorKey: material.secrets.logCursors,
  /** The keyed hash by which `findCredential` finds a raw key. */
  lookupHash: material.lookupHash,
  ...onPool(main, { findCredential: findPastLostSession, noteSecretUse }, READ_DEADLINE_MS),
})

/** Finds a credential; once more where the session is lost meanwhile, as in a failover: a call waits for it. */
async function findPastLostSession(sql: Sql, lookupHash: Buffer): Promise<Credential | null> {
  const find = () => retryOnStaleEnd(sql, () => findCredential(sql, lookupHash))
  try {
    return await find()
  } catch (error) {
    if (!isSessionLost(error)) throw error
    return find()
  }
}
