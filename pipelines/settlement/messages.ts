/** Encodes and decodes settlement messages and commit notifications. */

import { Buffer } from 'node:buffer'
import type { WalletTotals } from '../../schemas/accounts/account.ts'
import { type Settlement, settlement } from '../../schemas/call-log/columns.ts'
import { booked, SETTLEMENT_SEPARATOR } from '../../schemas/events/event.ts'

/** A line that is no settlement. It can never be booked; it is stored with all that is known of it. */
export interface Malformed {
  readonly messageId: string | null
  readonly line: string
  readonly reason: string
}

export interface SettlementMessage {
  readonly settlements: readonly Settlement[]
  readonly malformed: Malformed[]
}

export const decodeText = (payload: Uint8Array): string =>
  Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('utf8')

/** Reads a message of the stream. A line that cannot be read does not affect the others. */
export function decodeSettlements(messageId: string | null, payload: Uint8Array): SettlementMessage {
  const settlements: Settlement[] = []
  const malformed: Malformed[] = []
  for (const line of decodeText(payload).split(SETTLEMENT_SEPARATOR)) {
    if (line === '') continue
    try {
      settlements.push(settlement.parse(JSON.parse(line)))
    } catch (error) {
      malformed.push({ messageId, line, reason: (error as Error).message })
    }
  }
  return { settlements, malformed }
}

/**
 * Returns when the first call of a batch ended, epoch milliseconds. Returns null when its first line cannot be read;
 * the settler logs that.
 */
export const readFirstEnd = (payload: Uint8Array): number | null =>
  decodeSettlements(null, payload).settlements[0]?.created_at ?? null

/** The changes of one commit: the batches that it booked, and the totals after it. */
interface CommitNotification {
  readonly batches: readonly string[]
  readonly wallets: readonly WalletTotals[]
}

export function encodeCommitNotification({ batches, wallets }: CommitNotification): string {
  return JSON.stringify({
    batches,
    wallets: wallets.map(({ accountId, balance, held, used, version, reserved }) => ({
      account_id: accountId,
      balance: String(balance),
      held: String(held),
      used: String(used),
      version: String(version),
      ...(reserved !== undefined && { reserved: String(reserved) }),
    })),
  })
}

/** @throws Error when it is not what `encodeCommitNotification` returns */
export function decodeCommitNotification(payload: Uint8Array): CommitNotification {
  const { batches, wallets } = booked.parse(JSON.parse(decodeText(payload)))
  return {
    batches,
    wallets: wallets.map((wallet) => ({
      accountId: wallet.account_id,
      balance: BigInt(wallet.balance),
      held: BigInt(wallet.held),
      used: BigInt(wallet.used),
      version: BigInt(wallet.version),
      ...(wallet.reserved !== undefined && { reserved: BigInt(wallet.reserved) }),
    })),
  }
}
