/**
 * A minute in which every three seconds a process of any kind is killed, paused or cut off, under mixed load: no call is
 * lost or charged twice, and all books agree. `npm run chaos` takes longer. See docs/cluster.md, "Chaos".
 */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { seeds } from '../end-to-end/chaos/plan.ts'
import { runCampaign } from './campaign.ts'
import { dropUnlessWrong, keptWhere } from './kept.ts'

const MINUTES = 1

const [seed = 0] = seeds()
const folder = join(tmpdir(), `tollgate-chaos-${seed}`)
t.comment(keptWhere(seed, folder))
const { problems, figures } = await runCampaign(t, {
  seed,
  minutes: MINUTES,
  folder,
  say: (line) => t.comment(line),
})
for (const [name, value] of Object.entries(figures)) t.comment(`${name}: ${value}`)
t.same(problems, [], 'everything is as it must be')
t.ok((figures['complete answers'] ?? 0) > 100, 'calls were answered')
t.ok((figures.faults ?? 0) > 10, 'faults struck')
dropUnlessWrong(folder, problems)
