import type { KeyStorage } from '../../schemas/config/settings.ts'
import { deriveKeyMaterial } from '../core/keys/material.ts'
import {
  createAccount,
  listAccounts,
  setAccountEnabled,
  setAccountLimits,
  showAccount,
} from './accounts/accounts.ts'
import { createAgent, listAgents, setAgentState, showAgent, updateAgent } from './accounts/agents.ts'
import {
  createKey,
  findCredential,
  keyNames,
  listKeys,
  revealKey,
  revokeKey,
  showKey,
  updateKey,
} from './accounts/keys.ts'
import {
  eraseSealedKeys,
  type KnownMasterKey,
  recognizeMasterKey,
  rotateMasterKey,
  setKeyStorage,
} from './accounts/master-key.ts'
import { openOrganizations } from './accounts/organizations.ts'
import { bookSettlements, readBooked } from './billing/booking.ts'
import { verifyWallets } from './billing/verify.ts'
import { adjust, listLedger, readWallets, topUp } from './billing/wallets.ts'
import { callsSince, newestCalls } from './call-log/calls.ts'
import { claimCopyRange, copiedUpto, finishCopyRange, readUsageRows } from './call-log/copy.ts'
import { findCall } from './call-log/find-call.ts'
import { claimRebuild, countUsageRows, holdCopying, rangeEnd } from './call-log/rebuild.ts'
import { listenChanges } from './changes.ts'
import { connect } from './connection.ts'
import { within } from './errors.ts'
import { searchPages } from './knowledge/search.ts'
import { openWiki } from './knowledge/wiki.ts'
import { countNegativeBalances, keepMalformed, meteringReport } from './metering.ts'
import {
  claimIdempotencyKey,
  freeIdempotencyKey,
  purgeIdempotencyRecords,
  storeIdempotentAnswer,
} from './requests/idempotency.ts'
import {
  claimStaleTasks,
  countOpenTasks,
  deleteTaskRecord,
  findExpiredObjects,
  findOverdueTasks,
  findTask,
  listAllTasks,
  listOpenJobs,
  listTasks,
  readTasks,
  recordObjects,
  removeFiles,
  removeObjects,
  touchTasks,
} from './tasks/lists.ts'
import { retryOnStaleEnd } from './tasks/stale-end.ts'
import { createTask, moveTask } from './tasks/tasks.ts'
import type { Database } from './types.ts'

const DEFAULT_MAX_CONNECTIONS = 8
/** For what a client's request waits on. */
const READ_DEADLINE_MS = 5_000
const BOOKING_DEADLINE_MS = 30_000
const STATEMENT_TIMEOUT_MS = 30_000
/** A search takes milliseconds; one that does not is given up. */
const SEARCH_TIMEOUT_MS = 2_000
const SEARCH_CONNECTIONS = 4
/** Connections for the rare: copying and auditing. */
const IDLE_SECONDS = 60
const CLOSE_SECONDS = 5

export interface DatabaseOptions {
  /** Straight to PostgreSQL or to a pooler in session mode: sessions hold locks and listen. */
  readonly url: string
  /** 32 bytes. */
  readonly masterKey: Buffer
  readonly maxConnections?: number
  /** How keys are kept from now on, by whatever process. Default: as the database has it. */
  readonly keys?: KeyStorage | null
  /** Shown in `pg_stat_activity`. */
  readonly name?: string
  /** The actor named in the audit record. Default: the role of PostgreSQL. */
  readonly actor?: string
}

