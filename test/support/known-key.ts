/** A key and its account, as the gateway knows them: as new ones are, but for what a test says. */

import type { Account } from '../../schemas/accounts/account.ts'
import type { ApiKey } from '../../schemas/accounts/key.ts'
import { parseCredits } from '../../schemas/money.ts'
import type { KnownKey } from '../../src/credentials/credentials.ts'
import { WalletView } from '../../src/credentials/wallet.ts'

const NEVER = new Date(0)

export const apiKey = (more: Partial<ApiKey> = {}): ApiKey => ({
  id: 'key_a',
  accountId: 'acc_a',
  name: 'test',
  kind: 'console',
  prefix: 'sk-tollgate-0123abcd',
  allowedModels: null,
  expiresAt: null,
  limits: null,
  allowedAddresses: null,
  maxPrice: null,
  enabled: true,
  revokedAt: null,
  agentId: null,
  grant: null,
  accountLogs: false,
  opensDraft: false,
  revealable: true,
  formerSecret: null,
  createdAt: NEVER,
  ...more,
})

export const accountOf = (more: Partial<Account> = {}): Account => ({
  id: 'acc_a',
  name: 'test',
  kind: 'personal',
  enabled: true,
  requestsPerMinute: null,
  concurrency: null,
  allowedModels: null,
  createdAt: NEVER,
  ...more,
})

/** A wallet with these credits, in decimals. */
export const walletView = (balance: string, held = '0', used = '0'): WalletView =>
  new WalletView({
    accountId: 'acc_a',
    balance: parseCredits(balance),
    held: parseCredits(held),
    used: parseCredits(used),
    version: 1n,
  })

export const knownKey = ({ view = walletView('1000'), ...more }: Partial<KnownKey> = {}): KnownKey => ({
  key: apiKey(),
  account: accountOf(),
  wallet: view.totals,
  view,
  agent: null,
  secret: null,
  cap: null,
  budgets: [],
  addresses: null,
  ...more,
})
