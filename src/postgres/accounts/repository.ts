/** Accounts, organizations, agents, keys, and the record of who changed them. */

import type { Agent, AgentDraft, AgentFile, AgentState } from '../../../schemas/accounts/agent.ts'
import type { ApiKey, Credential, RotatedSecret } from '../../../schemas/accounts/key.ts'
import type { KeyRequest, Member, MemberRole } from '../../../schemas/accounts/organization.ts'
import { deriveKeyMaterial, type KeyMaterial } from '../../core/keys/material.ts'
import type { Sql } from '../connection.ts'
import { isSessionLost } from '../errors.ts'
import type { Listing } from '../listing.ts'
import { recordExpiringKeys } from '../notifications/expiring-keys.ts'
import { onStandby } from '../reading.ts'
import { onPool, type Pools, READ_DEADLINE_MS } from '../repository.ts'
import { retryOnStaleEnd } from '../tasks/stale-end.ts'
import * as accounts from './accounts.ts'
import { discardAgentDraft, publishAgent, readAgentDrafts, saveAgentDraft } from './agent-drafts.ts'
import { createAgent, listAgents, setAgentState, showAgent, updateAgent } from './agents.ts'
import { type AuditEntry, type AuditFilter, listAudit } from './audit-record.ts'
import { noteSecretUse } from './former-secrets.ts'
import * as keyRequests from './key-requests.ts'
import { endFormerSecret, rotateKey } from './key-rotation.ts'
import * as keys from './keys.ts'
import { eraseSealedKeys, type KnownMasterKey } from './master-key.ts'
import * as members from './members.ts'
import { rotateMasterKey } from './rotate-master-key.ts'

export interface Accounts {
  create(newAccount: accounts.NewAccount): Promise<accounts.AccountWithWallet>
  list(accountListing?: accounts.AccountListing): Promise<accounts.AccountWithWallet[]>
  rename(accountId: string, name: string): Promise<accounts.AccountWithWallet>
  recordView(accountId: string): Promise<void>
  readNames(accountIds: readonly string[]): Promise<ReadonlyMap<string, string>>
  listNegative(limit: number): Promise<accounts.AccountWithWallet[]>
  show(accountId: string): Promise<accounts.AccountWithWallet>
  setEnabled(accountId: string, enabled: boolean): Promise<accounts.AccountWithWallet>
  setLimits(accountId: string, limitChanges: accounts.LimitChanges): Promise<accounts.AccountWithWallet>
  setModels(accountId: string, allowedModels: readonly string[] | null): Promise<accounts.AccountWithWallet>
}

export interface Organizations {
  create(ownerId: string, name: string): Promise<accounts.AccountWithWallet>
  putMember(organizationId: string, accountId: string, role: MemberRole): Promise<Member>
  removeMember(organizationId: string, accountId: string): Promise<Member>
  findRole(organizationId: string, accountId: string): Promise<MemberRole | null>
  listMembers(organizationId: string, listing?: Listing): Promise<(Member & members.MemberSpend)[]>
  readSpend(organizationId: string, accountId: string): Promise<members.MemberSpend>
}

export interface Agents {
  create(accountId: string, file: AgentFile): Promise<Agent>
  update(agentId: string, file: AgentFile): Promise<Agent>
  setState(agentId: string, state: AgentState): Promise<Agent>
  list(accountId: string): Promise<Agent[]>
  show(agentId: string): Promise<Agent>
  readDrafts(agentIds: readonly string[]): Promise<AgentDraft[]>
  saveDraft(agentId: string, file: AgentFile): Promise<AgentDraft>
  discardDraft(agentId: string): Promise<void>
  publish(agentId: string): Promise<Agent>
}

export interface AuditRecord {
  list(filter: AuditFilter): Promise<AuditEntry[]>
}

export interface Keys {
  list(accountId: string, keyListing?: keys.KeyListing): Promise<ApiKey[]>
  listNearCap(accountId: string, part: keys.KeyListing & { readonly percent: bigint }): Promise<ApiKey[]>
  readNamed(keyIds: readonly string[]): Promise<ReadonlyMap<string, keys.NamedKey>>
  show(keyId: string): Promise<ApiKey>
  revoke(keyId: string): Promise<ApiKey>
  update(keyId: string, changes: keys.KeyChanges): Promise<ApiKey>
  endFormerSecret(keyId: string): Promise<ApiKey>
  create(key: keys.NewKey): Promise<keys.CreatedKey>
  reveal(keyId: string): Promise<keys.CreatedKey>
  rotate(keyId: string, graceSeconds: number): Promise<keys.CreatedKey>
  findCredential(lookupHash: Buffer): Promise<Credential | null>
  noteSecretUse(rotatedSecret: RotatedSecret): Promise<void>
  /** The keyed hash by which `findCredential` finds a raw key. */
  readonly lookupHash: KeyMaterial['lookupHash']
  recordExpiring(): Promise<number>
  eraseSealed(): Promise<number>
}

