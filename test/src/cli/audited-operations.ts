/** Operations of the command line, and the entries that each leaves in the audit record. */

export interface Entry {
  readonly id: number
  readonly created_at: string
  readonly actor: string
  readonly action: string
  readonly account_id: string | null
  readonly subject_id: string
  readonly before: unknown
  readonly after: unknown
}

/** Ids of what the operations made, by the names that the commands give them. */
export const ids: Record<string, string> = {}

/** Returns the words of a command, with ids in place of names in braces. */
export const words = (text: string): string[] =>
  text.split(' ').map((word) => word.replace(/\{(\w+)\}/g, (_, name: string) => ids[name]!))

type Expected = Partial<Record<keyof Entry, unknown>>
/** The command, what of its answer is remembered, and the entries it leaves. Actor: the operator, unless it says another. */
type AuditedCommand = readonly [command: string, keep: Record<string, string>, expected: () => Expected[]]

interface AuditedOptions {
  /** The operator who runs the commands. */
  readonly actor: string
  /** Path of the file of an agent. */
  readonly agentFile: string
}

const created = (account_id?: string) => ({ action: 'account.create', account_id })

/** Each operation once, in an order in which they can be done. */
export const listAuditedCommands = ({ actor, agentFile }: AuditedOptions): readonly AuditedCommand[] => [
  [
    'account create --name Acme --kind organization --credit 1000',
    { org: 'id' },
    () => [
      {
        action: 'account.create',
        subject_id: ids.org,
        before: null,
        after: { name: 'Acme', kind: 'organization' },
      },
      { action: 'wallet.trial', account_id: ids.org, after: { balance: '1000', amount: '1000' } },
    ],
  ],
  ['account create --name Ann --credit 0', { ann: 'id' }, () => [created(ids.ann)]],
  ['account create --name Bob --credit 0', { bob: 'id' }, () => [created(ids.bob)]],
  [
    'account limits {org} --rpm 60',
    {},
    () => [
      { action: 'account.update', before: { requests_per_minute: null }, after: { requests_per_minute: 60 } },
    ],
  ],
  [
    'account models {org} --models fast,slow',
    {},
    () => [
      {
        action: 'account.update',
        before: { allowed_models: null },
        after: { allowed_models: ['fast', 'slow'] },
      },
    ],
  ],
  [
    'account disable {org} --yes',
    {},
    () => [{ action: 'account.disable', before: { enabled: true }, after: { enabled: false } }],
  ],
  [
    'account enable {org}',
    {},
    () => [{ action: 'account.enable', before: { enabled: false }, after: { enabled: true } }],
  ],
  ['account enable {org}', {}, () => []],
  [
    'wallet topup {org} 500.5 --note invoice',
    {},
    () => [
      {
        action: 'wallet.topup',
        account_id: ids.org,
        before: { balance: '1000' },
        after: { balance: '1500.5', amount: '500.5', note: 'invoice' },
      },
    ],
  ],
  [
    'member add --organization {org} --account {ann} --role admin',
    {},
    () => [
      {
        action: 'member.add',
        account_id: ids.org,
        subject_id: ids.ann,
        before: null,
        after: { role: 'admin' },
      },
    ],
  ],
  [
    'member add --organization {org} --account {bob}',
    {},
    () => [{ action: 'member.add', after: { role: 'member' } }],
  ],
  [
    'member add --organization {org} --account {bob} --role admin',
    {},
    () => [
      { action: 'member.update', subject_id: ids.bob, before: { role: 'member' }, after: { role: 'admin' } },
    ],
  ],
  [
    `agent create --account {org} --file ${agentFile}`,
    { agent: 'id' },
    () => [
      { action: 'agent.create', account_id: ids.org, after: { state: 'draft', file: { name: 'Support' } } },
    ],
  ],
  [
    'agent publish {agent}',
    {},
    () => [
      {
        action: 'agent.publish',
        subject_id: ids.agent,
        before: { state: 'draft' },
        after: { state: 'published' },
      },
    ],
  ],
  [
    'key request --organization {org} --by {bob} --name desk --note please',
    { first: 'id' },
    () => [
      {
        actor: ids.bob,
        action: 'key_request.create',
        account_id: ids.org,
        after: { member_id: ids.bob, note: 'please' },
      },
    ],
  ],
  [
    'key approve {first} --by {ann} --spend-cap 12.5',
    { desk: 'id' },
    () => [
      { actor: ids.ann, action: 'key.create', subject_id: ids.desk, after: { kind: 'employee' } },
      {
        actor: ids.ann,
        action: 'grant.create',
        subject_id: ids.desk,
        after: { spend_cap: '12.5', member_id: ids.bob },
      },
      {
        actor: ids.ann,
        action: 'key_request.approve',
        subject_id: ids.first,
        before: { state: 'pending', key_id: null },
        after: { state: 'approved', key_id: ids.desk },
      },
    ],
  ],
  [
    'key request --organization {org} --by {bob} --name bot --agent {agent}',
    { second: 'id' },
    () => [{ actor: ids.bob, action: 'key_request.create', after: { agent_id: ids.agent } }],
  ],
  [
    'key deny {second} --by {ann}',
    {},
    () => [
      {
        actor: ids.ann,
        action: 'key_request.deny',
        before: { state: 'pending' },
        after: { state: 'denied' },
      },
    ],
  ],
  [
    'key create --account {org} --name lap --models fast',
    { lap: 'id' },
    () => [
      {
        action: 'key.create',
        account_id: ids.org,
        before: null,
        after: { name: 'lap', allowed_models: ['fast'] },
      },
    ],
  ],
  ['key reveal {lap}', {}, () => [{ action: 'key.reveal', subject_id: ids.lap, before: null, after: null }]],
  [
    'key update {lap} --name top --account-logs on',
    {},
    () => [
      {
        action: 'key.update',
        before: { name: 'lap', account_logs: false },
        after: { name: 'top', account_logs: true },
      },
    ],
  ],
  ['key update {lap} --disable --yes', {}, () => [{ action: 'key.disable', after: { enabled: false } }]],
  ['key update {lap} --enable', {}, () => [{ action: 'key.enable', after: { enabled: true } }]],
  [
    'key update {desk} --spend-cap 20',
    {},
    () => [
      {
        actor,
        action: 'grant.update',
        account_id: ids.org,
        subject_id: ids.desk,
        before: { spend_cap: '12.5' },
        after: { spend_cap: '20' },
      },
    ],
  ],
  ['key revoke {lap} --yes', {}, () => [{ action: 'key.revoke', before: { revoked_at: null } }]],
  ['key revoke {lap} --yes', {}, () => []],
  [
    'member remove --organization {org} --account {bob} --yes',
    {},
    () => [
      { action: 'member.remove', subject_id: ids.bob, before: { role: 'admin' }, after: null },
      { action: 'key.revoke', subject_id: ids.desk, before: { revoked_at: null } },
    ],
  ],
  ['agent unpublish {agent} --yes', {}, () => [{ action: 'agent.unpublish', after: { state: 'draft' } }]],
  ['agent delete {agent} --yes', {}, () => [{ action: 'agent.delete', after: { state: 'deleted' } }]],
  [
    'kb create --account {org} --name Facts',
    { kb: 'id' },
    () => [{ action: 'kb.create', account_id: ids.org, subject_id: ids.kb, after: { name: 'Facts' } }],
  ],
  [
    'kb grant {kb} --to {ann}',
    {},
    () => [
      {
        action: 'kb.grant',
        account_id: ids.org,
        subject_id: ids.kb,
        before: null,
        after: { reader_id: ids.ann },
      },
    ],
  ],
  [
    'kb revoke {kb} --to {ann}',
    {},
    () => [{ action: 'kb.revoke', before: { reader_id: ids.ann }, after: null }],
  ],
  [
    'status post --text Down --severity outage',
    { note: 'id' },
    () => [{ action: 'status_note.post', subject_id: ids.note, after: { text: 'Down', models: null } }],
  ],
  [
    'status update {note} --text Known --severity degraded',
    {},
    () => [{ action: 'status_note.update', after: { text: 'Known', severity: 'degraded' } }],
  ],
  ['status resolve {note}', {}, () => [{ action: 'status_note.resolve', subject_id: ids.note }]],
]
