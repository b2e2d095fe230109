/** Entry point of a forked process: reads its role from the first message and runs it. */
import type { Boot, ToChild, ToParent } from './messages.ts'

const BOOT_BOUND_MS = 10_000

function receiveBoot(): Promise<Boot> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error('no boot message came: this process is started by serve')),
      BOOT_BOUND_MS,
    )
    process.once('message', (message: ToChild) => {
      clearTimeout(timer)
      if (message.type === 'boot') resolve(message.boot)
      else reject(new Error(`expected a boot message, got ${message.type}`))
    })
  })
}

/** Runs the role of a child process. Loads only the modules of that role, so that a start is quick. */
async function runRole(boot: Boot): Promise<void> {
  if (boot.role === 'gateway') return (await import('./gateway/gateway.ts')).runGateway(boot)
  if (boot.role === 'tasks') return (await import('./tasks/worker.ts')).runTasks(boot)
  return (await import('./settler/settler.ts')).runSettler(boot)
}

/** Waits for the boot message and runs with it. Reports an error to the parent, and ends the process. */
export async function runChild(run: (boot: Boot) => Promise<void> = runRole): Promise<void> {
  const ignoreTerminal = () => {}
  // The supervisor gets the terminal's signals and sends a message when to end.
  process.on('SIGINT', ignoreTerminal)
  const boot = await receiveBoot()
  process.title = `tollgate: ${boot.role} ${boot.index}`
  try {
    await run(boot)
  } catch (error) {
    process.send?.({ type: 'failed', message: (error as Error).message } satisfies ToParent, () =>
      process.exit(1),
    )
  }
}