export interface KeyRequests {
  create(request: keyRequests.NewKeyRequest): Promise<KeyRequest>
  show(requestId: string): Promise<KeyRequest>
  list(organizationId: string, requestListing?: keyRequests.RequestListing): Promise<KeyRequest[]>
  deny(requestId: string, decider: keyRequests.Decider): Promise<KeyRequest>
  approve(approval: keyRequests.KeyApproval): Promise<keyRequests.IssuedKey>
}

export interface MasterKey {
  /** When the master key of this process was replaced; null while it is the current one. */
  readonly replacedAt: Date | null
  rotate(next: Buffer, options?: { readonly endLinks?: boolean }): Promise<number | null>
  /** Signs links to files. */
  readonly fileLinkKey: Buffer
  /** Signs cursors of the call log. */
  readonly logCursorKey: Buffer
}

export interface AccountRepositories {
  readonly accounts: Accounts
  readonly organizations: Organizations
  readonly agents: Agents
  readonly auditRecord: AuditRecord
  readonly keys: Keys
  readonly keyRequests: KeyRequests
  readonly masterKey: MasterKey
}

export function openAccounts(pools: Pools, { material, replacedAt }: KnownMasterKey): AccountRepositories {
  const { main, auditing } = pools
  return {
    accounts: onPool(main, {
      create: accounts.createAccount,
      list: accounts.listAccounts,
      rename: accounts.renameAccount,
      recordView: accounts.recordView,
      readNames: accounts.readAccountNames,
      show: accounts.showAccount,
      listNegative: accounts.listNegativeAccounts,
      setEnabled: accounts.setAccountEnabled,
      setLimits: accounts.setAccountLimits,
      setModels: accounts.setAccountModels,
    }),
    organizations: onPool(main, {
      create: members.createOrganization,
      putMember: members.putMember,
      removeMember: members.removeMember,
      findRole: members.readMemberRole,
      listMembers: members.listMembers,
      readSpend: members.readMemberSpend,
    }),
    agents: onPool(main, {
      create: createAgent,
      update: updateAgent,
      setState: setAgentState,
      list: listAgents,
      show: showAgent,
      readDrafts: readAgentDrafts,
      saveDraft: saveAgentDraft,
      discardDraft: discardAgentDraft,
      publish: publishAgent,
    }),
    auditRecord: onStandby(pools, { list: listAudit }),
    keys: {
      ...onPool(main, {
        list: keys.listKeys,
        listNearCap: keys.listKeysNearCap,
        readNamed: keys.readNamedKeys,
        show: keys.showKey,
        revoke: keys.revokeKey,
        update: keys.updateKey,
        endFormerSecret,
      }),
      ...onPool(auditing, { eraseSealed: eraseSealedKeys, recordExpiring: recordExpiringKeys }),
      ...onPool(main, { findCredential: findPastLostSession, noteSecretUse }, READ_DEADLINE_MS),
      create: (key) => keys.createKey(main, material, key),
      reveal: (keyId) => keys.revealKey(main, material, keyId),
      rotate: (keyId, graceSeconds) => rotateKey(main, material, keyId, graceSeconds),
      lookupHash: material.lookupHash,
    },
    keyRequests: {
      ...onPool(main, {
        create: keyRequests.requestKey,
        show: keyRequests.showKeyRequest,
        list: keyRequests.listKeyRequests,
        deny: keyRequests.denyKey,
      }),
      approve: (approval) => keyRequests.approveKey(main, material, approval),
    },
    masterKey: {
      replacedAt,
      rotate: (next, options) => rotateMasterKey(auditing, material, deriveKeyMaterial(next), options),
      fileLinkKey: material.secrets.fileLinks,
      logCursorKey: material.secrets.logCursors,
    },
  }
}

/** Finds a credential; once more where the session is lost meanwhile, as in a failover: a call waits for it. */
async function findPastLostSession(sql: Sql, lookupHash: Buffer): Promise<Credential | null> {
  const find = () => retryOnStaleEnd(sql, () => keys.findCredential(sql, lookupHash))
  try {
    return await find()
  } catch (error) {
    if (!isSessionLost(error)) throw error
    return find()
  }
}