/**
 * Opens a database that `migrate` has brought to this program's schema.
 * @throws Refusal `wrong_master_key` when its keys were sealed with another one
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { url, name = 'tollgate' } = options
  const sql = connect(url, {
    max: options.maxConnections ?? DEFAULT_MAX_CONNECTIONS,
    name,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    ...(options.actor !== undefined && { actor: options.actor }),
  })
  // One connection that stays: its session is the copier's lock.
  const copying = connect(url, { max: 1, name: `${name} copying`, lifetimeSeconds: null })
  // An audit of a large ledger takes its time.
  const auditing = connect(url, {
    max: 1,
    name: `${name} audit`,
    idleSeconds: IDLE_SECONDS,
    ...(options.actor !== undefined && { actor: options.actor }),
  })
  // A separate pool, so that searches never make a call wait for its key or its wallet.
  const searching = connect(url, {
    max: SEARCH_CONNECTIONS,
    name: `${name} search`,
    idleSeconds: IDLE_SECONDS,
    statementTimeoutMs: SEARCH_TIMEOUT_MS,
    // What a search asks differs in size alone, and its plan takes longer to make than a small search.
    plansOnce: true,
  })
  const close = async () => {
    await Promise.all([sql, copying, auditing, searching].map((pool) => pool.end({ timeout: CLOSE_SECONDS })))
  }
  let known: KnownMasterKey
  try {
    known = await recognizeMasterKey(sql, deriveKeyMaterial(options.masterKey))
    if (options.keys) await setKeyStorage(sql, options.keys === 'hash')
  } catch (error) {
    await close()
    throw error
  }
  const { material, replacedAt: masterKeyReplacedAt } = known
  return {
    ping: async () => {
      await within(READ_DEADLINE_MS, sql`SELECT 1`)
    },
    close,

    createAccount: (account) => createAccount(sql, account),
    listAccounts: () => listAccounts(sql),
    showAccount: (accountId) => showAccount(sql, accountId),
    setAccountEnabled: (accountId, enabled) => setAccountEnabled(sql, accountId, enabled),
    setAccountLimits: (accountId, limits) => setAccountLimits(sql, accountId, limits),

    topUp: (accountId, amount, options = {}) => topUp(sql, accountId, amount, options),
    adjust: (accountId, amount, options) => adjust(sql, accountId, amount, options),
    listLedger: (accountId, limit) => listLedger(sql, accountId, limit),
    readWallets: (accountIds) => within(READ_DEADLINE_MS, readWallets(sql, accountIds)),

    createTask: (task) => within(READ_DEADLINE_MS, createTask(sql, task)),
    applyTransition: (move) => within(BOOKING_DEADLINE_MS, moveTask(sql, move)),
    readTasks: (ids) => within(READ_DEADLINE_MS, readTasks(sql, ids)),
    findTask: (accountId, kind, id) => within(READ_DEADLINE_MS, findTask(sql, accountId, kind, id)),
    removeFiles: (task, keys) => within(BOOKING_DEADLINE_MS, removeFiles(sql, task, keys)),
    listAllTasks: (query) => within(READ_DEADLINE_MS, listAllTasks(sql, query)),
    listTasks: (query) => within(READ_DEADLINE_MS, listTasks(sql, query)),
    listOpenJobs: (query) => within(READ_DEADLINE_MS, listOpenJobs(sql, query)),
    deleteTaskRecord: (accountId, kind, id, now) =>
      within(READ_DEADLINE_MS, deleteTaskRecord(sql, accountId, kind, id, now)),
    claimStaleTasks: (before, now, limit) =>
      within(READ_DEADLINE_MS, claimStaleTasks(sql, before, now, limit)),
    findOverdueTasks: (now, limit) => within(READ_DEADLINE_MS, findOverdueTasks(sql, now, limit)),
    touchTasks: (ids, now) => within(READ_DEADLINE_MS, touchTasks(sql, ids, now)),
    countOpenTasks: () => within(READ_DEADLINE_MS, countOpenTasks(sql)),
    recordObjects: (objects) => within(READ_DEADLINE_MS, recordObjects(sql, objects)),
    findExpiredObjects: (now, limit) => within(READ_DEADLINE_MS, findExpiredObjects(sql, now, limit)),
    removeObjects: (keys) => within(READ_DEADLINE_MS, removeObjects(sql, keys)),

    createAgent: (accountId, file) => createAgent(sql, accountId, file),
    updateAgent: (agentId, file) => updateAgent(sql, agentId, file),
    setAgentState: (agentId, state) => setAgentState(sql, agentId, state),
    listAgents: (accountId) => listAgents(sql, accountId),
    showAgent: (agentId) => showAgent(sql, agentId),

    ...openOrganizations(sql, material),
    ...openWiki(sql),
    searchPages: (bases, query, range) =>
      within(READ_DEADLINE_MS, searchPages(searching, bases, query, range)),

    createKey: (key) => createKey(sql, material, key),
    listKeys: (accountId) => listKeys(sql, accountId),
    keyNames: (keyIds) => keyNames(sql, keyIds),
    showKey: (keyId) => showKey(sql, keyId),
    revealKey: (keyId) => revealKey(sql, material, keyId),
    revokeKey: (keyId) => revokeKey(sql, keyId),
    updateKey: (keyId, changes) => updateKey(sql, keyId, changes),
    forgetKeys: () => eraseSealedKeys(auditing),
    rotateMasterKey: (next, options) => rotateMasterKey(auditing, material, deriveKeyMaterial(next), options),
    masterKeyReplacedAt,
    fileLinkKey: material.secrets.fileLinks,
    logCursorKey: material.secrets.logCursors,
    lookupHash: material.lookupHash,
    findCredential: (hash) =>
      within(
        READ_DEADLINE_MS,
        retryOnStaleEnd(sql, () => findCredential(sql, hash)),
      ),

    bookSettlements: (settlements) => within(BOOKING_DEADLINE_MS, bookSettlements(sql, settlements)),
    readBooked: (requestIds, walletIds) => within(READ_DEADLINE_MS, readBooked(sql, requestIds, walletIds)),

    claimCopyRange: () => claimCopyRange(copying),
    readUsageRows: (range) => readUsageRows(copying, range),
    finishCopyRange: (range) => finishCopyRange(copying, range),
    copiedUpto: () => copiedUpto(sql),
    claimRebuild: () => claimRebuild(copying),
    countUsageRows: () => countUsageRows(auditing),
    rangeEnd: (range, rows) => rangeEnd(auditing, range, rows),
    holdCopying: (work) => holdCopying(sql, work),

    newestCalls: (filter, count) => within(READ_DEADLINE_MS, newestCalls(sql, filter, count)),
    callsSince: (filter, after) => within(READ_DEADLINE_MS, callsSince(sql, filter, after)),
    findCall: (ref) => within(READ_DEADLINE_MS, findCall(sql, ref)),

    claimIdempotencyKey: (claim) => within(READ_DEADLINE_MS, claimIdempotencyKey(sql, claim)),
    storeIdempotentAnswer: (claim, answer) => storeIdempotentAnswer(sql, claim, answer),
    freeIdempotencyKey: (claim) => freeIdempotencyKey(sql, claim),
    purgeIdempotencyRecords: () => purgeIdempotencyRecords(sql),

    listenChanges: (listener) => listenChanges(sql, listener),
    meteringReport: (since) => meteringReport(auditing, since),
    countNegativeBalances: () => within(READ_DEADLINE_MS, countNegativeBalances(sql)),
    keepMalformed: (line, reason) => keepMalformed(sql, line, reason),
    verifyWallets: (log) => verifyWallets(auditing, log),
  }
}
