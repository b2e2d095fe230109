/** Entry point of a forked process: reads its role from the first message and runs it. */
import { flushCompileCache } from 'node:module'
import type { StartWork } from './background.ts'
import { type Boot, CHILD_MARK, type ChildRole, type ToChild, type ToParent } from './messages.ts'

type Run = (boot: Boot) => Promise<void>

/** Resolves with the message of the supervisor, which comes when the engines run. Without a supervisor the process ends. */
function receiveBoot(): Promise<Boot> {
  return new Promise((resolve, reject) => {
    if (!process.connected) throw new Error('no boot message can come: this process is started by serve')
    const end = () => process.exit(1)
    process.once('disconnect', end)
    process.once('message', (message: ToChild) => {
      process.off('disconnect', end)
      if (message.type === 'boot') resolve(message.boot)
      else reject(new Error(`expected a boot message, got ${message.type}`))
    })
  })
}

const loadSettler = async (): Promise<StartWork> => (await import('./settler/settler.ts')).startSettler
const loadTasks = async (): Promise<StartWork> => (await import('./tasks/worker.ts')).startTasks

async function loadBackground(...loading: readonly Promise<StartWork>[]): Promise<Run> {
  const [{ runBackground }, ...starts] = await Promise.all([import('./background.ts'), ...loading])
  return (boot) => runBackground(boot, starts)
}

/** Each loads only the modules of its role. */
const ROLES: Readonly<Record<ChildRole, () => Promise<Run>>> = {
  gateway: async () => (await import('./gateway/gateway.ts')).runGateway,
  tasks: () => loadBackground(loadTasks()),
  settler: () => loadBackground(loadSettler()),
  'settler+tasks': () => loadBackground(loadSettler(), loadTasks()),
}

function loadRole(): Promise<Run> {
  const mark = process.argv.find((word) => word.startsWith(CHILD_MARK))!
  return ROLES[mark.slice(CHILD_MARK.length) as ChildRole]()
}

/** Loads the code of the role, waits for the boot message and runs with it. Reports an error to the parent, and ends. */
export async function runChild(load: () => Promise<Run> = loadRole): Promise<void> {
  const ignoreTerminal = () => {}
  // The supervisor gets the terminal's signals and sends a message when to end.
  process.on('SIGINT', ignoreTerminal)
  const [boot, run] = await Promise.all([receiveBoot(), load()])
  process.title = `tollgate: ${boot.role} ${boot.index}`
  try {
    await run(boot)
    // What a killed process has compiled is there for the next one too.
    flushCompileCache()
  } catch (error) {
    process.send?.({ type: 'failed', message: (error as Error).message } satisfies ToParent, () =>
      process.exit(1),
    )
  }
}
