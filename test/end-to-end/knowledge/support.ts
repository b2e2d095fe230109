/** Two worlds that know nothing of each other, and what the one would ask to see of the other. */
import type { AgentFile } from '../../../schemas/accounts/agent.ts'
import { mediaJob } from '../../../schemas/media/job.ts'
import { parseCredits } from '../../../schemas/money.ts'
import { TASK_RULES, type TaskKind } from '../../../schemas/tasks/task.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import type { Database } from '../../../src/postgres/database.ts'
import type { PageDraft } from '../../../src/postgres/knowledge/types.ts'
import { importAll } from '../../src/postgres/knowledge/wiki-support.ts'
import { created, newVideo } from '../../src/postgres/tasks/support.ts'
import type { LentService } from '../../support/service.ts'

const FILE = { from: 'url', url: 'https://example.com/a.mp4' }

/** One job of each kind that a client can ask for by its id. */
const JOBS: Readonly<Partial<Record<TaskKind, object>>> = {
  image: { work: 'image', prompt: 'a kite', n: 1 },
  video: { work: 'video', content: [{ type: 'text', text: 'a kite' }], duration: 5 },
  music: { work: 'music', prompt: 'a waltz', instrumental: true },
  speech: { work: 'speech', input: 'Good morning', speed: 1 },
  avatar: { work: 'avatar', name: 'Ada', source: FILE, source_kind: 'video' },
  voice: { work: 'voice', name: 'Ada', audio: FILE },
  subtitle: { work: 'subtitle', video: FILE },
}

/** A task of each kind, as if it had just been asked for; answers their ids. */
export async function tasksOf(
  { database }: LentService,
  accountId: string,
  keyId: string,
): Promise<Map<string, string>> {
  const ids = new Map<string, string>()
  for (const [kind, job] of Object.entries(JOBS) as [TaskKind, object][]) {
    const id = newId(TASK_RULES[kind].idPrefix)
    const wanted = { id, kind, keyId, job: mediaJob.parse(job), isAwaited: false }
    await created(database, newVideo(accountId, wanted))
    ids.set(kind, id)
  }
  return ids
}

/** Into a base of the account; its own where none is named. Answers the base's id. */
export async function write(
  database: Database,
  accountId: string,
  pages: readonly PageDraft[],
  baseId?: string,
): Promise<string> {
  const id = baseId ?? (await database.knowledge.defaultBase(accountId)).id
  await importAll(database, id, pages)
  return id
}

export async function newOrganization(database: Database, name: string): Promise<string> {
  const { account } = await database.accounts.create({
    name,
    kind: 'organization',
    credit: parseCredits('1000000'),
  })
  return account.id
}

export const agentFile = (more: Partial<AgentFile> = {}): AgentFile => ({
  name: 'Guide',
  model: 'fast',
  persona: 'You guide.',
  temperature: null,
  knowledge: [],
  web_search: false,
  image_generation: false,
  ...more,
})

/** A key of a published agent with these bases. */
export async function agentKey(
  database: Database,
  accountId: string,
  knowledge: readonly string[] = [],
): Promise<string> {
  const agent = await database.agents.create(accountId, agentFile({ knowledge: [...knowledge] }))
  await database.agents.setState(agent.id, 'published')
  const { raw } = await database.keys.create({ name: 'agent', accountId, kind: 'agent', agentId: agent.id })
  return raw
}
