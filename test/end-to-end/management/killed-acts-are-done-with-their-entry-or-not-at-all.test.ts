/**
 * The whole service is killed while management acts of every kind run: each act is done and has exactly one entry in
 * the audit record, or it is not done and has none. What was answered is done.
 */
import t from 'tap'
import type { Database } from '../../../src/postgres/database.ts'
import { Random } from '../../simulation/random.ts'
import { type ManageClient, signIn } from '../../support/manage.ts'
import { startService } from '../../support/service.ts'
import { seedNote, seeds } from '../chaos/plan.ts'
import { callConfig } from '../support.ts'

const ROUNDS = 4
/** Acts of each kind in a round, all at once. */
const COPIES = 6
/** The share of a round's acts that are answered at most before the kill. */
const MOST_ANSWERED = 0.8
const MOST_ENTRIES = 1_000

interface Act {
  readonly name: string
  readonly action: string
  send(): Promise<number>
  /** Returns the id of the act's subject; null where it was not done. */
  find(): Promise<string | null>
}

interface World {
  readonly operator: ManageClient
  readonly database: Database
  /** A text that no other act has. */
  unique(): string
}

const idOf = (found: { readonly id: string } | undefined): string | null => found?.id ?? null

/** Prepares one act of every kind, each on separate objects. */
async function prepare({ operator, database, unique }: World): Promise<Act[]> {
  const { account } = await database.accounts.create({ name: unique(), kind: 'organization', credit: 0n })
  const { account: person } = await database.accounts.create({ name: unique(), credit: 0n })
  const account_id = account.id
  const made = async () => (await database.keys.create({ accountId: account_id, name: unique() })).key.id
  const [revoked, changed] = [await made(), await made()]
  const file = { name: unique(), model: 'fast', persona: 'A clerk.' } as const
  const whole = { temperature: null, knowledge: [], web_search: false, image_generation: false }
  const agent = await database.agents.create(account_id, { ...file, ...whole })
  const base = await database.knowledge.createBase(account_id, unique())
  const [keyName, baseName, agentName, reason, email] = Array.from({ length: 5 }, unique)
  const send = async (method: string, path: string, body: object) =>
    (await operator.send(method, path, body)).status
  return [
    {
      name: 'a key is created',
      action: 'key.create',
      send: () => send('POST', '/keys', { account_id, name: keyName }),
      find: async () => idOf((await database.keys.list(account_id)).find(({ name }) => name === keyName)),
    },
    {
      name: 'a key is switched off',
      action: 'key.disable',
      send: () => send('PATCH', `/keys/${changed}`, { enabled: false }),
      find: async () => ((await database.keys.show(changed)).enabled ? null : changed),
    },
    {
      name: 'a key is revoked',
      action: 'key.revoke',
      send: () => send('POST', `/keys/${revoked}/revoke`, {}),
      find: async () => ((await database.keys.show(revoked)).revokedAt === null ? null : revoked),
    },
    {
      name: 'a wallet is adjusted',
      action: 'wallet.adjustment',
      send: () => send('POST', `/accounts/${account_id}/adjustments`, { amount: '7', reason }),
      find: async () =>
        (await database.accounts.show(account_id)).wallet.balance === 700_000_000n ? account_id : null,
    },
    {
      name: 'an account is switched off',
      action: 'account.disable',
      send: () => send('PATCH', `/accounts/${person.id}`, { enabled: false }),
      find: async () => ((await database.accounts.show(person.id)).account.enabled ? null : person.id),
    },
    {
      name: 'a member joins',
      action: 'member.add',
      send: () => send('PUT', `/members/${person.id}`, { account_id, role: 'member' }),
      find: async () =>
        (await database.organizations.listMembers(account_id)).length > 0 ? person.id : null,
    },
    {
      name: 'an agent is created',
      action: 'agent.create',
      send: () => send('POST', '/agents', { account_id, file: { ...file, name: agentName } }),
      find: async () =>
        idOf((await database.agents.list(account_id)).find((one) => one.file.name === agentName)),
    },
    {
      name: 'an agent is published',
      action: 'agent.publish',
      send: () => send('POST', `/agents/${agent.id}/publish`, {}),
      find: async () => ((await database.agents.show(agent.id)).state === 'published' ? agent.id : null),
    },
    {
      name: 'a knowledge base is created',
      action: 'kb.create',
      send: () => send('POST', '/knowledge-bases', { account_id, name: baseName }),
      find: async () =>
        idOf((await database.knowledge.listBases(account_id)).find(({ name }) => name === baseName)),
    },
    {
      name: 'a knowledge base is granted',
      action: 'kb.grant',
      send: () => send('POST', `/knowledge-bases/${base.id}/readers`, { reader_id: agent.id }),
      find: async () => ((await database.knowledge.showBase(base.id)).readers.length > 0 ? base.id : null),
    },
    {
      name: 'a person is invited',
      action: 'invitation.create',
      send: () => send('POST', '/invitations', { email: `${email}@example.com` }),
      find: async () => {
        const invitations = await database.invitations.list(null)
        return idOf(invitations.find((one) => one.email === `${email}@example.com`))
      },
    },
  ]
}

for (const seed of seeds())
  t.test(seedNote(seed), async (t) => {
    const random = new Random(seed)
    const service = await startService(t, { config: callConfig({ fast: { simulate: 'tokens=2' } }) })
    const { database } = service
    let names = 0
    const outcomes = { answered: 0, done: 0, undone: 0 }
    for (let round = 0; round < ROUNDS; round += 1) {
      const operator = await signIn(service, { role: 'operator' })
      const world: World = { operator, database, unique: () => `made-${names++}` }
      const acts: Act[] = []
      for (let copy = 0; copy < COPIES; copy += 1) acts.push(...(await prepare(world)))
      const killAfter = random.int(1, acts.length * MOST_ANSWERED)
      let answers = 0
      const { promise: answeredEnough, resolve: kill } = Promise.withResolvers<void>()
      const sending = acts.map(async (act) => {
        const status = await act.send().catch(() => null)
        answers += 1
        if (answers >= killAfter) kill()
        return status
      })
      await answeredEnough
      await service.kill()
      const statuses = await Promise.all(sending)
      const found = await Promise.all(acts.map((act) => act.find()))
      for (const [index, act] of acts.entries()) {
        const status = statuses[index]!
        if (found[index] === null) outcomes.undone += 1
        else outcomes.done += 1
        if (status === null) continue
        outcomes.answered += 1
        t.ok(
          status < 300 && found[index] !== null,
          `${act.name}: it was answered with ${status}, and is done`,
        )
      }
      const actor = `user:${operator.user.id}`
      for (const action of new Set(acts.map((act) => act.action))) {
        const entries = await database.auditRecord.list({ action, limit: MOST_ENTRIES })
        t.same(
          entries
            .filter((entry) => entry.actor === actor)
            .map(({ subjectId }) => subjectId)
            .sort(),
          acts.flatMap((act, index) => (act.action === action ? (found[index] ?? []) : [])).sort(),
          `${action}: an entry for each act that is done, and no other`,
        )
      }
      await service.start()
    }
    t.ok(
      outcomes.undone > 0 && outcomes.done > 0,
      `the kills fell among the acts: ${JSON.stringify(outcomes)}`,
    )
    t.match(await database.audits.verifyWallets(), { differences: { length: 0 } })
  })
